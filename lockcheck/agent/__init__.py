"""The agent of a run, which runs beside the nodes on their clock, and the pipe to it."""
