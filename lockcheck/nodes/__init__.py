"""Nodes: their processes, networks and file systems."""

NODES_FOLDER = "nodes"  # in a run's folder: the files of each node
