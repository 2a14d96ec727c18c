"""Which lease suits a lock: runs for each lease and each pause of a holder, how many of them break,
and how long the lock is gone after a crash."""
