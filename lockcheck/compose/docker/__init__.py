"""The docker runtime: nodes are the containers of a Compose project."""
