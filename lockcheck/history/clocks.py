"""How much sooner than promised a lease may seem to end although no promise was broken: the
service counts it by its own clock, the history by another.

Crystals differ by 20 to 100 ppm, and a clock that is being set right runs up to 500 ppm faster or
slower than it should. The clients and servers of a run of lockcheck share the clock of one host,
and clients take their times right where they send. Those of another program's log may be on
two hosts, and its times are as exact as its requests are short.
"""

from __future__ import annotations

from lockcheck.history.event import Terms

# Parts of a lease.
DRIFT_OF_ONE = 2_000
DRIFT_OF_TWO = 500
LONGEST_REQUEST = 100


def slack_ns(lease_ns: int, request_ns: int, terms: Terms) -> int:
    """`request_ns`: how long the request took from which the lease counts."""
    if terms.backend:
        return lease_ns // DRIFT_OF_ONE
    return lease_ns // DRIFT_OF_TWO + min(request_ns, lease_ns // LONGEST_REQUEST)
