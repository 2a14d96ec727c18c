"""Histories of a lock that works, as turns that can be spoilt one at a time.

A turn is one hold: asked for (perhaps while the one before still holds), granted when the lock is
free for certain, some reads and writes that follow from each other, and an end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from lockcheck.history import Event, EventType, History, Terms
from lockcheck.history.event import NEMESIS, NS_PER_MS, STORAGE
from tests.checker.dsl import terms_event

TTL_MS = 1
TTL_NS = TTL_MS * NS_PER_MS
CLIENTS = 4
ENDINGS = ("ok", "fail", "info", "never", "dies", "lost")


@dataclass(frozen=True)
class Access:
    f: str
    start: int
    end: int
    value: str | None
    base: str | None
    seq: int
    outcome: str = "ok"  # or `info`: accepted, but the client never learns; always the last one


@dataclass(frozen=True)
class Turn:
    process: int
    asked: int
    granted: int
    accesses: tuple[Access, ...]
    ending: str
    ended: int  # when the release is invoked, or the loss is told, or it was last seen
    answered: int

    @property
    def writes(self) -> list[Access]:
        return [access for access in self.accesses if access.f == "write"]


@dataclass(frozen=True)
class World:
    turns: tuple[Turn, ...]
    extra: tuple[Event, ...] = ()  # faults, stalls, failed attempts
    ledger: bool = True
    declare_base: bool = True
    terms: Terms = field(default_factory=lambda: Terms(ttl_ms=TTL_MS))

    def spoilt(self, number: int, **changes: Any) -> World:
        turns = list(self.turns)
        turns[number] = replace(turns[number], **changes)
        return replace(self, turns=tuple(turns))

    def events(self) -> list[Event]:
        told = [event for turn in self.turns for event in self._turn(turn)] + list(self.extra)
        told.sort(key=lambda event: event.time)
        end = told[-1].time
        entries = [self._entry(t, a, end) for t in self.turns for a in t.accesses]
        told += sorted(entries, key=lambda event: event.seq or 0) if self.ledger else []
        values = {name: getattr(self.terms, name) for name in self.terms.__struct_fields__}
        return [terms_event(**values), *told]

    def history(self) -> History:
        return History.of(self.events())

    def _turn(self, turn: Turn) -> Iterator[Event]:
        yield _said(turn, turn.asked, "invoke", "acquire")
        yield _said(turn, turn.granted, "ok", "acquire")
        for access in turn.accesses:
            written = access.value if access.f == "write" else None
            base = access.base if access.f == "write" and self.declare_base else None
            yield _said(turn, access.start, "invoke", access.f, value=written, base=base)
            seq = access.seq if access.outcome == "ok" else None
            told = access.value if access.outcome == "ok" else None
            yield _said(turn, access.end, access.outcome, access.f, value=told, seq=seq)
        if turn.ending == "lost":
            yield _said(turn, turn.ended, "info", "lost")
        elif turn.ending != "dies":
            yield _said(turn, turn.ended, "invoke", "release")
            if turn.ending != "never":
                yield _said(turn, turn.answered, turn.ending, "release")

    def _entry(self, turn: Turn, access: Access, end: int) -> Event:
        return Event(
            time=end, process=STORAGE, type=EventType.OK, f=access.f, key="k", value=access.value,
            base=access.base if access.f == "write" and self.declare_base else None,
            seq=access.seq, of=turn.process,
        )  # fmt: skip


def _said(turn: Turn, time: int, kind: str, f: str, **more: Any) -> Event:
    node = f"n{turn.process % CLIENTS}"
    return Event(
        time=time, process=turn.process, type=EventType(kind), f=f, key="k", node=node, **more
    )


@st.composite
def good_worlds(
    draw: st.DrawFn, *, endings: tuple[str, ...] = ENDINGS, writes: tuple[int, int] = (0, 3)
) -> World:
    """Turns of a lock that excludes. Equal times are drawn often: they must be harmless."""
    few = st.integers(0, 40)
    processes, idle = list(range(CLIENTS)), [0] * CLIENTS
    turns: list[Turn] = []
    free, seq, value, client = 0, 0, None, 0
    for _ in range(draw(st.integers(2, 10))):
        client = (client + draw(st.integers(1, CLIENTS - 1))) % CLIENTS  # never twice in a row
        since = turns[-1].granted + 1 if turns else 0
        asked = max(since, idle[client]) + draw(few)
        granted = max(asked, free) + draw(few)
        accesses, now = [], granted
        for _ in range(draw(st.integers(*writes))):
            for f in ("read", "write"):
                seq, start = seq + 1, now + draw(few)
                now = start + draw(few)
                mark = f"{processes[client]}-{seq}" if f == "write" else value
                accesses.append(Access(f, start, now, mark, value, seq))
                value = mark
        ending, ended = draw(st.sampled_from(endings)), now + draw(few)
        unsure = ending == "dies" and accesses and draw(st.booleans())
        if unsure:
            accesses[-1] = replace(accesses[-1], outcome="info")
        answered = ended + draw(few)
        turns.append(
            Turn(processes[client], asked, granted, tuple(accesses), ending, ended, answered)
        )
        free, promised, idle[client] = ended, asked + TTL_NS, answered
        if ending in ("info", "never", "dies"):
            processes[client] += CLIENTS
        if ending in ("info", "never", "dies", "fail", "lost"):
            free = max(ended, promised, answered)
    amount = draw(st.integers(0, 4))
    extra = [draw(_harmless(number, turns[-1].answered)) for number in range(amount)]
    return World(
        tuple(turns),
        tuple(event for events in extra for event in events),
        ledger=draw(st.booleans()),
        declare_base=draw(st.booleans()),
    )


@st.composite
def _harmless(draw: st.DrawFn, number: int, until: int) -> list[Event]:
    """Things that happen beside a lock that works."""
    start, end = sorted((draw(st.integers(0, until)), draw(st.integers(0, until))))
    node = draw(st.sampled_from(["n0", "n1", "r1"]))
    kind = draw(st.sampled_from(["fault", "stall", "step", "refused"]))
    if kind == "fault":
        common: dict[str, Any] = {"process": NEMESIS, "node": node, "fault": number}
        ok = EventType.OK
        return [
            Event(time=start, type=EventType.INVOKE, f="pause", **common),
            Event(time=start, type=ok, f="pause", **common),
            Event(time=end, type=ok, f="heal", **common),
        ]
    if kind == "refused":
        other: dict[str, Any] = {"process": 1000 + number, "f": "acquire", "key": "k"}
        outcome = draw(st.sampled_from([EventType.FAIL, EventType.INFO]))
        return [
            Event(time=start, type=EventType.INVOKE, **other),
            Event(time=end, type=outcome, **other),
        ]
    value = (end - start) / NS_PER_MS
    f = "stall" if kind == "stall" else "clock-step"
    return [Event(time=end, process=900, type=EventType.INFO, f=f, node=node, value=value)]
