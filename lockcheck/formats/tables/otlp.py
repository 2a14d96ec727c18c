"""OpenTelemetry spans, as the collector's file exporter writes them: OTLP in JSON.

A span is an operation on a lock if it has the attribute `lock.op`, or if it has any attribute whose
name begins with `lock.` and its own name, or the last part of it, is an operation (`Mutex.unlock`).
Other spans are ignored, and counted. docs/logs.md has the attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import IO, Generic, TypeAlias, TypeVar

import msgspec

from lockcheck.errors import HistoryError
from lockcheck.formats.json_documents import Document, read_lines_of_documents
from lockcheck.formats.names import known_row_f, our_row_f
from lockcheck.formats.source import Source
from lockcheck.formats.tables.intervals import COLUMNS, Cells, Intervals
from lockcheck.formats.tables.row_events import RowEvents
from lockcheck.formats.tables.rows import Rows
from lockcheck.history.event import Event, EventType, Notice

ATTRIBUTE = "lock."
NEEDED = "a span of a lock has lock.op, lock.key and lock.client among its attributes"
ERROR_CODES = (2, "2", "STATUS_CODE_ERROR")
NOT_LOCKS = "{number} spans that are not a lock's were ignored"
SEPARATOR = re.compile(r"[./:#]")
CHUNK_SPANS = 4096
DECODED_AT_ONCE = 1 << 20  # bytes of a document
NAMES = {"start_ns": "startTimeUnixNano", "end_ns": "endTimeUnixNano", "node": "host.name"}
DERIVED = ("client", "op", "start_ns", "end_ns", "outcome", "node")  # see `_derived`
COPIED = tuple(name for name in COLUMNS if name not in DERIVED)
KNOWN = frozenset({ATTRIBUTE + name for name in (*COPIED, "op", "outcome", "client")})


class _Value(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None
    bool_value: bool | None = None
    double_value: float | str | None = None

    @property
    def text(self) -> str | None:
        if self.string_value is not None:
            return self.string_value
        if self.bool_value is not None:
            return str(self.bool_value).lower()
        value = self.double_value if self.int_value is None else self.int_value
        return None if value is None else str(value)


class _Attribute(msgspec.Struct):
    key: str
    value: _Value = msgspec.field(default_factory=_Value)


class _Status(msgspec.Struct):
    code: int | str = 0


class _Span(msgspec.Struct, rename="camel"):
    name: str = ""
    start_time_unix_nano: int | str = ""
    end_time_unix_nano: int | str = ""
    attributes: tuple[_Attribute, ...] = ()
    status: _Status | None = None


class _Resource(msgspec.Struct):
    attributes: tuple[_Attribute, ...] = ()


S_co = TypeVar("S_co", bound=_Span | msgspec.Raw, covariant=True)


class _Scope(msgspec.Struct, Generic[S_co]):
    spans: tuple[S_co, ...] = ()


class _ResourceSpans(msgspec.Struct, Generic[S_co], rename="camel"):
    resource: _Resource | None = None
    scope_spans: tuple[_Scope[S_co], ...] = ()


class _Export(msgspec.Struct, Generic[S_co], rename="camel"):
    resource_spans: tuple[_ResourceSpans[S_co], ...] = ()


_decode_small = msgspec.json.Decoder(_Export[_Span]).decode
_decode_large = msgspec.json.Decoder(_Export[msgspec.Raw]).decode
_decode_span = msgspec.json.Decoder(_Span).decode


def _decode(text: str | bytes) -> _Export[_Span | msgspec.Raw]:
    """The spans of a large document are decoded one by one: they take far more memory than text."""
    return (_decode_small if len(text) <= DECODED_AT_ONCE else _decode_large)(text)


SpanPlace: TypeAlias = tuple[int, int, str, int, str]  # line, column, path to list, index, name


def read_otlp(data: IO[bytes], source: Source) -> Iterable[Event]:
    spans = _SpanCollector(source)
    for document in read_lines_of_documents(data, source.name, _decode):
        spans.take(document)
    rows, ignored = spans.rows(), spans.ignored
    if not len(rows):
        raise source.error(f"{_none_of(ignored)}: {NEEDED}")
    source.note(ignored, "1 span that is not a lock's was ignored", NOT_LOCKS)
    if spans.strange:
        listed = ", ".join(sorted(spans.strange))
        source.notes.append(f"attributes that lockcheck does not know were ignored: {listed}")
    return RowEvents(Rows(rows, source))


def _none_of(spans: int) -> str:
    if spans == 0:
        return "it contains no spans"
    if spans == 1:
        return "its only span is not a lock's"
    return f"none of its {spans} spans is a lock's"


class _SpanCollector:
    """Collects the spans of locks as rows, and counts the others."""

    def __init__(self, source: Source) -> None:
        self.ignored = 0
        self.strange: set[str] = set()  # unknown attributes of locks
        self._source = source
        self._rows = Intervals()
        self._attributes: list[dict[str, str]] = []  # of each span
        self._derived: list[tuple[str, ...]] = []
        self._places: list[SpanPlace] = []

    def rows(self) -> Intervals:
        self._flush()
        return self._rows

    def take(self, document: Document[_Export[_Span | msgspec.Raw]]) -> None:
        value, line, column = document
        for i, of_resource in enumerate(value.resource_spans):
            resource = _texts(of_resource.resource.attributes) if of_resource.resource else {}
            for j, scope in enumerate(of_resource.scope_spans):
                path = f"resourceSpans[{i}].scopeSpans[{j}].spans"
                for number, given in enumerate(scope.spans):
                    try:
                        span = given if isinstance(given, _Span) else _decode_span(given)
                    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
                        reason = f"{path}[{number}]: {error}"
                        raise self._source.error(reason, line, column) from error
                    self._take_span(span, resource, (line, column, path, number, span.name))

    def _take_span(self, span: _Span, resource: dict[str, str], place: SpanPlace) -> None:
        attributes = _texts(span.attributes)
        op = attributes.get("lock.op") or _named(span.name, attributes)
        if op is None:
            self.ignored += 1
            return
        try:
            self._derived.append(_derived(span, op, attributes, resource))
        except ValueError as error:
            raise self._error(place, str(error)) from error
        self._attributes.append(attributes)
        self._places.append(place)
        if len(self._places) == CHUNK_SPANS:
            self._flush()

    def _flush(self) -> None:
        spans, places, derived = self._attributes, self._places, self._derived
        if not places:
            return
        self._attributes, self._places, self._derived = [], [], []

        def error(place: int, name: str, reason: str) -> HistoryError:
            return self._error(places[place], f"{NAMES.get(name) or ATTRIBUTE + name}: {reason}")

        columns: dict[str, Sequence[str]] = dict(
            zip(DERIVED, zip(*derived, strict=True), strict=True)
        )
        known = set().union(*spans)
        self.strange |= {name for name in known - KNOWN if name.startswith(ATTRIBUTE)}
        for name in COPIED:
            key = ATTRIBUTE + name
            if key in known:
                columns[name] = [span.get(key, "") for span in spans]
        lines, _, paths, numbers, _ = zip(*places, strict=True)
        self._rows.take(Cells(columns, lines, error, paths, numbers))

    def _error(self, place: SpanPlace, reason: str) -> HistoryError:
        line, column, path, number, name = place
        reason = f"{path}[{number}], {name[:40]!r}: {reason}"
        return self._source.error(reason, line, column)


def _texts(attributes: Iterable[_Attribute]) -> dict[str, str]:
    return {each.key: text for each in attributes if (text := each.value.text) is not None}


def _named(name: str, attributes: dict[str, str]) -> str | None:
    """The operation that the span's name suggests, if it has any attribute of a lock."""
    if not any(key.startswith(ATTRIBUTE) for key in attributes):
        return None
    return known_row_f(SEPARATOR.split(name)[-1].replace(" ", ""))


def _derived(
    span: _Span, op: str, attributes: dict[str, str], resource: dict[str, str]
) -> tuple[str, ...]:
    start, end = _time(span.start_time_unix_nano), _time(span.end_time_unix_nano)
    if not start:
        raise ValueError("it has no startTimeUnixNano")
    outcome = attributes.get("lock.outcome")
    if our_row_f(op) == Notice.LOST:
        end, outcome = "", outcome or ""
    elif not end:
        outcome = EventType.INFO
    elif outcome is None:
        failed = span.status is not None and span.status.code in ERROR_CODES
        outcome = EventType.INFO if failed else EventType.OK
    client = attributes.get("lock.client") or _client(attributes, resource)
    return client, op, start, end, outcome, resource.get("host.name", "")


def _client(attributes: dict[str, str], resource: dict[str, str]) -> str:
    service = resource.get("service.instance.id") or resource.get("service.name")
    if not service:
        raise ValueError(f"it names no client: {NEEDED}")
    thread = attributes.get("thread.id")
    return f"{service} thread {thread}" if thread else service


def _time(nanoseconds: int | str) -> str:
    """The time as text; empty for zero, which means none in OTLP."""
    return "" if nanoseconds in (0, "0") else str(nanoseconds)
