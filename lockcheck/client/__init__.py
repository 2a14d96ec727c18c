"""A client of the lock: a process of its own, on a node of its own."""
