"""What a node is, and how its network is entered."""

NODES_FOLDER = "nodes"  # in a run's folder: what each of them has left
