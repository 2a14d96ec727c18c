"""Writes a history for other tools: Jepsen, Porcupine, a spreadsheet, or lockcheck itself.

`edn` and `jsonl` contain everything; `csv` and `porcupine` contain only the clients' operations: no
faults, no stalls, no notices, no storage ledger. `csv` also has the notices that a lock was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import IO

from lockcheck.errors import UserError
from lockcheck.formats.exports.export_csv import csv_rows, lost_notices
from lockcheck.formats.exports.export_edn import edn_line
from lockcheck.formats.exports.export_porcupine import porcupine_lines
from lockcheck.formats.read_options import opening_terms
from lockcheck.history import Event, History, Notice
from lockcheck.history.event import NEMESIS, RUN, STORAGE, encode_event, terms_event


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    meaning: str
    chunks: Callable[[History], Iterator[bytes]]
    operations_only: bool = False
    losses: bool = False  # it also has the notices that a lock was lost


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
        Export("csv", "a row for each operation", csv_rows, operations_only=True, losses=True),
        Export(
            "porcupine",
            "operations of Porcupine, one JSON object a line",
            porcupine_lines,
            operations_only=True,
        ),
    )
}


def write(history: History, name: str, out: IO[bytes]) -> None:
    if name not in EXPORTS:
        raise UserError(f"unknown export {name!r}", cure=f"choose from: {', '.join(EXPORTS)}")
    out.writelines(EXPORTS[name].chunks(history))


def left_out(history: History, name: str) -> str:
    """A note on what an export leaves out; empty if it contains everything."""
    if not EXPORTS[name].operations_only:
        return ""
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
