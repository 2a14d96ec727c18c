"""Records what clients do, for the judges; the test that drives the clients calls it.

Times are of this process's clock, taken around each operation: so operations seem a little longer
and holds a little shorter than they were, and nothing is found that did not happen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict, Unpack, get_args

from msgspec import structs

from lockcheck.errors import UserError
from lockcheck.history import Event, EventType, History, Notice, Refusal, Terms, write_events
from lockcheck.history.event import terms_event

if TYPE_CHECKING:
    from lockcheck.checker.finding import Judgement


Released: TypeAlias = Literal["true", "false", "unsaid"]


class Promised(TypedDict, total=False):
    """The lock's promises, by which it is judged, and the guard of the data."""

    ttl_ms: int  # the lease, or the session's timeout, of acquires that do not name their own
    session: bool
    ends_with: str  # a session ends with its "connection" or "server": see `lock_nodes`
    lock_nodes: tuple[str, ...]
    tells_release: bool  # False: a release is `ok` whether or not the lock was still held
    fair: bool
    permits: int
    model: str
    guard: str


@dataclass(slots=True)
class LoggedOperation:
    """The outcome of an operation: `ok`, unless the test calls `refused` or `unknown`."""

    token: int | None = None
    value: object = None
    seq: int | None = None  # the storage's number of a read or write
    valid_ms: float | None = None
    outcome: EventType = EventType.OK
    error: str | None = None
    unsaid: bool = False  # of a release: it is `ok` whether or not the lock was still held
    refusal: Refusal | None = None

    def refused(self, why: str = "") -> None:
        """The operation certainly did not happen."""
        self.outcome, self.error = EventType.FAIL, why or None

    def released(self, answer: Released) -> None:
        """What a release answered: `true`, it was held until then; `false`, there was nothing to
        release; `unsaid`, its answer is the same in both cases."""
        if answer not in get_args(Released):
            raise UserError(f"not the answer of a release: {answer!r}", cure="true, false, unsaid")
        self.unsaid = answer == "unsaid"
        if answer == "false":
            self.refused("there was nothing to release")
            self.refusal = Refusal.NOT_OWNER

    def unknown(self, why: str = "") -> None:
        """The operation was not answered: it may have happened or not."""
        self.outcome, self.error = EventType.INFO, why or None


class Log:
    """Can be used from several threads. A client has one operation open at a time."""

    def __init__(self) -> None:
        self._origin_ns = time.monotonic_ns()
        self._events: list[Event] = []
        self._processes: dict[str, int] = {}
        self._numbers = count()
        self._adding = threading.Lock()

    @contextmanager
    def operation(
        self,
        client: str,
        f: str,
        key: str,
        *,
        value: object = None,
        base: object = None,
        token: int | None = None,
        ttl_ms: int | None = None,
        shared: bool = False,
    ) -> Iterator[LoggedOperation]:
        """`acquire`, `release`, `renew`, `read`, `write` ..., around the code that does it. If the
        code raises, its outcome is unknown, unless `refused` was called."""
        asked = time.monotonic_ns(), self._process(client), EventType.INVOKE, f, key
        invoke = Event(*asked, value, client, token, base=base, ttl_ms=ttl_ms, shared=shared)
        self.add(invoke)
        answer = LoggedOperation(token=token, value=value)
        try:
            yield answer
        except BaseException as error:
            if answer.outcome is EventType.OK:
                answer.unknown(f"{type(error).__name__}: {error}")
            raise
        finally:
            self._add_answer(client, invoke, answer)

    def lost(self, client: str, key: str, why: str = "") -> None:
        """Records that the client learned of the loss of its lock."""
        notice = EventType.INFO, Notice.LOST, key
        self.add(Event(time.monotonic_ns(), self._process(client), *notice, node=client, error=why))

    def judge(self, **promised: Unpack[Promised]) -> Judgement:
        from lockcheck.checker import judge

        return judge(History.of(self._recorded(Terms(**promised))))

    def save(self, path: Path, **promised: Unpack[Promised]) -> None:
        """For `lockcheck check PATH --report page.html`."""
        write_events(path, self._recorded(Terms(**promised)))

    def note(self, event: Event, time_ns: int | None = None) -> None:
        """An event of the agent, whose clock may differ."""
        now_ns = time.monotonic_ns() if time_ns is None else time_ns
        self.add(structs.replace(event, time=now_ns, since=None))

    def add(self, event: Event) -> None:
        with self._adding:
            self._events.append(event)

    def _recorded(self, terms: Terms) -> list[Event]:
        with self._adding:
            events = sorted(self._events, key=attrgetter("time"))
        dated = (structs.replace(each, time=each.time - self._origin_ns) for each in events)
        return [terms_event(terms), *dated]

    def _process(self, client: str) -> int:
        with self._adding:
            if client not in self._processes:
                self._processes[client] = next(self._numbers)
            return self._processes[client]

    def _add_answer(self, client: str, invoke: Event, answer: LoggedOperation) -> None:
        self.add(
            structs.replace(
                invoke,
                time=time.monotonic_ns(),
                type=answer.outcome,
                token=answer.token,
                value=answer.value,
                seq=answer.seq,
                valid_ms=answer.valid_ms,
                error=answer.error,
                refused=answer.refusal,
                unsaid=answer.unsaid and answer.outcome is EventType.OK,
                ttl_ms=None,
            )
        )
        if answer.outcome is EventType.INFO:  # from here on it acts as another process
            with self._adding:
                del self._processes[client]
