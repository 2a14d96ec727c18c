"""What happened, in one place: events as they were written, and what they mean.

`event`  one line of the history and its vocabulary
`files`  JSON Lines in and out, merging what the clients wrote
`model`  operations, holds, faults, stalls, the storage's testimony: the judges' view
"""

from lockcheck.history.event import Event, EventType, F, Notice, Terms
from lockcheck.history.files import EventWriter, merge_event_files, read_events, write_events
from lockcheck.history.model import (
    Ending,
    FaultSpan,
    History,
    Hold,
    Operation,
    Stall,
    Testimony,
    read_history,
)

__all__ = [
    "Ending",
    "Event",
    "EventType",
    "EventWriter",
    "F",
    "FaultSpan",
    "History",
    "Hold",
    "Notice",
    "Operation",
    "Stall",
    "Terms",
    "Testimony",
    "merge_event_files",
    "read_events",
    "read_history",
    "write_events",
]
