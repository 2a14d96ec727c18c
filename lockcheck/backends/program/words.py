"""A user's own lock, from words: its program, the servers it needs, what it promises."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import lockcheck
from lockcheck.backends import BACKENDS
from lockcheck.backends.base import Backend, LockSettings, Promises
from lockcheck.backends.program import FOLDER_THERE, TOOLS_THERE, ClientProgram
from lockcheck.backends.program.environment import interpreter
from lockcheck.backends.program.lock import ERRORS, ProgramLock
from lockcheck.durations import parse_duration_ms
from lockcheck.errors import UserError
from lockcheck.nodes.node import NodeSpec, nodes_for, server_nodes
from lockcheck.servers.kind import Kind
from lockcheck.servers.wire import Address

USUAL_SERVERS = "redis"
YOURS = "your lock"  # as a finding names a lock without a name of its own
MEMBERS = 3  # of servers that elect a leader
MOST_SERVERS = 9
# What each word says of a lock: docs/your-lock.md explains them.
FLAGS = {
    "session": ("session", True),
    "token": ("fencing", True),
    "waits": ("waits", True),
    "fair": ("fair", True),
    "renews": ("renews", True),
    "extends": ("extends", True),
    "stores": ("stores", True),
    "reentrant": ("reentrant", True),
    "shared": ("shared", True),
    "validity": ("tells_validity", True),
    "silent-release": ("tells_release", False),
    "blind-release": ("checks_owner", False),
}
VALUES = ("permits=N", "ends-with=connection|server", "lapses=N", "ttl-step=DURATION")
ENDS = ("connection", "server")
PYTHON_NAME = re.compile(r"(?:[A-Za-z_][\w.]*|.+\.py):[A-Za-z_][\w.]*")
PYTHON_CLIENT = Path(lockcheck.__file__).parent / "python_client" / "lockcheck_client.py"
SERVERS_PATTERN = re.compile(r"([a-z0-9-]+(?:=[^*=]+)?)(?:\*(\d+))?")
ADDRESS_PATTERN = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([\w.-]+)):(\d{1,5})")


@dataclass(frozen=True, slots=True)
class Connect:
    program: ClientProgram
    promises: Promises

    def __call__(self, servers: tuple[Address, ...], settings: LockSettings) -> ProgramLock:
        return ProgramLock(servers, settings, program=self.program, promises=self.promises)


def backend_of(
    name: str, program: ClientProgram, servers: str, promises: Iterable[str], accused: str = YOURS
) -> Backend:
    """Raises a UserError with the cure."""
    promised, nodes = promises_of(promises), servers_of(servers or USUAL_SERVERS)
    kind = nodes[0].kind
    elects = kind is not None and kind.server.leader is not None
    return Backend(
        name=name,
        summary=" ".join(program.command),
        promises=promised,
        servers=nodes,
        connect=Connect(program, promised),
        errors=ERRORS,
        independent=len(nodes) > 1 and not elects,
        workload=_usual_workload(promised),
        accused=accused,
    )


def name_of(client: str) -> str:
    """What a lock is called that has no name: after its program, or its class."""
    words = _words(client)
    last = words[0].rpartition(":")[2] if _is_python(words) else Path(words[-1]).stem
    name = re.sub(r"[^\w.-]+", "-", last).strip("-") or "client"
    return f"{name}-client" if name in BACKENDS else name


def command_of(client: str, python: str = "", requirements: Sequence[str] = ()) -> tuple[str, ...]:
    words = _words(client)
    if _is_python(words):
        # Who imports from an environment in the cache writes nothing into it.
        own = (str(interpreter(requirements, python)), "-B") if requirements else ()
        return (*(own or (python or sys.executable,)), "-u", str(PYTHON_CLIENT), words[0])
    if option := "--requirements" if requirements else "--python" if python else "":
        raise UserError(
            f"{option} is for a client that is named MODULE:NAME, and {client!r} is a program",
            cure="leave it out, or name the module and the class",
        )
    return tuple(words)


def command_there(client: str, folder: str = "", python: str = "") -> tuple[str, ...]:
    """The same in a container, where that folder, if there is one, is mounted as FOLDER_THERE."""
    words = _words(client)
    if _is_python(words):
        words = [python or "python3", "-u", f"{TOOLS_THERE}/{PYTHON_CLIENT.name}", *words]
    if not folder:
        return tuple(words)
    inside = re.compile(rf"(?<![\w./-]){re.escape(folder.rstrip('/'))}(?=/)")
    return tuple(inside.sub(FOLDER_THERE, word) for word in words)


def _words(client: str) -> list[str]:
    try:
        words = shlex.split(client)
    except ValueError as error:
        raise UserError(
            f"--client {client!r} cannot be read: {error}", cure="quote it as in a shell"
        ) from error
    if not words:
        raise UserError("--client is empty", cure="name a program, or MODULE:NAME")
    return words


def is_python(client: str) -> bool:
    """Whether it is named MODULE:NAME."""
    return _is_python(_words(client))


def _is_python(words: list[str]) -> bool:
    return len(words) == 1 and PYTHON_NAME.fullmatch(words[0]) is not None


def servers_of(text: str) -> tuple[NodeSpec, ...]:
    """`redis*3`, `etcd`, `etcd=3.4*5`; or `redis=host:6379,host:6380`, which are there already."""
    kind_name, _, where = text.partition("=")
    if ":" in where:  # no version has one
        return _elsewhere(Kind.parse(kind_name), where.split(","))
    found = SERVERS_PATTERN.fullmatch(text)
    if found is None:
        raise UserError(
            f"--servers {text!r} cannot be read",
            cure="KIND, KIND=VERSION or KIND*NUMBER, as in redis*3; KIND=HOST:PORT,HOST:PORT for "
            "servers that are there already",
        )
    kind = Kind.parse(found[1])
    if beside := kind.server.beside:
        raise UserError(
            f"--servers {text}: {kind.server.title} does not run without {beside}",
            cure=f"--servers {beside}; or --backend, for a lock that has both",
        )
    usual = MEMBERS if kind.server.leader else 1
    number = int(found[2]) if found[2] else usual
    if not 1 <= number <= MOST_SERVERS:
        raise UserError(f"--servers {text}: {number} of them", cure=f"1 to {MOST_SERVERS}")
    return server_nodes(kind, number)


def _elsewhere(kind: Kind, texts: Sequence[str]) -> tuple[NodeSpec, ...]:
    if len(texts) > MOST_SERVERS:
        raise UserError(f"--servers: {len(texts)} of them", cure=f"1 to {MOST_SERVERS}")
    return nodes_for(kind, [_address(text.strip()) for text in texts])


def _address(text: str) -> Address:
    found = ADDRESS_PATTERN.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 1 << 16:
        raise UserError(
            f"--servers: {text!r} is no address", cure="HOST:PORT, as in redis=10.0.0.7:6379"
        )
    return found[1] or found[2], int(found[3])


def promises_of(words: Iterable[str]) -> Promises:
    given: dict[str, object] = {"session": False, "fencing": False, "tells_validity": False}
    for word in (word for text in words for word in re.split(r"[,\s]+", text) if word):
        given |= _promise(word)
    return Promises(**given)  # type: ignore[arg-type]


def _promise(word: str) -> dict[str, object]:
    name, equals, value = word.partition("=")
    if not equals and name in FLAGS:
        field, means = FLAGS[name]
        return {field: means}
    try:
        match name:
            case "lease" if not equals:
                return {}
            case "permits" if int(value) > 0:
                return {"permits": int(value)}
            case "lapses" if 1 <= float(value) <= 100:
                return {"lapses_after": float(value)}
            case "ends-with" if value in ENDS:
                return {"ends_with": value}
            case "ttl-step":
                return {"ttl_step_ms": parse_duration_ms(value)}
    except ValueError:
        pass
    known = ", ".join(["lease", *FLAGS, *VALUES])
    raise UserError(f"unknown promise {word!r}", cure=f"choose from: {known}")


def _usual_workload(promises: Promises) -> str:
    if promises.permits > 1:
        return "permits"
    if promises.shared:
        return "readers"
    return "nested" if promises.reentrant else "register"
