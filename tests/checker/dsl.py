"""Histories in a few lines of text, for the judges' tests. Times are in ms.

    1 acquire 0-1             process 1 (on node n1) asks at 0 and is granted at 1
    1 acquire 0-1!            ... is refused;  0-1? nobody knows;  0- never answered
    1 acquire 0-1 token=3     more fields of the event; some belong to the answer (see ANSWERED)
    1@n9 acquire:k2 0-1       on another node, on another key than `k`
    1 read 2-3 = a            the answer's value
    1 write 4-5 b base=a seq=1
    1 release 8-9 = {"removed": 1, "blind": true}
    1 lost 7                  a notice; so are `1 queued 7` and `1 turn 7`
    fault pause n1 10-50      proven at 10, healed at 50;  10-50! never proven;  10- never healed
    fault odd n1,n2 10-50 effect=cuts asked=odd:any since=12 proven=15 mends=40;  fault odd - 10-50
    fault odd n1 10-50 effect=cuts links=n1>r1,r1>n1      from its sender to its receiver
    stall n1 10-50;  stall n1 10-50 waited     did not run; waited for the storage
    clock-step n1 30 500      noticed at 30, by 500 ms
    program n1 30 20          the program that it works through: ended at 30, lived last at 20
    storage write 1 b seq=2 base=a      the ledger, at the end; `storage write! 1` refused it

All times are of one clock, also of a `partial` log, unless `clock_error_ms` says otherwise.

`ledger=True` has each write with a `seq` that was answered in the storage's ledger, too.

The engines get operations of one object, of which a process may have several under way: `table`.
With leases (`leased`), `until=9` is the moment up to which the lock was promised. Where only the
order matters there are no times at all: `in_turn("0 acquire, 0 write 5, 1 read = 5")`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np

from lockcheck.checker import Judgement, judge
from lockcheck.history import Effect, Event, EventType, History, Notice, Refusal, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS, RUN, STORAGE, WAITED
from lockcheck.history.model import Operation
from lockcheck.history.table import NEVER, Ints, Table

ANSWERED = {"token", "seq", "error", "refused", "blind", "unsaid", "valid_ms"}
ONE_CLOCK: dict[str, Any] = {"clock_error_ms": 0}  # of a log that does not say otherwise
OUTCOMES = {"": EventType.OK, "!": EventType.FAIL, "?": EventType.INFO}
SPAN = re.compile(r"(?P<start>[\d.]+)-(?P<end>[\d.]*)(?P<mark>[!?]?)$")
UNTIL = re.compile(r" until=(\d+)")


def ns(ms: float | str) -> int:
    return round(float(ms) * NS_PER_MS)


def literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def history(*lines: str, ledger: bool = False, **terms: Any) -> History:
    return History.of(events(*lines, ledger=ledger, **terms))


def judged(*lines: str, ledger: bool = False, **terms: Any) -> Judgement:
    return judge(history(*lines, ledger=ledger, **terms))


def codes(judgement: Judgement) -> list[str]:
    return [finding.code for finding in judgement.findings]


def table(*lines: str) -> Table:
    return leased(*lines)[0]


def leased(*lines: str) -> tuple[Table, Ints]:
    """And up to when each operation was promised the lock."""
    told = zip(operations(*lines), map(UNTIL.search, _texts(lines)), strict=True)
    rows = sorted(told, key=lambda row: row[0].start_ns)
    until = [ns(promised[1]) if promised else NEVER for _, promised in rows]
    return Table.of([operation for operation, _ in rows]), np.array(until, np.int64)


def in_turn(story: str) -> Table:
    """One operation after the other."""
    told = enumerate(text.split(maxsplit=2) for text in story.split(", "))
    lines = [f"{who} {f} {2 * n}-{2 * n + 1} {''.join(rest)}" for n, (who, f, *rest) in told]
    return table(*lines)


def operations(*lines: str) -> list[Operation]:
    """In the order of the lines."""
    told = (_operation(UNTIL.sub("", text), key=None) for text in _texts(lines))
    return [Operation(invoke, answer[0] if answer else None) for invoke, *answer in told]


def _texts(lines: Iterable[str]) -> list[str]:
    texts = (text.split("#")[0].strip() for line in lines for text in line.splitlines())
    return [text for text in texts if text]


def events(*lines: str, ledger: bool = False, **terms: Any) -> list[Event]:
    parsed = [_line(number, text) for number, text in enumerate(_texts(lines))]
    told = sorted((e for line in parsed for e in line), key=lambda event: event.time)
    end_ns = told[-1].time if told else 0
    if ledger:
        told += ledger_of(told)
    told = [msgspec.structs.replace(e, time=end_ns) if e.process == STORAGE else e for e in told]
    told.sort(key=lambda event: event.time)
    return [terms_event(**terms), *told]


def terms_event(**terms: Any) -> Event:
    value = msgspec.to_builtins(Terms(**{**(ONE_CLOCK if terms.get("partial") else {}), **terms}))
    return Event(time=0, process=RUN, type=EventType.INFO, f=Notice.TERMS, value=value)


def ledger_of(told: Iterable[Event]) -> list[Event]:
    """What a storage remembers that loses nothing."""
    entries, sent = [], {}
    for event in told:
        if event.f in ("read", "write") and isinstance(event.process, int):
            if event.type is EventType.INVOKE:
                sent[event.process] = event
            elif event.seq is not None:
                invoke = sent[event.process]
                entries.append(_entry(invoke, event))
    return sorted(entries, key=lambda event: event.seq or 0)


def _entry(invoke: Event, answer: Event) -> Event:
    return Event(
        time=0,
        process=STORAGE,
        type=EventType.FAIL if answer.type is EventType.FAIL else EventType.OK,
        f=invoke.f,
        key=invoke.key,
        value=invoke.value if invoke.f == "write" else answer.value,
        base=invoke.base,
        token=invoke.token,
        seq=answer.seq,
        of=invoke.process,
        error=answer.error,
    )


def _line(number: int, text: str) -> list[Event]:
    first, rest = text.split(maxsplit=1)
    if first == "fault":
        return _fault(number, *rest.split())
    if first == "stall":
        node, span, *why = rest.split()
        start, end = span.split("-")
        told = _notice(end, "ticker", Notice.STALL, node, float(end) - float(start))
        return [msgspec.structs.replace(told, error=WAITED) if why else told]
    if first == "clock-step":
        node, at, value = rest.split()
        return [_notice(at, "ticker", Notice.CLOCK_STEP, node, literal(value))]
    if first == "program":
        node, at, lived = rest.split()
        ended = _notice(at, int(node[1:]), Notice.PROGRAM, node)
        return [msgspec.structs.replace(ended, since=ns(lived))]
    if first == "storage":
        return [_storage(*rest.split())]
    return _operation(text)


def _notice(at: str, process: int | str, f: str, node: str, value: object = None) -> Event:
    return Event(
        time=ns(at), process=process, type=EventType.INFO, f=f, node=node, value=value, key=None
    )


def _fault(number: int, name: str, nodes: str, span: str, *words: str) -> list[Event]:
    times = SPAN.match(span)
    assert times, span
    start, end, mark = times.group("start", "end", "mark")
    fields = _fields(list(words))[1]
    since, proven = fields.pop("since", None), fields.pop("proven", start)
    mends = fields.pop("mends", end)
    several = tuple(nodes.split(",")) if "," in nodes else None

    one = None if several or nodes == "-" else nodes
    where: dict[str, Any] = {"node": one, "nodes": several}
    if "effect" in fields:
        fields["effect"] = Effect(fields["effect"])
    if "links" in fields:
        fields["links"] = tuple(tuple(link.split(">")) for link in fields["links"].split(","))

    def event(at: str, kind: EventType, f: str, **more: Any) -> Event:
        return Event(time=ns(at), process=NEMESIS, type=kind, f=f, fault=number, **where, **more)

    said = [event(start, EventType.INVOKE, name, **fields)]
    if mark:
        said.append(event(proven, EventType.INFO, name, error="it would not stop"))
    else:
        since_ns = None if since is None else ns(since)
        said.append(event(proven, EventType.OK, name, value="seen", since=since_ns))
    if end:
        healing = ((mends, EventType.INVOKE), (end, EventType.OK))
        said += [event(at, kind, Notice.HEAL) for at, kind in healing]
    return said


def _storage(f: str, process: str, *words: str) -> Event:
    plain, fields = _fields(list(words))
    return Event(
        time=0,
        process=STORAGE,
        type=EventType.FAIL if f.endswith("!") else EventType.OK,
        f=f.rstrip("!"),
        key=fields.pop("key", "k"),
        value=literal(plain[0]) if plain else None,
        of=int(process),
        **fields,
    )


def _operation(text: str, key: str | None = "k") -> list[Event]:
    who, what, span, *rest = text.split(maxsplit=3)
    process, _, node = who.partition("@")
    f, _, named = what.partition(":")
    said, _, answered = f" {''.join(rest)} ".partition(" = ")
    plain, fields = _fields(said.split())
    common: dict[str, Any] = {
        "process": int(process),
        "f": f,
        "key": named or key,
        "node": node or f"n{process}",
    }
    if f in (Notice.LOST, Notice.QUEUED, Notice.TURN):
        return [Event(time=ns(span), type=EventType.INFO, **common)]
    times = SPAN.match(span)
    assert times, span
    start, end, mark = times.group("start", "end", "mark")
    asked = {name: value for name, value in fields.items() if name not in ANSWERED}
    if plain:
        asked["value"] = literal(plain[0])
    told = [Event(time=ns(start), type=EventType.INVOKE, **common, **asked)]
    if end:
        answer = {name: value for name, value in fields.items() if name in ANSWERED}
        value = literal(answered.strip()) if answered.strip() else asked.get("value")
        told.append(Event(time=ns(end), type=OUTCOMES[mark], **common, **answer, value=value))
    return told


def _fields(words: list[str]) -> tuple[list[str], dict[str, Any]]:
    plain = [word for word in words if "=" not in word]
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return plain, {
        name: Refusal(text) if name == "refused" else literal(text) for name, text in pairs
    }
