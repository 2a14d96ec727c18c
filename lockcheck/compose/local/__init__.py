"""The local runtime: nodes are processes in network namespaces of this host."""
