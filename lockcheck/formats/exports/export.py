"""Writes a history for other tools: Jepsen, Porcupine, a spreadsheet, or lockcheck itself.

`edn` and `jsonl` contain everything; `csv` and `porcupine` contain only the clients' operations: no
faults, no stalls, no notices, no storage ledger. `csv` also has the notices that a lock was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import IO

from lockcheck.errors import UserError
from lockcheck.formats.exports.export_csv import csv_rows, lost_notices
from lockcheck.formats.exports.export_edn import edn_line
from lockcheck.formats.exports.export_porcupine import porcupine_lines
from lockcheck.formats.read_options import opening_terms
from lockcheck.history import Event, History, Notice, Terms
from lockcheck.history.event import NEMESIS, RUN, STORAGE, encode_event, terms_event

# Of the terms.
PROMISES = (
    *("ttl_ms", "permits", "model", "session", "ends_with", "tells_release", "fair"),
    *("check_validity", "guard"),
)


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    meaning: str
    chunks: Callable[[History], Iterator[bytes]]
    operations_only: bool = False
    losses: bool = False  # it also has the notices that a lock was lost
    lacks: tuple[str, ...] = ()  # fields of operations that it has no place for
    refuses: tuple[str, ...] = ()  # of those: without them it would say something else


def _edn(history: History) -> Iterator[bytes]:
    return map(edn_line, count(), _with_terms(history))


def _jsonl(history: History) -> Iterator[bytes]:
    return (encode_event(event) + b"\n" for event in _with_terms(history))


def _with_terms(history: History) -> Iterator[Event]:
    events = history.events
    if not events:
        return iter([terms_event(history.terms)])
    if events[0].process == RUN and events[0].f == Notice.TERMS:
        return iter(events)
    return chain([opening_terms(history.terms, events[0])], events)


EXPORTS: dict[str, Export] = {
    each.name: each
    for each in (
        Export("edn", "Jepsen's history.edn, one operation a line", _edn),
        Export("jsonl", "lockcheck's own JSON Lines", _jsonl),
        Export(
            "csv",
            "a row for each operation",
            csv_rows,
            operations_only=True,
            losses=True,
            lacks=("valid_ms", "error"),
        ),
        Export(
            "porcupine",
            "operations of Porcupine, one JSON object a line",
            porcupine_lines,
            operations_only=True,
            lacks=("node", "ttl_ms", "valid_ms", "seq", "base", "refused", "error"),
            refuses=("shared", "unsaid"),
        ),
    )
}


def write(history: History, name: str, out: IO[bytes]) -> None:
    if name not in EXPORTS:
        raise UserError(f"unknown export {name!r}", cure=f"choose from: {', '.join(EXPORTS)}")
    lost = _used(history, EXPORTS[name].refuses)
    if lost:
        others = ", ".join(each.name for each in EXPORTS.values() if not each.refuses)
        raise UserError(
            f"{name} has no place for what this history says of its operations: {', '.join(lost)}",
            cure=f"without that it would be another history: export it as {others}",
        )
    out.writelines(EXPORTS[name].chunks(history))


def left_out(history: History, name: str) -> str:
    """A note on what an export leaves out; empty if it contains everything."""
    if not EXPORTS[name].operations_only:
        return ""
    fields, terms = _used(history, EXPORTS[name].lacks), _terms(history)
    notes = [
        _other_events(history, name),
        f"{name} has no place for {', '.join(fields)}" if fields else "",
        f"{name} has no place for what a history is judged by: {', '.join(terms)}" if terms else "",
    ]
    return "; ".join(filter(None, notes))


def _terms(history: History) -> list[str]:
    """The promises by which it is judged, and not as a history without a word on them."""
    usual = Terms()
    given = (name for name in PROMISES if getattr(history.terms, name) != getattr(usual, name))
    return [name.replace("_", "-") for name in given]


def _used(history: History, fields: Iterable[str]) -> list[str]:
    """The fields that some operation has."""
    events = [e for o in history.operations for e in (o.invoke, o.answer) if e is not None]
    return [name for name in fields if any(getattr(e, name) not in (None, False) for e in events)]


def _other_events(history: History, name: str) -> str:
    exported = len(lost_notices(history)) if EXPORTS[name].losses else 0
    numbers = (
        (_notices(history) - exported, "notice", "notices"),
        (len(history.faults), "fault", "faults"),
        (len(history.ledger), "ledger entry of the storage", "ledger entries of the storage"),
    )
    counts = [f"{number} {one if number == 1 else many}" for number, one, many in numbers if number]
    if not counts:
        return ""
    listed = " and ".join([", ".join(counts[:-1]), counts[-1]] if counts[1:] else counts)
    verb = "is" if counts == [listed] and listed.startswith("1 ") else "are"
    return f"{name} contains the clients' operations only: {listed} {verb} left out"


def _notices(history: History) -> int:
    of_operations = sum(1 + (each.answer is not None) for each in history.operations)
    others = sum(map(_is_no_notice, history.events))
    return len(history.events) - of_operations - others


def _is_no_notice(event: Event) -> bool:
    """Whether the event is part of a fault or of the ledger, or the terms."""
    of_fault = event.process == NEMESIS and event.fault is not None
    terms = event.process == RUN and event.f == Notice.TERMS
    return of_fault or terms or event.process == STORAGE
