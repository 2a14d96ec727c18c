"""A client program on a node of a cluster, asked by hand and without a run: docs/protocol.md."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from lockcheck.backends.program.messages import (
    ANSWERS,
    AcquireOk,
    Answer,
    Failed,
    Lost,
    Mistaken,
    Notice,
    read,
    written,
)
from lockcheck.library.cluster import Cluster

REST_S = 0.02  # between two attempts


@dataclass(frozen=True, slots=True)
class Reply:
    message: Answer | Mistaken | None  # None: nothing, in time
    took_s: float
    number: int  # of the request
    ended: str = ""  # it has, before it answered

    @property
    def granted(self) -> bool:
        return isinstance(self.message, AcquireOk)

    @property
    def token(self) -> int | None:
        return self.message.token if isinstance(self.message, AcquireOk) else None

    @property
    def words(self) -> str:
        match self.message:
            case None if self.ended:
                return self.ended
            case None:
                return f"no answer within {self.took_s:.1f} s"
            case Mistaken():
                return f"an answer without sense: {self.message.why}"
            case Failed():
                return f"error {self.message.code}: {self.message.text}"[:200]
        return f"{type(self.message).__name__}, after {self.took_s * 1000:.0f} ms"


@dataclass
class Peer:
    cluster: Cluster
    node: str
    command: Sequence[str]
    ttl_ms: int
    key: str = "k1"
    rubbish: list[str] = field(default_factory=list)  # what it printed that is no message
    lost: dict[int, float] = field(default_factory=dict)  # by acquire: when it reported the loss

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self.begin()

    def begin(self) -> None:
        self._program = self.cluster.run(self.node, self.command)

    def init(self, within_s: float) -> Reply:
        servers = [f"{name}:{self.cluster.port(name)}" for name in self.cluster.servers]
        content = {"node_id": self.node, "node_ids": [self.node], "servers": servers}
        return self.ask("init", within_s, **content, ttl_ms=self.ttl_ms, options={})

    def acquire(self, within_s: float, *, wait_ms: int = 0, mode: str = "exclusive") -> Reply:
        asked = {"key": self.key, "ttl_ms": self.ttl_ms, "wait_ms": wait_ms, "mode": mode}
        return self.ask("acquire", within_s, **asked)

    def renew(self, acquire: int, within_s: float) -> Reply:
        return self.ask("renew", within_s, key="k1", acquire=acquire, ttl_ms=self.ttl_ms)

    def release(self, acquire: int, within_s: float) -> Reply:
        return self.ask("release", within_s, key=self.key, acquire=acquire)

    def ask(self, kind: str, within_s: float, **content: Any) -> Reply:
        number, began = next(self._numbers), time.monotonic()
        answer, ended = None, ""
        try:
            self._program.say(written(self.node, kind, number, content).decode().rstrip("\n"))
            answer = self._hear(number, began + within_s)
        except EOFError as error:
            ended = str(error)
        reply = Reply(answer, time.monotonic() - began, number, ended)
        if ended and kind != "init":
            self.begin()
            self.init(within_s)
        return reply

    def listen(self, for_s: float) -> None:
        """To what it says unasked."""
        with suppress(EOFError):
            self._hear(0, time.monotonic() + for_s)

    def _hear(self, number: int, until: float) -> Answer | Mistaken | None:
        while (left_s := until - time.monotonic()) > 0:
            try:
                line = self._program.hear(left_s)
            except TimeoutError:
                break
            message = self._read(line)
            if isinstance(message, (*ANSWERS, Mistaken)) and message.in_reply_to == number:
                return message
            if isinstance(message, Lost):
                self.lost.setdefault(message.acquire, time.monotonic())
        return None

    def _read(self, line: str) -> Answer | Notice | Mistaken | None:
        try:
            return read(line.encode())
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self.rubbish.append(line)
            return None


def freed_after(asking: Peer, most_s: float, within_s: float) -> tuple[float, Reply] | None:
    """How long it takes until it is granted the lock; None: not within that time."""
    began = time.monotonic()
    while time.monotonic() - began < most_s:
        reply = asking.acquire(within_s)
        if reply.granted:
            return time.monotonic() - began, reply
        time.sleep(REST_S)
    return None
