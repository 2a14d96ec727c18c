"""Tests of what gets to know a user's own lock."""
