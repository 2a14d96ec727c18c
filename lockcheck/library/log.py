"""Records what clients do, for the judges; the test that drives the clients calls it.

Times are of this process's clock, taken around each operation: so operations seem a little longer
and holds a little shorter than they were, and nothing is found that did not happen.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack, get_args

import msgspec
from msgspec import structs

from lockcheck.errors import UserError
from lockcheck.history import Event, EventType, F, History, Notice, Refusal, Terms, write_events
from lockcheck.history.event import decode_event, encode_event, terms_event
from lockcheck.library.given import check_text
from lockcheck.library.promises import Promised, terms_of

if TYPE_CHECKING:
    from lockcheck.results.judgement import Judgement


OPERATIONS = F.ACQUIRE, F.RELEASE, F.RENEW, F.READ, F.WRITE, F.CAS, F.ADD, F.RUN
Released: TypeAlias = Literal["true", "false", "unsaid"]


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
    blind: bool = False  # of a release: it removes whatever lock is there
    refusal: Refusal | None = None
    notify: Callable[[str], None] | None = None  # records what befalls an acquire under way

    def refused(self, why: str = "") -> None:
        """The operation certainly did not happen."""
        self.outcome, self.error = EventType.FAIL, why or None

    def released(self, answer: Released, *, blind: bool = False) -> None:
        """What a release answered: `true`, it was held until then; `false`, there was nothing to
        release; `unsaid`, its answer is the same in both cases. A `blind` one does not check whose
        lock it removes."""
        if answer not in get_args(Released):
            raise UserError(f"not the answer of a release: {answer!r}", cure="true, false, unsaid")
        self.unsaid, self.blind = answer == "unsaid", blind
        if blind and answer == "true":
            self.value = {"removed": 1}  # as in the history of a run
        if answer == "false":
            self.refused("there was nothing to release")
            self.refusal = Refusal.NOT_OWNER

    def unknown(self, why: str = "") -> None:
        """The operation was not answered: it may have happened or not."""
        self.outcome, self.error = EventType.INFO, why or None

    def queued(self) -> None:
        """From now on the acquire has its place in the lock's queue."""
        self._notify(Notice.QUEUED)

    def turn_came(self) -> None:
        """The acquire was not granted before now: its lease counts from here at the earliest. To be
        called when the client learns that its turn came, before it sends what confirms it."""
        self._notify(Notice.TURN)

    def _notify(self, what: str) -> None:
        if self.notify is None:
            raise UserError(
                "only an acquire that is under way has a place in a queue",
                cure='call it within the block of log.operation(client, "acquire", key)',
            )
        self.notify(what)


class Log:
    """Can be used from several threads. A client has one operation open at a time.

    `report`: where `require_ok()` of its judgements writes their page; None: nowhere."""

    def __init__(self, *, versions: Mapping[str, str] | None = None) -> None:
        self.report: str | os.PathLike[str] | None = None
        self._versions = tuple((versions or {}).items())  # for the page
        self._origin_ns = time.monotonic_ns()
        self._events: list[Event] = []
        self._processes: dict[str, int] = {}
        self._open: dict[str, str] = {}  # by client: what it is doing
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
        """One of OPERATIONS, around the code that does it. If the code raises, its outcome is
        unknown, unless `refused` was called."""
        if f not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise UserError(f"unknown operation {f!r}", cure=f"choose from: {known}")
        check_text(client, "a client")
        check_text(key, "a key")
        asked = time.monotonic_ns(), 0, EventType.INVOKE, f, key
        invoke = _as_written(
            Event(*asked, value, client, token, base=base, ttl_ms=ttl_ms, shared=shared)
        )
        invoke = structs.replace(invoke, process=self._begin(client, f))
        self.add(invoke)
        answer = LoggedOperation(token=token, value=value)
        if f == F.ACQUIRE:
            answer.notify = partial(self._notify, invoke)
        try:
            yield answer
        except BaseException as error:
            if answer.outcome is EventType.OK:
                answer.unknown(f"{type(error).__name__}: {error}")
            raise
        finally:
            answer.notify = None
            self._add_answer(client, invoke, answer)

    def lost(self, client: str, key: str, why: str = "") -> None:
        """Records that the client learned of the loss of its lock."""
        check_text(client, "a client")
        check_text(key, "a key")
        notice = time.monotonic_ns(), 0, EventType.INFO, Notice.LOST, key
        lost = _as_written(Event(*notice, node=client, error=why))
        self.add(structs.replace(lost, process=self._process(client)))

    def judge(self, **promised: Unpack[Promised]) -> Judgement:
        from lockcheck.checker import judge
        from lockcheck.checker.modelling import misfit
        from lockcheck.results.judgement import NO_RUN, with_story

        history = History.of(self._recorded(terms_of(promised)))
        if wrong := misfit(history.table, history.terms):
            raise UserError(wrong, cure="another model=, or none: it is detected")
        report = None if self.report is None else Path(self.report)
        facts = structs.replace(NO_RUN, versions=self._versions)
        return with_story(judge(history), report=report, facts=facts)

    def save(self, path: str | os.PathLike[str], **promised: Unpack[Promised]) -> None:
        """For `lockcheck check PATH --report page.html`."""
        events = self._recorded(terms_of(promised))
        try:
            write_events(Path(path), events)
        except OSError as error:
            raise UserError(
                f"{path} cannot be written: {error.strerror}", cure="save it somewhere else"
            ) from error

    def _notify(self, invoke: Event, what: str) -> None:
        notice = time.monotonic_ns(), invoke.process, EventType.INFO, what, invoke.key
        self.add(Event(*notice, node=invoke.node))

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

    def _begin(self, client: str, f: str) -> int:
        """Its process. A client does one thing after the other."""
        with self._adding:
            if client in self._open:
                raise UserError(
                    f"{client} begins {f} within its own {self._open[client]}",
                    cure="end the block of that first, or let another client do it",
                )
            self._open[client] = f
        return self._process(client)

    def _add_answer(self, client: str, invoke: Event, answer: LoggedOperation) -> None:
        with self._adding:
            del self._open[client]
            if answer.outcome is EventType.INFO:  # from here on it acts as another process
                del self._processes[client]
        answered = structs.replace(
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
            blind=answer.blind,
            ttl_ms=None,
        )
        self.add(_as_written(answered))


def _as_written(event: Event) -> Event:
    """As a file would have it: whatever is done to its value later."""
    try:
        return decode_event(encode_event(event))
    except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise UserError(
            f"this {event.f} of {event.node} cannot be recorded: {error}",
            cure="tokens and numbers are whole numbers, texts are texts, and values are as in JSON",
        ) from error
