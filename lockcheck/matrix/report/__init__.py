"""The reports of a campaign: a page, JUnit XML, a summary for a CI job, and its results as NDJSON.

All are pure functions from a `Campaign` to text, with links relative to the campaign's folder.
"""
