"""The agent of a run: beside the nodes, on their clock; and the pipe to it."""
