"""A history written for others: Jepsen, Porcupine, a spreadsheet, or lockcheck itself.

Everything is told by `edn` and `jsonl`; `csv` and `porcupine` tell the clients' operations only: no
faults, no stalls, no notices, nothing that the storage testified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO

from lockcheck.errors import UserError
from lockcheck.formats.asked import opening_terms
from lockcheck.formats.export_csv import csv_rows
from lockcheck.formats.export_edn import edn_line
from lockcheck.formats.export_porcupine import porcupine_lines
from lockcheck.history import Event, History, Notice
from lockcheck.history.event import RUN, encode_event, terms_event


@dataclass(frozen=True, slots=True)
class Export:
    name: str
    meaning: str
    chunks: Callable[[History], Iterator[bytes]]


def _edn(history: History) -> Iterator[bytes]:
    return (edn_line(index, event) for index, event in enumerate(_with_terms(history)))


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
        Export("csv", "a row for each operation", csv_rows),
        Export("porcupine", "operations of Porcupine, one JSON object a line", porcupine_lines),
    )
}


def write(history: History, name: str, out: IO[bytes]) -> None:
    if name not in EXPORTS:
        raise UserError(f"there is no export {name!r}", cure=f"known are: {', '.join(EXPORTS)}")
    out.writelines(EXPORTS[name].chunks(history))
