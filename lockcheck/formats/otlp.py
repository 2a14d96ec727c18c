"""OpenTelemetry's spans, as the collector's file exporter writes them: OTLP in JSON.

A span is an operation on a lock where it has the attribute `lock.op`, or any attribute whose name
begins with `lock.` and an operation as its name, or as the last part of it (`Mutex.unlock`).

- `lock.op`: acquire, release, renew, read, write, cas, add or lost; otherwise the span's name says
  it.
- `lock.key`: which lock; may be missing where there is one only.
- `lock.client`: who does it, one thread of control; otherwise `service.instance.id` or
  `service.name` of the resource, with the span's `thread.id` where it has one.
- `lock.outcome`: `ok`, `fail` (it certainly did not happen: the lock was refused) or `info`;
  otherwise a span with an error is `info`, and any other `ok`. So a refusal has to say `fail`.
- `lock.token`: the fencing token that was granted; `lock.ttl_ms`: the lease that was asked for.
- `lock.value` and `lock.result`: what was written, and what was read.
- `lock.seq`: of an answered read or write the number that the storage gave it, in the order in
  which it served them; `lock.base`: what the written value was computed from.
- `lock.of`: of a renewal the client whose hold it extends, where a keeper renews for it.

One `lock.op` is no operation: `lost` says that when the span began its client was told, or found
out, that it holds the lock no longer; how long the span took does not matter. So these are a write
that the storage served as its second one, and the notice that comes too late for it:

    {"name": "put", "startTimeUnixNano": "1515000000", "endTimeUnixNano": "1516000000",
     "attributes": [{"key": "lock.op", "value": {"stringValue": "write"}},
                    {"key": "lock.key", "value": {"stringValue": "orders"}},
                    {"key": "lock.client", "value": {"stringValue": "a"}},
                    {"key": "lock.value", "value": {"stringValue": "a1"}},
                    {"key": "lock.base", "value": {"stringValue": "old"}},
                    {"key": "lock.seq", "value": {"intValue": "2"}}]}
    {"name": "lost", "startTimeUnixNano": "1520000000", "endTimeUnixNano": "1520000000",
     "attributes": [{"key": "lock.key", "value": {"stringValue": "orders"}},
                    {"key": "lock.client", "value": {"stringValue": "a"}}]}

Other spans are passed over, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, TypeVar

import msgspec

from lockcheck.formats.cells import (
    NO_PAIR,
    NO_RENEWAL,
    NOT_LOST,
    is_pair,
    json_or_text,
    maybe_number,
    ttl_ms_of,
)
from lockcheck.formats.intervals import Intervals, events_of_intervals
from lockcheck.formats.json_documents import Document, read_documents
from lockcheck.formats.names import known_row_f, our_row_f
from lockcheck.formats.source import Source
from lockcheck.history.event import Event, EventType, F, Notice

ATTRIBUTE = "lock."
NEEDED = "a span of a lock has lock.op, lock.key and lock.client among its attributes"
ERROR_CODES = (2, "2", "STATUS_CODE_ERROR")
OUTCOMES = {kind.value: kind for kind in (EventType.OK, EventType.FAIL, EventType.INFO)}
SEPARATOR = re.compile(r"[./:#]")
T = TypeVar("T")


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None

    @property
    def said(self) -> str | None:
        if self.bool_value is not None:
            return str(self.bool_value).lower()
        for value in (self.string_value, self.int_value, self.double_value):
            if value is not None:
                return str(value)
        return None


class _Attribute(msgspec.Struct):
    key: str
    value: _Value = msgspec.field(default_factory=_Value)


class _Status(msgspec.Struct):
    code: int | str = 0


class _Span(msgspec.Struct, rename="camel"):
    name: str = ""
    start_time_unix_nano: int | str = ""
    end_time_unix_nano: int | str = ""
    attributes: list[_Attribute] = []  # msgspec copies it
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(msgspec.Struct):
    spans: list[_Span] = []


class _Resource(msgspec.Struct):
    attributes: list[_Attribute] = []


class _ResourceSpans(msgspec.Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_Scope] = []


class _Export(msgspec.Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []


_decode = msgspec.json.Decoder(_Export).decode


def read_otlp(data: IO[bytes], source: Source) -> Iterator[Event]:
    taking = _Taking(source)
    for document in read_documents(data, source.name, _decode):
        taking.take(document)
    if not taking.rows.lines:
        raise source.error(f"{_none_of(taking.passed_over)}: {NEEDED}")
    if taking.passed_over:
        source.notes.append(_about(taking.passed_over))
    source.counts_from(min(taking.rows.starts, default=0))
    return events_of_intervals(taking.rows, source.name)


def _none_of(spans: int) -> str:
    if spans == 0:
        return "it holds no spans"
    return "its only span is no lock's" if spans == 1 else f"none of its {spans} spans is a lock's"


def _about(spans: int) -> str:
    if spans == 1:
        return "1 span that is no lock's was passed over"
    return f"{spans} spans that are no lock's were passed over"


class _Taking:
    def __init__(self, source: Source) -> None:
        self.rows = Intervals()
        self.passed_over = 0
        self._source = source

    def take(self, document: Document[_Export]) -> None:
        for span, path, resource in _spans(document.value):
            try:
                self._take_span(span, path, resource, document.line)
            except ValueError as error:
                reason = f"{path}, {span.name[:40]!r}: {error}"
                raise self._source.error(reason, document.line, document.column) from error

    def _take_span(self, span: _Span, path: str, resource: dict[str, str], line: int) -> None:
        said = _said(span.attributes)
        f = _operation(span.name, said)
        if f is None:
            self.passed_over += 1
            return
        rows, value = self.rows, _asked(f, said)
        end = _end(f, span, said)
        rows.paths.append(path)
        rows.lines.append(line)
        rows.clients.append(_client(said, resource))
        rows.keys.append(said.get("lock.key"))
        rows.fs.append(f)
        rows.starts.append(_start(span))
        rows.ends.append(end)
        rows.outcomes.append(EventType.INFO if end is None else _outcome(said, span))
        rows.tokens.append(_converted("lock.token", said, maybe_number))
        rows.values.append(value)
        rows.results.append(_converted("lock.result", said, json_or_text))
        rows.nodes.append(resource.get("host.name"))
        rows.ttls_ms.append(_converted("lock.ttl_ms", said, ttl_ms_of))
        rows.seqs.append(_converted("lock.seq", said, maybe_number))
        rows.bases.append(_converted("lock.base", said, json_or_text))
        rows.ofs.append(_owner(f, said))


def _spans(export: _Export) -> Iterator[tuple[_Span, str, dict[str, str]]]:
    """Each with where it is, and what its resource says."""
    for i, of_resource in enumerate(export.resource_spans):
        resource = _said(of_resource.resource.attributes)
        for j, scope in enumerate(of_resource.scope_spans):
            for k, span in enumerate(scope.spans):
                yield span, f"resourceSpans[{i}].scopeSpans[{j}].spans[{k}]", resource


def _said(attributes: list[_Attribute]) -> dict[str, str]:
    return {each.key: each.value.said for each in attributes if each.value.said is not None}


def _operation(name: str, said: dict[str, str]) -> str | None:
    if said.get("lock.op"):
        return our_row_f(said["lock.op"])
    if not any(key.startswith(ATTRIBUTE) for key in said):
        return None
    return known_row_f(SEPARATOR.split(name)[-1].replace(" ", ""))


def _client(said: dict[str, str], resource: dict[str, str]) -> str:
    client = said.get("lock.client")
    if client:
        return client
    service = resource.get("service.instance.id") or resource.get("service.name")
    if not service:
        raise ValueError(f"nobody's: {NEEDED}")
    thread = said.get("thread.id")
    return f"{service} thread {thread}" if thread else service


def _owner(f: str, said: dict[str, str]) -> str | None:
    owner = said.get("lock.of") or None
    if owner is not None and f != F.RENEW:
        raise ValueError(f"lock.of: {NO_RENEWAL}")
    return owner


def _start(span: _Span) -> int:
    start = _time("startTimeUnixNano", span.start_time_unix_nano)
    if start is None:
        raise ValueError("it has no startTimeUnixNano")
    return start


def _end(f: str, span: _Span, said: dict[str, str]) -> int | None:
    """None for what has no answer, which a notice never has."""
    end = _time("endTimeUnixNano", span.end_time_unix_nano)
    if f != Notice.LOST:
        return end
    if _outcome(said, span) is EventType.FAIL:
        raise ValueError(f"lock.outcome: {NOT_LOST}")
    return None


def _time(name: str, said: int | str) -> int | None:
    """Zero is OTLP's word for none."""
    return _converted(name, {name: str(said)}, maybe_number) or None


def _converted(name: str, said: dict[str, str], convert: Callable[[str], T]) -> T:
    try:
        return convert(said.get(name, ""))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _outcome(said: dict[str, str], span: _Span) -> EventType:
    named = said.get("lock.outcome")
    if named is None:
        return EventType.INFO if span.status.code in ERROR_CODES else EventType.OK
    outcome = OUTCOMES.get(named.lower())
    if outcome is None:
        raise ValueError(f"lock.outcome is neither ok, fail nor info: {named[:40]!r}")
    return outcome


def _asked(f: str, said: dict[str, str]) -> object:
    value = _converted("lock.value", said, json_or_text)
    if f == F.CAS and not is_pair(value):
        raise ValueError(f"lock.value: {NO_PAIR}")
    return value
