"""Runs that look for a violation, and the smallest run that still has it."""
