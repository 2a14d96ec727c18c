"""Campaigns, judged and reported."""
