"""Getting to know a user's own lock: what it promises, and how it fares."""
