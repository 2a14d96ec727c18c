"""What a node is, and how its network is entered."""
