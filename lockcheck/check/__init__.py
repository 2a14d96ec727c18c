"""Stored histories: judged again, or written in another format."""
