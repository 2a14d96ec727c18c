"""Histories that are there already: judged again, or written in another format."""
