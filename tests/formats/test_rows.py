"""Operations as rows: CSV, and OpenTelemetry's spans."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from lockcheck.formats import FORMATS, ReadOptions
from lockcheck.formats.exports.export import write
from lockcheck.formats.source import Source
from lockcheck.history import Ending, Event, Refusal
from tests.formats.texts import NAME, brief, error_in, events_of, history_of, place_and_reason

HEADER = "client,key,op,start_ns,end_ns,outcome,token\n"
EPOCH = 1_700_000_000_000_000_000


def test_csv() -> None:
    text = HEADER + (
        f"w7,orders,acquire,{EPOCH},{EPOCH + 4},ok,33\n"
        f"w7,orders,release,{EPOCH + 50},{EPOCH + 53},ok,\n"
        f"w9,orders,lock,{EPOCH + 1},{EPOCH + 2},fail,\n"
        f"w9,orders,lock,{EPOCH + 10},,,\n"
    )
    assert brief(events_of("csv", text)) == [
        "0 w7 invoke acquire orders",
        "1 w9 invoke acquire orders",
        "2 w9 fail acquire orders",
        "4 w7 ok acquire orders token=33",
        "10 w9 invoke acquire orders",
        "50 w7 invoke release orders",
        "53 w7 ok release orders",
    ]


def test_columns_in_any_order_and_others_beside_them() -> None:
    text = (
        "token,colour,OUTCOME,end_ns,start_ns,op,key,client,value,result,ttl_ms,node\r\n"
        ',red,ok,5,3,write,,1,"[1, ""a""]",,,n1\r\n'
        ",blue,ok,9,7,read,,1,,plain text,,n1\r\n"
        ",blue,ok,12,11,acquire,,1,,,500,n1\r\n"
        "\r\n"
        "4,blue,ok,15,14,write,,1,2,,,n1\r\n"
    )
    events = events_of("csv", text)
    assert brief(events) == [
        "0 1 invoke write =[1, 'a']",
        "2 1 ok write",
        "4 1 invoke read",
        "6 1 ok read =plain text",
        "8 1 invoke acquire",
        "9 1 ok acquire",
        "11 1 invoke write =2 token=4",
        "12 1 ok write",
    ]
    assert events[4].ttl_ms == 500
    assert {event.node for event in events} == {"n1"}


def test_numbers_below_zero_and_with_blanks() -> None:
    text = HEADER + "a,k,acquire,-5, 6,ok, 7\n"
    assert brief(events_of("csv", text)) == ["0 a invoke acquire k", "11 a ok acquire k token=7"]


def test_a_client_without_an_answer_may_go_on() -> None:
    text = HEADER + "a,k,acquire,0,,,\na,k,acquire,9,,info,\n"
    assert brief(events_of("csv", text)) == [
        "0 a invoke acquire k",
        "9 a info acquire k",
        "9 a invoke acquire k",
    ]
    assert [o.unknown for o in history_of("csv", text).operations] == [True, True]


def test_what_ends_where_the_next_begins() -> None:
    text = HEADER + "a,k,release,5,5,ok,\na,k,acquire,5,5,ok,\na,k,acquire,0,5,ok,\n"
    assert [o.f for o in history_of("csv", text).operations] == ["acquire", "release", "acquire"]


def test_clients_that_have_names_of_ours() -> None:
    text = HEADER + "nemesis,k,acquire,5,6,ok,\nstorage,k,acquire,5,7,ok,\n"
    history = history_of("csv", text)
    assert [o.process for o in history.operations] == ["client nemesis", "client storage"]


def test_numbers_are_clients_only_where_all_of_them_are() -> None:
    text = HEADER + "1,k,acquire,5,6,ok,\n"
    assert events_of("csv", text)[0].process == 1
    assert events_of("csv", text + "a,k,acquire,5,7,ok,\n")[0].process == "1"
    assert events_of("csv", text.replace("1,k", "01,k"))[0].process == "01"


def test_the_terms_of_the_user_come_first() -> None:
    history = history_of(
        "csv", HEADER + "1,k,acquire,5,6,ok,\n", ReadOptions(model="mutex", ttl_ms=5)
    )
    assert (history.terms.model, history.terms.ttl_ms) == ("mutex", 5)


LONG_HEADER = HEADER.strip() + ",seq,base\n"


def test_numbers_and_bases_of_writes() -> None:
    text = LONG_HEADER + (
        f'a,k,write,1,2,ok,,{(1 << 63) - 1},"[1, ""x""]"\n'
        "a,k,write,3,4,fail,,-5,plain text\n"
        "a,k,read,5,6,ok,,0,\n"
        "a,k,write,7,8,info,,9,\n"
        "a,k,write,9,,,,9,\n"
    )
    events = events_of("csv", text)
    assert [event.base for event in events[:4]] == [[1, "x"], None, "plain text", None]
    assert [event.seq for event in events] == [
        *(None, (1 << 63) - 1),
        *(None, -5),
        *(None, 0),
        *(None, None),  # it is unknown whether the storage accepted it
        None,
    ]


RELEASED_HEADER = HEADER.strip() + ",shared,released\n"


def test_what_a_release_says() -> None:
    text = RELEASED_HEADER + (
        "a,k,acquire,0,1,ok,,,\n"
        "a,k,release,2,3,ok,,,unsaid\n"
        "a,k,release,4,5,ok,,,false\n"
        "a,k,release,6,7,ok,,,TRUE\n"
        "a,k,release,8,9,fail,,,unsaid\n"
        "a,k,release,10,11,info,,,false\n"
    )
    releases = history_of("csv", text).operations[1:]
    assert [(o.ok, o.failed, o.unsaid) for o in releases] == [
        (True, False, True),
        (False, True, False),  # there was nothing to release
        (True, False, False),
        (False, True, False),
        (False, False, False),
    ]
    assert releases[1].refusal is Refusal.NOT_OWNER


REFUSED_HEADER = HEADER.strip() + ",refused\n"


def test_why_it_was_refused() -> None:
    rows = [
        f"{n},k,acquire,{n},{n + 1},fail,,{why}\n" for n, why in enumerate((*Refusal, " HELD", ""))
    ]
    history = history_of("csv", REFUSED_HEADER + "".join(rows))
    assert [o.refusal for o in history.operations] == [*Refusal, Refusal.HELD, Refusal.HELD]
    out = BytesIO()
    write(history, "csv", out)
    again = history_of("csv", out.getvalue())
    assert [o.refusal for o in again.operations] == [o.refusal for o in history.operations]


def test_what_cannot_have_been_refused() -> None:
    wrong = {
        "ok,,held": "only what failed can have been refused",
        "fail,,busy": "none of held, gone",
    }
    for row, reason in wrong.items():
        error = error_in("csv", REFUSED_HEADER + f"a,k,acquire,0,1,{row}\n")
        assert reason in str(error)


def test_what_is_shared() -> None:
    rows = ("r,k,acquire,0,1,ok,,yes,\n", "s,k,acquire,2,3,ok,,0,\n", "t,k,acquire,4,5,ok,,,\n")
    shared = [
        o.invoke.shared for o in history_of("csv", RELEASED_HEADER + "".join(rows)).operations
    ]
    assert shared == [True, False, False]


def test_spans_say_it_too() -> None:
    text = export(
        span("acquire", 1, 2, lock__key="k", lock__shared="true"),
        span("release", 3, 4, lock__key="k", lock__released="unsaid"),
        span("acquire", 5, 6, lock__key="k", lock__outcome="fail", lock__refused="unavailable"),
        service__name="w",
    )
    acquire, release, refused = history_of("otlp", text).operations
    assert (acquire.invoke.shared, release.unsaid) == (True, True)
    assert refused.refusal is Refusal.UNAVAILABLE


ISO = {
    "2023-11-14T22:13:20Z": 0,
    "2023-11-14T22:13:20.123456789Z": 123_456_789,
    "2023-11-14 22:13:20,5": 500_000_000,
    "2023-11-14T23:13:20+01:00": 0,
    "2023-11-14T17:43:20-0430": 0,
    "2023-11-14t22:13z": -20_000_000_000,
    "1700000000000000000": 0,
}


@pytest.mark.parametrize(("text", "since_ns"), ISO.items())
def test_times_may_be_dates(text: str, since_ns: int) -> None:
    source = Source(NAME)
    rows = f"a,k,acquire,{text},{text},ok,\n".replace(",5,", ".5,")
    assert list(FORMATS["csv"].read(BytesIO((HEADER + rows).encode()), source))
    assert source.began_ns == 1_700_000_000_000_000_000 + since_ns


@pytest.mark.parametrize("text", ["2023-13-14T22:13:20Z", "2023-11-14", "22:13:20", "2023-11-14T2"])
def test_what_is_no_date(text: str) -> None:
    error = error_in("csv", HEADER + f"a,k,acquire,{text},9,ok,\n")
    assert "start_ns: " in place_and_reason(error)[2]


def test_columns_that_nobody_knows_are_named() -> None:
    source = Source(NAME)
    header = HEADER.strip().replace("start_ns", "Start") + ",mood,weather\n"
    list(
        FORMATS["csv"].read(BytesIO((header + "a,k,acquire,1,2,ok,,good,fine\n").encode()), source)
    )
    assert source.notes == ["columns that lockcheck does not know were ignored: 'mood', 'weather'"]
    source = Source(NAME)
    text = export(span("acquire", 1, 2, lock__key="k", lock__mood="good"), service__name="w")
    list(FORMATS["otlp"].read(BytesIO(text.encode()), source))
    assert source.notes == ["attributes that lockcheck does not know were ignored: lock.mood"]


def test_equal_rows_are_one() -> None:
    rows = [
        "a,k,acquire,0,1,ok,7,,\n",
        "a,k,release,2,3,ok,,,\n",
        "b,k,acquire,4,4,ok,8,,\n",
        "a,n,add,9,9,ok,,1,\n",
    ]
    header = HEADER.strip() + ",value,node\n"
    source = Source(NAME)
    text = header + "".join([*rows, rows[1], *rows[:3], rows[3]])
    events = list(FORMATS["csv"].read(BytesIO(text.encode()), source))
    assert source.notes == ["4 rows are copies of others: they were ignored"]
    once = events_of("csv", header + "".join([*rows, rows[3]]))  # both were added, perhaps
    assert brief(events) == brief(once)


def test_rows_that_differ_are_no_copies() -> None:
    source = Source(NAME)
    text = HEADER + "a,k,acquire,0,1,ok,7\nb,k,acquire,0,1,ok,7\na,k,acquire,2,3,ok,7\n"
    assert len(list(FORMATS["csv"].read(BytesIO(text.encode()), source))) == 6
    assert source.notes == []


def test_a_notice_is_no_operation() -> None:
    text = LONG_HEADER + (
        "a,k,acquire,0,2,ok,7,,\n"
        "a,k,write,4,9,ok,,,\n"
        "a,k,lost,6,,,,,\n"
        "a,k,LOCK-LOST,10,10,ok,,,\n"
        "a,k,release,10,11,fail,,,\n"
        "a,k,read,12,,,,,\n"
        "a,k,lost,13,13,,,,\n"
    )
    assert brief(events_of("csv", text)) == [
        "0 a invoke acquire k",
        "2 a ok acquire k token=7",
        "4 a invoke write k",
        "6 a info lost k",
        "9 a ok write k",
        "10 a info lost k",
        "10 a invoke release k",
        "11 a fail release k",
        "12 a invoke read k",
        "13 a info lost k",
    ]
    history = history_of("csv", text)
    assert [(o.f, o.answer is not None) for o in history.operations] == [
        ("acquire", True),
        ("write", True),
        ("release", True),
        ("read", False),
    ]
    assert [(hold.end_ns, hold.ending) for hold in history.holds] == [(6, Ending.LOST)]


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ("a,k,acquire,0,5,ok,\na,k,lost,5,,,\n", [(5, 5)]),
        ("a,k,lost,5,,,\na,k,acquire,0,5,ok,\n", [(5, 5)]),
        ("a,k,acquire,0,1,ok,\na,k,acquire,5,6,ok,\na,k,lost,5,,,\n", [(1, 5), (6, 6)]),
        ("a,k,acquire,0,1,ok,\na,k,lost,5,,,\na,k,acquire,5,5,ok,\n", [(1, 5), (5, 5)]),
        ("a,k,acquire,5,5,ok,\na,k,lost,5,5,,\na,k,read,6,9,ok,\n", [(5, 5)]),
        ("a,k,lost,5,5,,\na,k,acquire,5,5,ok,\na,k,read,6,9,ok,\n", [(5, 9)]),
    ],
)
def test_a_notice_at_the_time_of_something_else(rows: str, holds: list[tuple[int, int]]) -> None:
    first = min(int(row.split(",")[3]) for row in rows.splitlines())
    found = history_of("csv", HEADER + rows).holds
    assert [(hold.start_ns + first, hold.end_ns + first) for hold in found] == holds


def test_only_notices() -> None:
    assert brief(events_of("csv", HEADER + "1,,lost,5,,,\n")) == ["0 1 info lost"]


DAMAGED_ROWS = {
    "no number": ("a,k,acquire,x,2,ok,", 3, 13, "start_ns: not a 64-bit number: 'x'"),
    "a number of Python's": ("a,k,acquire,1_0,20,ok,", 3, 13, "start_ns: not a 64-bit number"),
    "a number with a sign": ("a,k,acquire,+1,20,ok,", 3, 13, "start_ns: not a 64-bit number"),
    "only a sign": ("a,k,acquire,-,20,ok,", 3, 13, "start_ns: not a 64-bit number: '-'"),
    "two signs": ("a,k,acquire,--1,20,ok,", 3, 13, "start_ns: not a 64-bit number: '--1'"),
    "two numbers": ("a,k,acquire,1 1,20,ok,", 3, 13, "start_ns: not a 64-bit number: '1 1'"),
    "digits of elsewhere": ("a,k,acquire,\uff11,20,ok,", 3, 13, "start_ns: not a 64-bit number"),
    "a token of elsewhere": ("a,k,acquire,1,2,ok,\uff11", 3, 20, "token: not a 64-bit number"),
    "a huge number": (f"a,k,acquire,1,{1 << 64},ok,", 3, 15, "end_ns: not a 64-bit number"),
    "a number without end": (f"a,k,acquire,1,{'9' * 9999},ok,", 3, 15, "end_ns: not a 64-bit"),
    "a huge token": (f"a,k,acquire,1,2,ok,{1 << 63}", 3, 20, "token: not a 64-bit number"),
    "no outcome": ("a,k,acquire,1,2,,", 3, 17, "outcome: an answer without an outcome"),
    "no time": ("a,k,acquire,1,,ok,", 3, 15, "end_ns: an answer without a time"),
    "another outcome": ("a,k,acquire,1,2,yes,", 3, 17, "outcome: neither ok, fail nor info: 'yes'"),
    "no client": (",k,acquire,1,2,ok,", 3, 1, "client: an operation without a client"),
    "nothing": ("a,k,,1,2,ok,", 3, 5, "op: no operation"),
    "too few": ("a,k,acquire", 3, None, "a row of 3 cells where 7 are needed"),
    "back in time": ("a,k,acquire,3,2,ok,", 3, None, "it ends before it begins"),
    "far back in time": ("a,k,acquire,3,-2,ok,", 3, None, "it ends before it begins"),
    "far in the future": (f"a,k,acquire,3,{1 << 61},ok,", 3, None, "its time lies more than 36"),
    "busy": ("z,k,release,8,12,ok,", 3, None, "its client is still busy with line 2"),
    "a quote": ('a,"k,acquire,3,4,ok,', 3, None, "not CSV: unexpected end of data"),
    "a notice that took time": (
        "a,k,lost,1,2,,",
        *(3, 12, "end_ns: a notice has one time only"),
    ),
    "a notice before itself": ("a,k,lost,1,0,,", 3, 12, "end_ns: a notice has one time only"),
    "a notice of nothing": ("a,k,lost,1,,fail,", 3, 13, "outcome: a notice that the lock was lost"),
    "half a cas": ("a,k,cas,1,2,ok,", 3, 1, "value: a cas without its pair of expected"),
}


@pytest.mark.parametrize(
    ("row", "line", "column", "reason"), DAMAGED_ROWS.values(), ids=DAMAGED_ROWS
)
def test_a_damaged_row_is_named(row: str, line: int, column: int | None, reason: str) -> None:
    found = place_and_reason(error_in("csv", f"{HEADER}z,k,acquire,0,9,ok,\n{row}\n"))
    assert found[:2] == (line, column)
    assert found[2].startswith(reason)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "its header lacks the column client, key, op, start_ns, end_ns, outcome"),
        ("client,key,op\n", 1, "its header lacks the column start_ns, end_ns, outcome"),
        ("op," + HEADER, 1, "its header names a column twice"),
        (f"{HEADER.strip()},value\na,k,write,1,2,ok,,{'[' * 99}\n", 2, "value: nested deeper than"),
        (f"{HEADER.strip()},ttl_ms\na,k,acquire,1,2,ok,,-1\n", 2, "ttl_ms: not a lease: -1"),
        (f"{LONG_HEADER}a,k,write,1,2,ok,,x,\n", 2, "seq: not a 64-bit number: 'x'"),
        (f"{LONG_HEADER}a,k,write,1,2,ok,,{1 << 63},\n", 2, "seq: not a 64-bit number"),
        (f"{LONG_HEADER}a,k,write,1,2,ok,,1,{'[' * 99}\n", 2, "base: nested deeper than"),
        (
            f"{LONG_HEADER}a,k,write,1,2,ok,,5,\nb,k,read,1,2,ok,,5,\nb,k,write,3,4,ok,,5,\n",
            *(4, "its number 5 is that of another write, line 2"),
        ),
        (HEADER + "x" * (1 << 21), 2, "longer than 1048576 bytes"),
    ],
)
def test_a_damaged_table_is_named(text: str, line: int, reason: str) -> None:
    found = place_and_reason(error_in("csv", text))
    assert found[0] == line
    assert found[2].startswith(reason)


@pytest.mark.parametrize(
    "rows",
    [
        "a,k,write,1,2,ok,,5,\nb,l,write,1,2,ok,,5,\n",
        "a,k,write,1,2,ok,,5,\nb,k,read,3,4,ok,,5,\n",
        "a,k,write,1,2,ok,,5,\nb,k,write,3,4,info,,5,\n",
        "a,k,write,1,2,fail,,5,\nb,k,write,3,4,ok,,5,\n",
    ],
    ids=["of two keys", "a read of it", "unconfirmed", "refused"],
)
def test_numbers_that_are_the_same_and_may_be(rows: str) -> None:
    assert len(history_of("csv", LONG_HEADER + rows).operations) == 2


def test_what_is_no_utf8_is_named_with_its_place() -> None:
    error = error_in("csv", HEADER.encode() + "é,\xff".encode("latin-1"))
    assert place_and_reason(error)[:2] == (2, 1)


# --- spans -----------------------------------------------------------------------------------


def attributes(given: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {str: "stringValue", int: "intValue", bool: "boolValue", float: "doubleValue"}
    return [{"key": key, "value": {kinds[type(value)]: value}} for key, value in given.items()]


def span(name: str, start: Any, end: Any, code: Any = 0, **given: Any) -> dict[str, Any]:
    renamed = {key.replace("__", "."): value for key, value in given.items()}
    return {
        "name": name,
        "traceId": "5b8efff798038103d269b633813fc60c",
        "startTimeUnixNano": start,
        "endTimeUnixNano": end,
        "attributes": attributes(renamed),
        "status": {"code": code},
    }


def export(*spans: dict[str, Any], **resource: Any) -> str:
    renamed = {key.replace("__", "."): value for key, value in resource.items()}
    whole = {"resource": {"attributes": attributes(renamed)}, "scopeSpans": [{"spans": spans}]}
    return json.dumps({"resourceSpans": [whole]})


BASED = {"lock__base": '{"a": 1}'}
HELD = span("Mutex.tryLock", str(EPOCH), str(EPOCH + 9), lock__key="k", lock__token=7)


def test_spans() -> None:
    text = export(
        HELD,
        span("GET /", EPOCH, EPOCH + 5),
        span("x", EPOCH + 19, EPOCH + 25, 2, lock__op="unlock", lock__key="k", lock__client="c"),
        span("acquire", EPOCH + 20, EPOCH + 22, 2, lock__key="k", lock__outcome="fail"),
        span("acquire", EPOCH + 30, "0", lock__key="k", lock__ttl_ms="500"),
        service__name="w",
    )
    events = events_of("otlp", text)
    assert brief(events) == [
        "0 w invoke acquire k",
        "9 w ok acquire k token=7",
        "19 c invoke release k",
        "20 w invoke acquire k",
        "22 w fail acquire k",
        "25 c info release k",
        "30 w invoke acquire k",
    ]
    assert events[-1].ttl_ms == 500


def test_a_document_a_line_or_over_many() -> None:
    later = span("Lock.release", EPOCH + 20, EPOCH + 21, lock__key="k")
    lines = [export(HELD, service__name="w"), export(later, service__name="w")]
    pretty = "\n".join(json.dumps(json.loads(line), indent=2) for line in lines)
    assert len(events_of("otlp", "\n".join(lines))) == 4
    assert brief(events_of("otlp", pretty)) == brief(events_of("otlp", "\n".join(lines)))


def test_documents_that_are_lines_and_then_are_not() -> None:
    spans = [span("lock", EPOCH + at, EPOCH + at + 1, lock__key="k") for at in range(0, 60, 2)]
    documents = [json.loads(export(each, service__name="w")) for each in spans]
    lines = [json.dumps(document) for document in documents]
    lines[20] = json.dumps(documents[20], indent=1)  # from here on they are no lines any more
    found = [event.time for event in events_of("otlp", "\n".join(lines))]
    assert found == list(range(60))
    damaged = [*lines[:19], lines[19].replace('"k"', "k"), *lines[20:]]
    assert place_and_reason(error_in("otlp", "\n".join(damaged)))[0] == 20


def test_numbers_and_notices_as_spans() -> None:
    text = export(
        HELD,
        span("w", EPOCH + 10, EPOCH + 30, lock__op="put", lock__key="k", lock__seq=4, **BASED),
        span("lost", EPOCH + 20, EPOCH + 22, 2, lock__key="k"),
        span("x", EPOCH + 40, 0, lock__op="lost", lock__key="k"),
        service__name="w",
    )
    events = events_of("otlp", text)
    assert brief(events) == [
        "0 w invoke acquire k",
        "9 w ok acquire k token=7",
        "10 w invoke write k",
        "20 w info lost k",
        "30 w ok write k",
        "40 w info lost k",
    ]
    assert (events[2].base, events[4].seq) == ({"a": 1}, 4)


@pytest.mark.parametrize(
    ("resource", "client"),
    [
        ({"service__name": "s"}, "s"),
        ({"service__name": "s", "service__instance__id": "i"}, "i"),
    ],
)
def test_the_client_of_a_span(resource: dict[str, str], client: str) -> None:
    assert events_of("otlp", export(HELD, **resource))[0].process == client
    threaded = span("acquire", 5, 6, lock__key="k", thread__id=3)
    assert events_of("otlp", export(threaded, **resource))[0].process == f"{client} thread 3"


def test_spans_of_others_are_counted() -> None:
    source = Source(NAME)
    text = export(
        HELD, span("destroyLock", 1, 2, lock__key="k"), span("get", 1, 2), a="b", service__name="w"
    )
    events: list[Event] = list(FORMATS["otlp"].read(BytesIO(text.encode()), source))
    assert len(events) == 2
    assert source.notes == ["2 spans that are not a lock's were ignored"]


def test_one_span_of_others() -> None:
    source = Source(NAME)
    text = export(HELD, span("get", 1, 2), service__name="w")
    assert list(FORMATS["otlp"].read(BytesIO(text.encode()), source))
    assert source.notes == ["1 span that is not a lock's was ignored"]


SPANS = "resourceSpans[0].scopeSpans[0].spans"
W = {"service__name": "w"}
DAMAGED_SPANS = {
    "none": (export(), "it contains no spans: a span of a lock has lock.op"),
    "not of a lock": (export(span("GET", 1, 2)), "its only span is not a lock's: a span of"),
    "none of a lock": (
        export(span("GET", 1, 2), span("GET", 1, 2)),
        "none of its 2 spans is a lock's: a span of",
    ),
    "no client": (
        export(HELD),
        f"{SPANS}[0], 'Mutex.tryLock': it names no client: a span of a lock has",
    ),
    "no start": (
        export(span("acquire", "", 2, lock__key="k"), service__name="w"),
        f"{SPANS}[0], 'acquire': it has no startTimeUnixNano",
    ),
    "no time": (
        export(span("acquire", "x", 2, lock__key="k"), service__name="w"),
        f"{SPANS}[0], 'acquire': startTimeUnixNano: not a 64-bit number: 'x'",
    ),
    "a time beyond all": (
        export(HELD, span("acquire", 10**20, 2, lock__key="k"), **W),
        f"{SPANS}[1], 'acquire': startTimeUnixNano: not a 64-bit number",
    ),
    "a token without a number": (
        export(span("acquire", 1, 2, **{"lock.token": "t"}), **W),
        f"{SPANS}[0], 'acquire': lock.token: not a 64-bit number: 't'",
    ),
    "a storage's number that is none": (
        export(span("put", 1, 2, **{"lock.seq": "t"}), **W),
        f"{SPANS}[0], 'put': lock.seq: not a 64-bit number: 't'",
    ),
    "the same number twice": (
        export(
            span("put", 1, 2, lock__seq=1),
            span("put", 3, 4, lock__seq=1),
            **W,
        ),
        f"{SPANS}[1]: its number 1 is that of another write, {SPANS}[0]",
    ),
    "a notice of nothing": (
        export(span("lost", 1, 2, lock__outcome="fail"), **W),
        f"{SPANS}[0], 'lost': lock.outcome: a notice that the lock was lost cannot",
    ),
    "a lease that is none": (
        export(HELD, span("GET", 1, 2), span("acquire", 1, 2, lock__ttl_ms="-1"), **W),
        f"{SPANS}[2], 'acquire': lock.ttl_ms: not a lease: -1",
    ),
    "half a cas": (
        export(span("cas", 1, 2, lock__value="7"), **W),
        f"{SPANS}[0], 'cas': lock.value: a cas without its pair",
    ),
    "busy": (
        export(HELD, span("GET", 1, 2), span("unlock", EPOCH + 5, EPOCH + 7, lock__key="k"), **W),
        f"{SPANS}[2]: its client is still busy with {SPANS}[0]",
    ),
    "back in time": (
        export(HELD, span("unlock", EPOCH + 15, EPOCH + 12, lock__key="k"), **W),
        f"{SPANS}[1]: it ends before it begins",
    ),
    "far in the future": (
        export(HELD, span("unlock", 1 << 62, 1 << 62, lock__key="k"), **W),
        f"{SPANS}[1]: its time lies more than 36 years",
    ),
    "another outcome": (
        export(span("acquire", 1, 2, lock__outcome="yes"), service__name="w"),
        f"{SPANS}[0], 'acquire': lock.outcome: neither",
    ),
    "another shape": (
        '{"resourceSpans": [7]}',
        "Expected `object`, got `int` - at `$.resourceSpans[0]`",
    ),
}


@pytest.mark.parametrize(("text", "reason"), DAMAGED_SPANS.values(), ids=DAMAGED_SPANS)
def test_damaged_spans_are_named(text: str, reason: str) -> None:
    assert place_and_reason(error_in("otlp", text))[2].startswith(reason)


# --- keepers ---------------------------------------------------------------------------------

KEPT_HEADER = HEADER.strip() + ",ttl_ms,of\n"


def whose(name: str, text: str) -> list[tuple[object, ...]]:
    found = history_of(name, text).operations
    return [(o.process, o.owner, o.f) for o in found]


def test_a_row_of_a_keeper_names_the_client() -> None:
    text = KEPT_HEADER + (
        "w1,k,acquire,0,2,ok,7,1000,\nc1/keeper,k,extend,4,6,ok,,1000,w1\nw1,k,release,8,9,ok,,,\n"
    )
    assert whose("csv", text)[1] == ("c1/keeper", "w1", "renew")
    (hold,) = history_of("csv", text).holds
    assert [renewal.start_ns for renewal in hold.renewals] == [4]


def test_a_keeper_of_a_number() -> None:
    text = KEPT_HEADER + "1,k,acquire,0,2,ok,7,1000,\n9,k,renew,4,6,ok,,1000,1\n"
    assert whose("csv", text)[1] == (9, 1, "renew")
    assert whose("csv", text.replace("9,k,", "keeper,k,"))[1] == ("keeper", "1", "renew")
    assert whose("csv", text.replace("1000,1\n", "1000,2\n"))[1] == (9, 2, "renew")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("1,k,write,3,9,ok,,,\n1,k,renew,4,6,ok,,,\n1,k,renew,7,8,ok,,,", ["/", "/"]),
        ("1,k,renew,3,9,ok,,,\n1,k,write,4,6,ok,,,\n1,k,renew,10,11,ok,,,", ["/", ""]),
        ("1,k,write,3,5,ok,,,\n1,k,renew,5,6,ok,,,\n1,k,renew,6,8,ok,,,", ["", ""]),
        ("1,k,write,3,,,,,\n1,k,renew,5,6,ok,,,\n1,k,renew,7,8,ok,,,", ["", ""]),
        ("2,k,write,3,9,ok,,,\n1,k,renew,5,6,ok,,,\n1,k,renew,7,8,ok,,,", ["", ""]),
        ("1,k,renew,3,9,ok,,,\n1,k,renew,5,6,ok,,,", ["/", ""]),
        ("1,k,write,3,9,ok,,,\n1,k,renew,5,6,ok,,,2\n1,k,renew,11,12,ok,,,", ["/", ""]),
    ],
)
def test_a_renewal_beside_something_else_is_a_keepers(rows: str, expected: list[str]) -> None:
    renewals = [each for each in whose("csv", KEPT_HEADER + rows + "\n") if each[2] == "renew"]
    assert [("/" if each[0] == "1/keeper" else "") for each in renewals] == expected
    assert {each[1] for each in renewals} <= {1, 2}


@pytest.mark.parametrize(
    "rows",
    [
        "a,k,write,3,9,ok,,,\na,k,read,5,6,ok,,,",
        "a,k,write,3,9,ok,,,\na,k,renew,4,9,ok,,,\na,k,renew,5,8,ok,,,",
    ],
)
def test_what_really_overlaps_is_refused(rows: str) -> None:
    assert "still busy" in place_and_reason(error_in("csv", KEPT_HEADER + rows + "\n"))[2]


def test_only_a_renewal_is_for_another_client() -> None:
    text = KEPT_HEADER + "a,k,renew,0,1,ok,,,b\na,k,release,2,3,ok,,,b\n"
    assert place_and_reason(error_in("csv", text)) == (
        3,
        22,
        "of: only a renewal can be for another client's hold",
    )
    spans = export(span("unlock", 1, 2, lock__of="b"), service__name="w")
    assert "lock.of: only a renewal" in place_and_reason(error_in("otlp", spans))[2]


def test_a_span_of_a_keeper() -> None:
    spans = export(
        span("acquire", 1, 2, lock__client="w"),
        span("write", 3, 9, lock__client="w"),
        span("renew", 4, 5, lock__client="keeper", lock__of="w"),
        span("renew", 6, 7, lock__client="w"),
    )
    assert whose("otlp", spans)[2:] == [("keeper", "w", "renew"), ("w/keeper", "w", "renew")]
