"""What is written for other tools is read again as the same operations."""

from __future__ import annotations

import json
from io import BytesIO

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.errors import UserError
from lockcheck.formats.exports.export import EXPORTS, left_out, write
from lockcheck.formats.exports.export_csv import lost_notices, result_of
from lockcheck.history import Event, EventType, History, Hold, Operation, Refusal, Terms
from lockcheck.history.event import terms_event
from tests.checker.dsl import history
from tests.formats.texts import history_of

RUN = (
    "1 acquire 0-1 token=3",
    "2@n2 acquire 0-2!",
    "1 write 2-3 b base=a seq=1",
    "2@n2 read 3-4? = x",
    "fault pause n1 3-9",
    "stall n1 4-8",
    "1 lost 9",
    '1 release 10-11 = {"removed": 1, "blind": true}',
    "3 acquire 12-",
)


OK_LINE = (
    "{:process 1, :type :ok, :f :acquire, :value nil, :time 1000000, :index 2, BESIDE, :token 3}"
)


def exported(name: str, original: History) -> bytes:
    out = BytesIO()
    write(original, name, out)
    return out.getvalue()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=3,
)
maybe_texts = st.none() | texts
tokens = st.none() | st.integers(1 - (1 << 63), (1 << 63) - 1)
terms = st.builds(
    Terms, model=texts, ttl_ms=st.none() | st.integers(0, 1 << 30), check_validity=st.booleans()
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Any number of clients, each with any events, and its operations in order."""
    events: list[Event] = []
    processes = draw(
        st.lists(st.integers(0, 1 << 40), max_size=3, unique=True)
        | st.lists(texts.filter(lambda t: t not in ("nemesis", "storage")), max_size=3, unique=True)
    )
    for process in processes:
        time = 0
        for f in draw(
            st.lists(
                st.sampled_from(["acquire", "release", "read", "write", "odd f", "lost"]),
                max_size=4,
            )
        ):
            time += draw(st.integers(0, 9))
            if f == "lost":
                events.append(draw(notices(time, process)))
                continue
            events.append(draw(invocations(time, process, f)))
            time += draw(st.integers(0, 9))
            events.append(draw(answers(events[-1], time)))
    return sorted(events, key=lambda event: event.time)


def invocations(time: int, process: int | str, f: str) -> st.SearchStrategy[Event]:
    return st.builds(
        Event,
        time=st.just(time),
        process=st.just(process),
        type=st.just(EventType.INVOKE),
        f=st.just(f),
        key=maybe_texts,
        value=values,
        node=maybe_texts,
        token=tokens if f in ("read", "write") else st.none(),
        base=values,
        ttl_ms=st.none() | st.integers(0, 1 << 30),
        shared=st.booleans(),
    )


def notices(time: int, process: int | str) -> st.SearchStrategy[Event]:
    return st.builds(
        Event,
        time=st.just(time),
        process=st.just(process),
        type=st.just(EventType.INFO),
        f=st.just("lost"),
        key=maybe_texts,
        value=values,
        node=maybe_texts,
    )


def answers(invoke: Event, time: int) -> st.SearchStrategy[Event]:
    return st.builds(
        Event,
        time=st.just(time),
        process=st.just(invoke.process),
        type=st.sampled_from([EventType.OK, EventType.FAIL, EventType.INFO]),
        f=st.just(invoke.f),
        key=st.just(invoke.key),
        value=values,
        node=st.just(invoke.node),
        token=tokens if invoke.f == "acquire" else st.none(),
        error=maybe_texts,
        refused=st.none() | st.sampled_from(Refusal),
        blind=st.booleans() if invoke.f == "release" else st.just(False),
        seq=st.none() | st.integers(0, 99),
        valid_ms=st.none() | st.floats(-1e308, 1e308),
    )


@pytest.mark.parametrize("name", ["edn", "jsonl"])
@given(terms, histories())
def test_everything_is_exported(name: str, agreed: Terms, events: list[Event]) -> None:
    original = History.of([terms_event(agreed), *events])
    assert history_of(name, exported(name, original)) == original


@pytest.mark.parametrize("name", ["edn", "jsonl"])
def test_a_run_with_all_that_can_be_in_it(name: str) -> None:
    original = history(*RUN, ledger=True, ttl_ms=500, backend="x")
    assert history_of(name, exported(name, original)) == original


CODED = (
    "1 acquire 0-1",
    "2 acquire 1-2! refused=unavailable error=no-quorum",
    '1 release 10-11 blind=true = {"removed": 1}',
)


@pytest.mark.parametrize("name", ["csv", "edn", "jsonl"])
def test_whether_a_release_checked_the_owner_is_exported(name: str) -> None:
    again = history_of(name, exported(name, history(*CODED)))
    assert [operation.blind for operation in again.operations] == [False, False, True]


@pytest.mark.parametrize("name", ["edn", "jsonl"])
def test_why_an_operation_was_refused_is_exported(name: str) -> None:
    again = history_of(name, exported(name, history(*CODED)))
    assert [operation.refusal for operation in again.operations] == [
        *(None, Refusal.UNAVAILABLE, None)
    ]


def test_the_lines_are_what_jepsen_reads() -> None:
    lines = exported("edn", history("1 acquire 0-1 token=3")).decode().splitlines()
    assert lines[0].startswith("{:process :run, :type :info, :f :terms, :value {")
    beside = ':key "k", :node "n1"'
    assert lines[1:] == [
        f"{{:process 1, :type :invoke, :f :acquire, :value nil, :time 0, :index 1, {beside}}}",
        OK_LINE.replace("BESIDE", beside),
    ]


@given(histories())
def test_csv_contains_the_operations(events: list[Event]) -> None:
    events = [event for event in events if event.process != ""]
    original = History.of(_numbered_once(events))
    if not events:
        return
    first = min(event.time for event in original.events)
    again = history_of("csv", exported("csv", original))
    numbers = all(_is_number(event.process) for event in original.events)
    # What took no time may have been done twice; as rows they are equal, and so they are one.
    key = {_row(operation, first, numbers) for operation in original.operations}
    assert {_row(operation, 0, numbers) for operation in again.operations} == key
    assert len(again.operations) >= sum(o.end_ns != o.start_ns for o in original.operations)
    losses = {_loss(event, first, numbers) for event in lost_notices(original)}
    assert {_loss(event, 0, numbers) for event in lost_notices(again)} == losses
    holds = {_hold(hold, first, numbers) for hold in original.holds}
    assert {_hold(hold, 0, numbers) for hold in again.holds} == holds


def _numbered_once(events: list[Event]) -> list[Event]:
    """A storage gives each number once, and an unknown answer has none."""
    return [
        msgspec.structs.replace(event, seq=None if event.type is EventType.INFO else number)
        if event.seq is not None
        else event
        for number, event in enumerate(events)
    ]


def _loss(event: Event, first: int, numbers: bool) -> str:
    process = int(event.process) if numbers else str(event.process)
    content = (event.key or None, _json(event.value), event.node or None)
    return repr((process, event.time - first, content))


def _is_number(process: int | str) -> bool:
    return str(process).isascii() and str(process).isdigit()


def _hold(hold: Hold, first: int, numbers: bool) -> str:
    process = int(hold.process) if numbers else str(hold.process)
    return repr((hold.key, process, hold.start_ns - first, hold.end_ns - first, hold.ending))


def _row(operation: Operation, first: int, numbers: bool) -> str:
    invoke, answer = operation.invoke, operation.answer
    answered = None
    if answer is not None:
        result = _json(result_of(answer)), operation.blind
        answered = (answer.time - first, answer.type, result, answer.token, answer.seq)
    process = int(operation.process) if numbers else str(operation.process)
    asked = (
        invoke.key or None,
        _json(invoke.value),
        invoke.node or None,
        invoke.ttl_ms,
        invoke.token,
        _json(invoke.base),
    )
    return repr((process, operation.f, operation.start_ns - first, answered, asked))


def _json(value: object) -> bytes:
    return msgspec.json.encode(value, order="sorted")


@pytest.mark.parametrize("name", ["edn", "jsonl"])
def test_a_history_without_terms_gets_them_first(name: str) -> None:
    events = [Event(time=-5, process=1, type=EventType.INVOKE, f="acquire")]
    again = history_of(name, exported(name, History.of(events)))
    assert [event.f for event in again.events] == ["terms", "acquire"]
    assert again.events[0].time == -5
    assert history_of(name, exported(name, History.of([]))).terms == Terms()


def test_csv_of_a_run() -> None:
    original = history(*RUN, ttl_ms=500)
    lines = exported("csv", original).decode().splitlines()
    assert lines[0] == (
        "client,key,op,start_ns,end_ns,outcome,token,value,result,ttl_ms,node,seq,base,of,"
        "shared,released,refused"
    )
    assert lines[1] == "1,k,acquire,0,1000000,ok,3,,,,n1,,,,,,"
    assert lines[2] == "2,k,acquire,0,2000000,fail,,,,,n2,,,,,,"
    assert lines[3] == '1,k,write,2000000,3000000,ok,,"""b""","""b""",,n1,1,"""a""",,,,'
    assert lines[5].startswith("1,k,lost,9000000,,,,")
    assert lines[-1] == "3,k,acquire,12000000,,,,,,,n3,,,,,,"
    again = history_of("csv", exported("csv", original))
    assert [o.unknown for o in again.operations] == [o.unknown for o in original.operations]
    assert [(h.process, h.end_ns, h.ending) for h in again.holds] == [
        (h.process, h.end_ns, h.ending) for h in original.holds
    ]


def test_csv_of_an_operation_that_is_called_lost() -> None:
    original = History.of(
        [
            Event(0, 1, EventType.INVOKE, "lost"),
            Event(1, 1, EventType.INFO, "lost"),
            Event(2, 1, EventType.INFO, "lost"),
            Event(3, "nemesis", EventType.INFO, "lost"),
        ]
    )
    again = history_of("csv", exported("csv", original))
    assert [o.f for o in again.operations] == ["lost operation"]
    assert [event.time for event in lost_notices(again)] == [2]
    assert left_out(original, "csv") == (
        "csv contains the clients' operations only: 1 notice is left out"
    )


def test_porcupine_gets_whether_a_release_checked_the_owner() -> None:
    original = exported("porcupine", history(*CODED)).splitlines()
    assert json.loads(original[2])["Output"]["value"] == {"removed": 1, "blind": True}


def test_porcupine() -> None:
    original = history("7 acquire 0-1 token=3", "9 write 1-2! b", "7 release 2-3? = x", "9 read 4-")
    lines = [json.loads(line) for line in exported("porcupine", original).splitlines()]
    assert lines[0] == {
        "ClientId": 0,
        "Input": {"op": "acquire", "key": "k", "value": None},
        "Call": 0,
        "Output": {"outcome": "ok", "value": None, "token": 3},
        "Return": 1_000_000,
    }
    assert [line["ClientId"] for line in lines] == [0, 1, 0, 1]
    assert [line["Output"]["outcome"] for line in lines] == ["ok", "fail", "info", "info"]
    assert [line["Return"] for line in lines[2:]] == [(1 << 63) - 1] * 2


KEPT = ("1 acquire 0-1", "9 renew 2-3 of=1", "1 write 2.5-5 b", "9 renew 4-6! of=1", "2 renew 7-8")


@pytest.mark.parametrize("name", ["csv", "jsonl", "edn"])
def test_the_owner_of_a_renewed_hold_is_exported(name: str) -> None:
    original = history(*KEPT)
    again = history_of(name, exported(name, original))
    assert [(o.process, o.owner, o.f) for o in again.operations] == [
        (o.process, o.owner, o.f) for o in original.operations
    ]
    assert [(h.process, h.end_ns, h.ending) for h in again.holds] == [
        (h.process, h.end_ns, h.ending) for h in original.holds
    ]
    assert b":of 1" in exported("edn", original)


def test_porcupine_gets_the_owner_of_a_renewed_hold() -> None:
    lines = [json.loads(line) for line in exported("porcupine", history(*KEPT)).splitlines()]
    assert [(line["ClientId"], line["Input"].get("of")) for line in lines] == [
        *((0, None), (1, 0), (0, None), (1, 0), (2, None))
    ]


def test_an_export_that_is_none() -> None:
    with pytest.raises(UserError, match="unknown export 'xml'") as error:
        write(history(), "xml", BytesIO())
    assert error.value.cure == f"choose from: {', '.join(EXPORTS)}"


def test_an_export_names_what_it_leaves_out() -> None:
    original = history(*RUN, ledger=True, ttl_ms=500)
    assert {name for name in EXPORTS if not left_out(original, name)} == {"edn", "jsonl"}
    assert left_out(original, "csv") == (
        "csv contains the clients' operations only: 1 notice, 1 fault and 1 ledger entry of the "
        "storage are left out; csv has no place for what a history is judged by: ttl-ms"
    )
    assert left_out(history("1 acquire 0-1", "1 lost 9"), "porcupine") == (
        "porcupine contains the clients' operations only: 1 notice is left out; porcupine has no "
        "place for node"
    )
    assert not left_out(history("1 acquire 0-1", "2 acquire 5-"), "csv")
    coded = history("1 acquire 0-1! refused=held error=taken", "2 acquire 5-6 valid_ms=9 ttl_ms=9")
    assert left_out(coded, "csv") == "csv has no place for valid_ms, error"
    assert left_out(coded, "porcupine") == (
        "porcupine has no place for node, ttl_ms, valid_ms, refused, error"
    )


def test_an_export_is_refused_that_would_say_something_else() -> None:
    with pytest.raises(UserError, match=r"porcupine has no place for .*: shared") as error:
        write(history("1 acquire 0-1 shared=true"), "porcupine", BytesIO())
    assert "export it as edn, jsonl, csv" in error.value.cure
    with pytest.raises(UserError, match="of its operations: unsaid"):
        write(history("1 acquire 0-1", "1 release 2-3 unsaid=true"), "porcupine", BytesIO())


@pytest.mark.parametrize("name", ["csv", "jsonl", "edn"])
def test_what_is_shared_or_left_unsaid_is_exported(name: str) -> None:
    original = history(
        "1 acquire 0-1 shared=true", "2 acquire 2-3 shared=true", "1 release 4-5 unsaid=true"
    )
    again = history_of(name, exported(name, original))
    assert [o.invoke.shared for o in again.operations] == [True, True, False]
    assert [o.unsaid for o in again.operations] == [False, False, True]
    assert [(h.start_ns, h.end_ns) for h in again.holds] == [
        (h.start_ns, h.end_ns) for h in original.holds
    ]


def test_names_of_clients_are_no_keywords() -> None:
    events = [Event(0, "w1", EventType.INVOKE, "read"), Event(1, "nemesis", EventType.INFO, "x")]
    lines = exported("edn", History.of(events)).decode().splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "{:process :run",
        '{:process "w1"',
        "{:process :nemesis",
    ]
    jepsen = "\n".join(lines[1:])
    assert [o.process for o in history_of("edn", jepsen).operations] == ["w1"]
