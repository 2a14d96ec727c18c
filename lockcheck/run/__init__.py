"""One run, from the plan to the report."""
