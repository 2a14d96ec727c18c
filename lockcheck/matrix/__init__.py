"""Campaigns: many runs with an expectation each, and what they come to."""
