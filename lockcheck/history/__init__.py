"""What happened, in one place: events as they were written, and what they mean.

`event`  one line of the history and its vocabulary
`older`  what older runs and other tools do not say
`files`  JSON Lines in and out, merging what the clients wrote
`model`  operations, holds, faults, stalls, the storage's ledger
`assembly`, `holding`, `faults`  how events become those, one after the other
`history`  all of it, put together: what judges are given
"""

from lockcheck.history.event import Effect, Event, EventType, F, Notice, Terms
from lockcheck.history.files import EventWriter, merge_event_files, read_events, write_events
from lockcheck.history.history import History, read_history
from lockcheck.history.model import Ending, FaultSpan, Hold, LedgerEntry, Operation, Stall

__all__ = [
    "Effect",
    "Ending",
    "Event",
    "EventType",
    "EventWriter",
    "F",
    "FaultSpan",
    "History",
    "Hold",
    "LedgerEntry",
    "Notice",
    "Operation",
    "Stall",
    "Terms",
    "merge_event_files",
    "read_events",
    "read_history",
    "write_events",
]
