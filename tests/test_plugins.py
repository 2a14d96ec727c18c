"""A package from outside adds one of each kind, and nothing of lockcheck's is touched."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType

import pytest

import lockcheck as lockcheck_package
from lockcheck.backends import BACKENDS
from lockcheck.checker import CHECKS
from lockcheck.checker.linearizability import MODELS
from lockcheck.compose.images.added import files_of
from lockcheck.config import RunConfig
from lockcheck.errors import UserError
from lockcheck.history import Event, EventType
from lockcheck.history.event import NS_PER_MS, encode_event
from lockcheck.nemesis import FAULTS
from lockcheck.plugins import Named, Registry
from lockcheck.run.resolve import resolve
from lockcheck.servers import SERVERS
from lockcheck.storage import STORAGES
from lockcheck.workloads import WORKLOADS
from tests.checker.dsl import history
from tests.running import lockcheck, need

LOCK = '''
"""`SET NX PX` with a counter beside it: a lock of somebody else's."""

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Promises
from lockcheck.history import Refusal
from lockcheck.nodes.node import NodeSpec, Role
from lockcheck.servers.kind import Kind
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode
from lockcheck.servers.wire import Address, Refused


class CountedLock(Lock):
    def __init__(self, servers: tuple[Address, ...], settings: LockSettings) -> None:
        self._node = RedisNode(servers[0], settings.ttl_ms)
        self._settings = settings

    def acquire(self, claim: Claim) -> Grant:
        name, ttl_ms = f"lock:{claim.key}", self._settings.ttl_ms
        if self._node.call("SET", name, self._settings.owner, "NX", "PX", ttl_ms) is None:
            raise Refused(Refusal.HELD)
        return Grant(claim.key, None, token=int(self._node.call("INCR", "count")))

    def release(self, grant: Grant) -> object:
        return {"removed": self._node.call("DEL", f"lock:{grant.key}")}

    def close(self) -> None:
        self._node.close()


BACKEND = Backend(
    name="counted",
    summary="one Redis, and a counter beside it",
    promises=Promises(session=False, fencing=True),
    servers=(NodeSpec("r1", Role.SERVER, Kind("redis")),),
    connect=CountedLock,
    errors=REDIS_ERRORS,
    retry_ms=(5, 25),
    storage="forgetful",
)
'''

FAULT = '''
"""Servers that are stopped for a blink."""

import signal

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import SERVER
from lockcheck.nemesis.base import FaultKind
from lockcheck.nodes.waiting import wait_until


class Blink:
    def __init__(self, nodes):
        self.nodes = nodes

    async def inject(self):
        for node in self.nodes:
            node.signal(signal.SIGSTOP)
            await wait_until(lambda: set(node.thread_states()) == {"T"}, "it stopped", 5)

    async def prove(self):
        if not all(set(node.thread_states()) == {"T"} for node in self.nodes):
            raise FaultError("it runs")
        return "its eyes are shut"

    async def heal(self):
        for node in self.nodes:
            node.signal(signal.SIGCONT)
            await wait_until(lambda: "T" not in node.thread_states(), "it runs again", 5)


KIND = FaultKind(
    name="blink",
    summary="a server is stopped for a fraction of the lease",
    effect=Effect.STOPS,
    aims=(SERVER,),
    strike=lambda step, nodes, scene: Blink([scene.nodes[name] for name in nodes]),
    lasts_ms=lambda step, plan: plan.ttl_ms // 5,
)
'''

WORKLOAD = '''
"""Write without reading."""

from lockcheck.workloads.base import Workload


def section(session, held):
    session.think()
    session.write_mark(held, None)


WORKLOAD = Workload(
    name="scribble",
    summary="write without reading",
    run=lambda session: session.take_turns(section),
    stores=True,
    fewest=3,
)
'''

STORAGE = '''
"""A Redis that has everything but reads."""

from lockcheck.history import F
from lockcheck.storage.base import Served, StorageKind
from lockcheck.storage.redis import RedisStorage


class Forgetful(RedisStorage):
    def serve(self, ask):
        return Served(None, "", None) if ask.f == F.READ else super().serve(ask)


STORAGE = StorageKind("forgetful", server="redis", open=Forgetful)
'''

CHECK = '''
"""A lock that was held for too long."""

from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Culprit, Finding, Reason
from lockcheck.checker.wording import Words, one_to_blame
from lockcheck.history.event import NS_PER_MS
from lockcheck.words import lock_name, span

LONGEST_NS = 500 * NS_PER_MS


def find(case):
    for hold in case.holds:
        length_ns = hold.end_ns - hold.start_ns
        if length_ns > LONGEST_NS:
            yield finding(case, hold, length_ns)


def finding(case, hold, length_ns):
    blame = Blame(Culprit.CLIENT, 0, None)
    return Finding(
        code="hogging",
        key=hold.key,
        time_ns=hold.start_ns + LONGEST_NS,
        effect=CHECK.effect(case.terms, blame),
        holds=(hold,),
        operations=(),
        length_ns=length_ns,
        blame=blame,
        reasons=(Reason("{holds[0].node} kept all others out for {long}."),),
    )


CHECK = Check(
    code="hogging",
    meaning="a client held the lock for more than half a second",
    explanation="Whoever holds the lock keeps all others from their work.",
    find=find,
    words=Words(
        one="hogged lock",
        many="hogged locks",
        title=lambda f: f"{one_to_blame(f)} hogged {lock_name(f.key)} for {span(f.length_ns)}",
        last=lambda f: (one_to_blame(f), "hogs it from here on"),
        did=lambda f: f"it kept {lock_name(f.key)} to itself",
        cure="Do the slow work before the lock is taken.",
    ),
)
'''

MODEL = '''
"""A register that keeps the greatest value."""

from lockcheck.checker.linearizability.models import Illegal, Model
from lockcheck.history.table import Op


def step(greatest, call):
    if call.f is Op.WRITE:
        return max(greatest, call.argument)
    return greatest if call.result == greatest else Illegal(f"it is {greatest}")


MODEL = Model("max-register", "the greatest value is read", 0, step, frozenset({Op.READ, Op.WRITE}))
'''

ENTRY_POINTS = """
[lockcheck.backends]
counted = outside.lock:BACKEND
[lockcheck.faults]
blink = outside.fault:KIND
[lockcheck.workloads]
scribble = outside.workload:WORKLOAD
[lockcheck.storages]
forgetful = outside.storage:STORAGE
[lockcheck.checks]
hogging = outside.check:CHECK
[lockcheck.models]
max-register = outside.model:MODEL
"""
FILES = {
    "__init__": "",
    "lock": LOCK,
    "fault": FAULT,
    "workload": WORKLOAD,
    "storage": STORAGE,
    "check": CHECK,
    "model": MODEL,
}


def install(
    folder: Path,
    entry_points: str = ENTRY_POINTS,
    *,
    files: Mapping[str, str] = MappingProxyType(FILES),
    name: str = "outside",
) -> dict[str, str]:
    """As pip would: a package, and what it says of itself. The variables with which it is found."""
    package, about = folder / name, folder / f"{name}-1.0.dist-info"
    for each in (package, about):
        each.mkdir()
    for module, text in files.items():
        (package / f"{module}.py").write_text(text)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)
    return {"PYTHONPATH": str(folder)}


@pytest.mark.cluster
def test_a_run_of_nothing_but_what_was_added(tmp_path: Path) -> None:
    need("local")
    words = ["--backend", "counted", "--nemesis", "blink", "--workload", "scribble", "--json"]
    words += ["--guard", "fence", "--time-limit", "5s", "--runtime", "local", "--seed", "1"]
    done = lockcheck("run", *words, "--out", str(tmp_path / "results"), variables=install(tmp_path))
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads(done.stdout)
    assert result["counts"]["faults"] >= 1
    assert result["counts"]["writes_accepted"] >= 3


def test_what_was_added_is_listed(tmp_path: Path) -> None:
    done = lockcheck("list", variables=install(tmp_path)).stdout
    names = ("counted", "blink", "scribble", "hogging", "max-register")
    assert all(f"  {name} " in done for name in names)


HOGGED = history("""
    1 acquire 0-1
    1 release 20-21
    2 acquire 30-31
    2 release 900-901""")


@pytest.mark.parametrize("turns", [0, 20_000], ids=["read event by event", "read as columns"])
def test_a_check_judges_tells_and_explains(tmp_path: Path, turns: int) -> None:
    variables, log, page = install(tmp_path), tmp_path / "h.jsonl", tmp_path / "page.html"
    log.write_bytes(b"\n".join(map(encode_event, chain(HOGGED.events, in_turns(turns)))) + b"\n")
    found = lockcheck("check", str(log), "--report", str(page), variables=variables)
    assert found.returncode == 1, found.stderr
    for text in (found.stdout, page.read_text()):
        assert "n2 hogged k for 869 ms" in text
        assert "Do the slow work before the lock is taken." in text
        assert "The client n2: it kept k to itself." in text
    assert "n2 kept all others out for 869 ms." in page.read_text()
    result = json.loads(lockcheck("check", str(log), "--json", variables=variables).stdout)
    assert [finding["code"] for finding in result["findings"]] == ["hogging"]
    explained = lockcheck("explain", "hogging", variables=variables).stdout
    assert "keeps all others from their work" in explained


def in_turns(number: int) -> Iterator[Event]:
    """They make the file long enough to be read as columns."""
    for turn in range(number):
        for f, ms in (("acquire", 0), ("release", 5)):
            for kind in (EventType.INVOKE, EventType.OK):
                yield Event((1000 + 10 * turn + ms) * NS_PER_MS, turn % 3, kind, f, key="k")


def test_a_model_judges(tmp_path: Path) -> None:
    variables, log = install(tmp_path), tmp_path / "h.jsonl"
    lines = ("0 write:x 0-1 7", "1 write:x 2-3 5", "2 read:x 4-5 = 7")
    log.write_bytes(b"\n".join(map(encode_event, history(*lines).events)) + b"\n")
    usual = lockcheck("check", str(log), "--model", "register", variables=variables)
    assert usual.returncode == 1, usual.stderr
    own = lockcheck("check", str(log), "--model", "max-register", "--json", variables=variables)
    [definition] = json.loads(own.stdout)["definitions"]
    assert (definition["model"], definition["engine"]) == ("max-register", "search")


REGISTRIES = (BACKENDS, WORKLOADS, SERVERS, FAULTS, STORAGES, CHECKS, MODELS)


@pytest.mark.parametrize(
    ("registry", "room", "names"),
    [
        ("backends/__init__.py", "backends", ("etcd.etcd", "zookeeper.zookeeper")),
        ("nemesis/__init__.py", "nemesis.faults", ("kill", "failover")),
        ("workloads/__init__.py", "workloads", ("register", "mutex")),
        ("servers/__init__.py", "servers", ("etcd", "zookeeper")),
        ("storage/__init__.py", "storage", ("redis",)),
        ("checker/registry.py", "checker.judges", ("deadlock", "silent_loss")),
    ],
)
def test_ours_take_an_entry(registry: str, room: str, names: tuple[str, ...]) -> None:
    """All that names them outside of their own files is the registry of their room."""
    package = Path(lockcheck_package.__file__).parent
    for name in names:
        module = f"lockcheck.{room}.{name}"
        importing = [path for path in package.rglob("*.py") if module in _imported(path)]
        assert importing == []
        assert len(re.findall(rf'"{name}:[A-Z]+"', (package / registry).read_text())) == 1


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda each: next(iter(each)))
def test_the_names_of_entries_are_the_names_of_what_they_lead_to(registry: Registry[Named]) -> None:
    assert {name: each.name for name, each in registry.items()} == {name: name for name in registry}


def test_names_import_nothing_and_a_lookup_imports_one_module() -> None:
    script = (
        "import sys; from lockcheck.backends import BACKENDS\n"
        "rooms = ('redis.', 'etcd.', 'sql.', 'zookeeper.', 'consul')\n"
        "ours = tuple(f'lockcheck.backends.{room}' for room in rooms)\n"
        "loaded = lambda: sorted(name for name in sys.modules if name.startswith(ours))\n"
        "assert 'consul' in list(BACKENDS) and loaded() == [], loaded()\n"
        "assert BACKENDS['consul'].name == 'consul'\n"
        "assert loaded() == ['lockcheck.backends.consul'], loaded()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@cache
def _imported(path: Path) -> set[str]:
    """What a file imports from, and what it imports from there."""
    imports = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    return {
        name
        for node in imports
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
        if name
    }


@pytest.mark.cluster
@pytest.mark.docker
@pytest.mark.long
def test_containers_have_it_too(tmp_path: Path) -> None:
    need("docker")
    asked = ("--backend", "counted", "--workload", "scribble", "--nemesis", "blink")
    where = ("--runtime", "docker", "--time-limit", "8s", "--out", str(tmp_path / "results"))
    done = lockcheck("run", *asked, *where, "--clients", "3", variables=install(tmp_path))
    assert done.returncode in (0, 3), done.stderr  # 3: on a busy machine
    assert re.search(r"[1-9]\d* times granted", done.stdout)
    history = (tmp_path / "results" / "latest" / "history.jsonl").read_text()
    assert "its eyes are shut" in history


def test_ours_need_no_package() -> None:
    config = RunConfig(backend="redis", nemesis=("pause then kill:server",), seed=1)
    assert resolve(config).packages == ()


def test_what_goes_into_an_image_is_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    required = tmp_path / "helper-2.0.dist-info"
    required.mkdir()
    (required / "METADATA").write_text("Name: helper\nVersion: 2.0\n")
    (required / "RECORD").write_text("helper.py,,\n")
    (tmp_path / "helper.py").write_text("HELP = 1\n")
    about = tmp_path / "outside-1.0.dist-info" / "METADATA"
    requirements = (
        "Requires-Dist: helper>=1\nRequires-Dist: redis\nRequires-Dist: x; extra == 'y'\n"
    )
    about.write_text(f"Name: outside\nVersion: 1.0\n{requirements}")
    files = files_of(["outside"])
    assert {"outside/lock.py", "helper.py"} < files.keys()
    assert b"counted" in files["outside-1.0.dist-info/entry_points.txt"]
    assert not any(path.startswith(("redis", "lockcheck")) for path in files)
    (tmp_path / "outside" / "fast.so").touch()
    with pytest.raises(UserError, match=r"outside is compiled for this host's Python \(fast.so\)"):
        files_of(["outside"])
