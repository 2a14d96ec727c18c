"""Locks, clients, a network and faults in virtual time: a plan in, a history out.

The same plan is the same history, on any machine. `plan` says what is simulated, `world` is the
time, `network` carries messages, `locks/` are the servers and their clients, `client` is who uses
them, `storage` what they protect, and `nemesis` strikes.
"""

from tests.simulation.locks import LOCKS, LockKind
from tests.simulation.plan import Fault, FaultKind, Nesting, Plan, Target
from tests.simulation.simulate import simulate, simulated_events

__all__ = [
    "LOCKS",
    "Fault",
    "FaultKind",
    "LockKind",
    "Nesting",
    "Plan",
    "Target",
    "simulate",
    "simulated_events",
]
