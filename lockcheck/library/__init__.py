"""lockcheck as a library: a cluster, faults and a judge for a user's own tests."""
