"""lockcheck as a library: a cluster, faults and a judge for somebody's own tests."""
