"""A lock whose client is a user's program, in any language: docs/protocol.md.

Times are taken here, around the exchange. A program that ended, or hangs, is begun anew for the
next request; what it held is lost, and the history says so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

from lockcheck.backends.base import Claim, Grant, Lock, LockSettings, Promises, Renewal
from lockcheck.backends.program import ClientProgram
from lockcheck.backends.program.life import (
    EndedError,
    NotAnsweredError,
    NotUnderstoodError,
    Program,
)
from lockcheck.backends.program.messages import (
    OWNERS_CODES,
    REFUSALS,
    AcquireOk,
    Answer,
    Failed,
    Lost,
    Notice,
    NotRenewed,
    Queued,
    ReadOk,
    ReleaseOk,
    Renewed,
    Renewing,
    RenewOk,
    WriteOk,
)
from lockcheck.errors import InternalError, UserError
from lockcheck.history import EventType, F, Refusal
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure
from lockcheck.storage.base import Ask, Served

BEGIN_S = 30.0  # a JVM on a busy machine
ANSWER_TTLS = 4  # how long an attempt may take that does not wait
SHORTEST_PATIENCE_S = 5.0
MOST_UNANSWERED = 2  # one after the other; then it hangs
LONGEST_TEXT = 300


class UnknownError(Exception):
    """The program says that it may have happened."""


ERRORS = (
    ErrorRow("connect", "EndedError", EventType.FAIL, "the program is gone, so nothing was asked"),
    ErrorRow("connect", "Exception", EventType.FAIL, "the program does not begin"),
    ErrorRow("command", "UnknownError", EventType.INFO, "the program says that it may have been"),
    ErrorRow("command", "NotAnsweredError", EventType.INFO, "the program did not answer in time"),
    ErrorRow("command", "NotUnderstoodError", EventType.INFO, "the program's answer has no sense"),
    ErrorRow("command", "EndedError", EventType.INFO, "the program ended before it answered"),
)
PROGRAM = "program"
A = TypeVar("A", AcquireOk, ReleaseOk, RenewOk, ReadOk, WriteOk)


class ProgramLock(Lock):
    def __init__(
        self,
        servers: Sequence[Address],
        settings: LockSettings,
        *,
        program: ClientProgram,
        promises: Promises,
    ) -> None:
        self._settings, self._promises, self._program = settings, promises, program
        self._init = {
            "node_id": settings.owner,
            "node_ids": [settings.owner],
            "servers": [f"{host}:{port}" for host, port in servers],
            "ttl_ms": settings.ttl_ms,
            "options": program.options,
        }
        self._claims: dict[int, Claim] = {}  # by the numbers of their acquires
        self._renewals: dict[int, Renewal] = {}
        self._queued: set[int] = set()
        self._guard = threading.Lock()
        self._unanswered = 0
        self._running: Program | None = None
        try:
            self._begin()
        except (WireFailure, Refused) as failure:
            raise UserError(
                f"the client program does not begin: {failure}",
                cure=f"its command is {' '.join(program.command)}; lockcheck validate tries it",
            ) from failure

    # --- the program's lives -----------------------------------------------------------------

    def _begin(self) -> Program:
        try:
            program = Program(
                self._program.command,
                self._program.folder,
                node=self._settings.owner,
                hear=self._heard,
                ended=self._has_ended,
                door=self._program.door,
            )
        except OSError as error:
            raise WireFailure(Phase.CONNECT, PROGRAM, error) from error
        try:
            answer = program.ask("init", BEGIN_S, **self._init)
        except (EndedError, NotAnsweredError, NotUnderstoodError) as error:
            program.end("it did not begin")
            raise WireFailure(Phase.CONNECT, PROGRAM, error) from error
        if isinstance(answer, Failed):
            program.end("it did not begin")
            raise Refused(Refusal.UNAVAILABLE, answer.text[:LONGEST_TEXT])
        self._running, self._unanswered = program, 0
        return program

    def _alive(self) -> Program:
        """The one that runs, or a new one in place of one that has ended or hangs."""
        program = self._running
        if program is not None and self._unanswered >= MOST_UNANSWERED:
            program.end(f"it left {MOST_UNANSWERED} requests without an answer")
        if program is not None and not program.has_ended:
            return program
        if program is not None:
            program.close()
        return self._begin()

    def _has_ended(self, why: str, lived_ns: int) -> None:
        self.mishap(why, lived_ns)
        with self._guard:
            claims, self._claims = self._claims, {}
            self._renewals, self._queued = {}, set()
        for claim in claims.values():
            claim.lost(f"its program is gone: {why}")

    # --- requests ----------------------------------------------------------------------------

    def _ask(
        self, program: Program, kind: str, expected: type[A], patience_s: float, **content: Any
    ) -> A:
        try:
            answer = program.ask(kind, patience_s, **content)
        except (EndedError, NotAnsweredError, NotUnderstoodError) as error:
            self._unanswered += isinstance(error, NotAnsweredError)
            raise WireFailure(Phase.COMMAND, PROGRAM, error) from error
        self._unanswered = 0
        if isinstance(answer, Failed):
            raise _failure(answer, of_its_own=kind != "acquire")
        if not isinstance(answer, expected):
            mistaken = NotUnderstoodError(f"{kind} was answered with {type(answer).__name__}")
            raise WireFailure(Phase.COMMAND, PROGRAM, mistaken)
        return answer

    def acquire(self, claim: Claim) -> Grant:
        program = self._alive()
        waits_s = claim.left_s() if self._promises.waits else 0.0
        number = program.asked + 1
        with self._guard:
            self._claims[number] = claim
        try:
            answer = self._ask(
                program,
                "acquire",
                AcquireOk,
                waits_s + self._patience_s,
                key=self._named(claim),
                ttl_ms=self._settings.ttl_ms,
                wait_ms=round(waits_s * 1000),
                mode=str(claim.mode),
            )
        except (Refused, WireFailure):
            with self._guard:
                self._claims.pop(number, None)
            raise
        return Grant(claim.key, (program, number), answer.token, answer.valid_ms, claim.mode)

    def _named(self, lock: Claim | Grant) -> str:
        """Its key, as the program has it."""
        return self._program.key_prefix + lock.key

    def renew(self, grant: Grant) -> float | None:
        program, number = cast("tuple[Program, int]", grant.handle)
        asked = {"key": self._named(grant), "acquire": number, "ttl_ms": self._settings.ttl_ms}
        return self._ask_again(program, "renew", RenewOk, asked).valid_ms

    def serve(self, grant: Grant, ask: Ask) -> Served:
        """Of a program that keeps what the lock protects: reads and writes are its own."""
        program, number = cast("tuple[Program, int]", grant.handle)
        content = {"key": ask.key, "acquire": number}
        if ask.f == F.READ:
            return Served(None, "", self._ask_again(program, "read", ReadOk, content).value)
        if ask.f != F.WRITE:
            raise InternalError(f"a program that stores has no {ask.f}")
        content |= {"value": ask.value, "base": ask.base, "token": ask.token}
        try:
            self._ask_again(program, "write", WriteOk, content)
        except Refused as refused:
            return Served(None, str(refused) or "refused", None)
        return Served(None, "", ask.value)

    def release(self, grant: Grant) -> object:
        program, number = self._of(grant)
        asked = {"key": self._named(grant), "acquire": number}
        self._ask_again(program, "release", ReleaseOk, asked)
        return None

    def _ask_again(
        self, program: Program, kind: str, expected: type[A], content: dict[str, Any]
    ) -> A:
        """The program that was granted the lock, and no other life of it."""
        if program.has_ended:
            raise WireFailure(Phase.CONNECT, PROGRAM, EndedError(program.why_ended))
        return self._ask(program, kind, expected, self._patience_s, **content)

    def leave(self, grant: Grant) -> None:
        program, number = self._of(grant)
        program.tell("leave", key=self._named(grant), acquire=number)

    def close(self) -> None:
        if self._running is not None:
            self._running.close()

    @property
    def _patience_s(self) -> float:
        return max(SHORTEST_PATIENCE_S, ANSWER_TTLS * self._settings.ttl_ms / 1000)

    def _of(self, grant: Grant) -> tuple[Program, int]:
        """The life of the program that was granted it, and the number of the acquire. What it says
        of that from now on is ignored."""
        program, number = cast("tuple[Program, int]", grant.handle)
        with self._guard:
            self._claims.pop(number, None)
        return program, number

    # --- what it says unasked ----------------------------------------------------------------

    def _heard(self, message: Notice | Answer) -> None:
        """On the thread that reads."""
        match message:
            case AcquireOk() if self._running is not None:
                # Granted after it was given up: the history has it as unknown.
                self._running.tell("leave", acquire=message.in_reply_to)
            case Lost() if claim := self._claims.get(message.acquire):
                claim.lost(message.text[:LONGEST_TEXT] or "the program says so")
            case Queued() if message.acquire not in self._queued:
                self._queued.add(message.acquire)
                if claim := self._claims.get(message.acquire):
                    with suppress(InternalError):  # it says so too late: it was answered by then
                        claim.queued()
            case Renewing() if claim := self._claims.get(message.acquire):
                self._renewals[message.renewal] = claim.renewing()
            case Renewed() if renewal := self._renewals.pop(message.renewal, None):
                renewal.granted(message.valid_ms)
            case NotRenewed() if renewal := self._renewals.pop(message.renewal, None):
                renewal.failed(_failure(message, of_its_own=True))


def _failure(message: Failed | NotRenewed, *, of_its_own: bool = False) -> Refused | WireFailure:
    text, refusal = message.text[:LONGEST_TEXT], REFUSALS.get(message.code)
    if refusal is None:
        return WireFailure(Phase.COMMAND, PROGRAM, UnknownError(text or f"code {message.code}"))
    if of_its_own and message.code in OWNERS_CODES:
        refusal = Refusal.NOT_OWNER
    return Refused(refusal, text)
