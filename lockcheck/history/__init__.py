"""A run's history: the events as they were recorded, and what they mean."""

from lockcheck.history.event import Effect, Event, EventType, F, Notice, Refusal, Terms
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
    "Refusal",
    "Stall",
    "Terms",
    "merge_event_files",
    "read_events",
    "read_history",
    "write_events",
]
