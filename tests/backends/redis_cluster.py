"""A primary, its replicas and their Sentinels on loopback, with the settings of a run."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lockcheck.servers.base import Here, Question, Server
from lockcheck.servers.redis import REDIS_PORT
from lockcheck.servers.redis_replicated import REDIS_REPLICATED
from lockcheck.servers.redis_sentinel import REDIS_SENTINEL, SENTINEL_PORT
from lockcheck.servers.wire import Address
from tests.backends.servers import found, free_port
from tests.waiting import wait_for

NAMES = ("localhost", "second", "third")  # the first is the primary, whose name has to resolve
ANSWER_S = 0.1
LOOPBACK = ("0.0.0.0", "127.0.0.1")  # noqa: S104 - where a node listens, and where a test does


@dataclass
class Member:
    kind: Server
    command: list[str]
    folder: Path
    address: Address
    process: subprocess.Popen[bytes]

    def says(self, question: Question) -> bool:
        heard = b""
        with suppress(OSError), socket.create_connection(self.address, ANSWER_S) as connection:
            connection.settimeout(ANSWER_S)
            connection.sendall(question.ask)
            while chunk := connection.recv(4096):
                heard += chunk
                if re.search(question.answer, heard, re.DOTALL):
                    return True
        return False

    def await_ready(self) -> None:
        wait_for(lambda: self.says(self.kind.ready), f"{self.folder.name} is ready")

    def leads(self) -> bool:
        return self.kind.leader is not None and self.says(self.kind.leader)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        self.process = _start(self.command, self.folder)


@dataclass(frozen=True)
class Cluster:
    replicated: list[Member]
    sentinels: list[Member]

    @property
    def contact(self) -> tuple[Address, ...]:
        return tuple(sentinel.address for sentinel in self.sentinels)

    def leaders(self) -> list[Member]:
        return [member for member in self.replicated if member.leads()]


@contextmanager
def redis_cluster(folder: Path) -> Iterator[Cluster]:
    ports = [free_port() for _ in NAMES]
    with ExitStack() as ends:

        def member(kind: Server, number: int, port: int) -> Member:
            one = _member(folder / f"{kind.name}-{number}", kind, number, port, ports[0])
            ends.callback(one.kill)
            if kind is REDIS_REPLICATED and number == 0:
                one.await_ready()  # a replica that finds no primary asks again a second later
            return one

        replicated = [member(REDIS_REPLICATED, number, port) for number, port in enumerate(ports)]
        sentinels = [member(REDIS_SENTINEL, number, free_port()) for number in range(len(NAMES))]
        members = (*replicated, *sentinels)
        # All are asked each time: Sentinels wait for each other, and what hurries them is asked.
        wait_for(lambda: not [one for one in members if not one.says(one.kind.ready)], "all ready")
        yield Cluster(replicated, sentinels)


def _member(folder: Path, kind: Server, number: int, port: int, primary_port: int) -> Member:
    folder.mkdir()
    servers = {REDIS_REPLICATED.name: NAMES}
    here = Here(NAMES[number], NAMES, str(folder), found(kind), servers)
    for name, text in kind.files(here).items():
        own = text.replace(f"port {SENTINEL_PORT}", f"port {port}").replace(*LOOPBACK)
        (folder / name).write_text(re.sub(rf"\b{REDIS_PORT}\b", str(primary_port), own))
    own_words = {str(REDIS_PORT): str(port), LOOPBACK[0]: LOOPBACK[1]}
    command = [own_words.get(word, word) for word in kind.command(here)]
    return Member(kind, command, folder, ("127.0.0.1", port), _start(command, folder))


def _start(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with (folder / "output.log").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
