"""Logs of a lock service that is right, as people bring them: simulated, and none the wiser."""
