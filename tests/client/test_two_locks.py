"""A section under two locks: a client that loses track of one of them has lost track of both."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from lockcheck.backends.base import Backend, Claim, Grant, LockSettings, Promises
from lockcheck.backends.keeper import Keeper, KeptAlive, KeptAliveLock
from lockcheck.checker import judge
from lockcheck.checker.finding import Culprit
from lockcheck.client.claims import Held, SectionOver
from lockcheck.client.recorder import Recorder
from lockcheck.client.session import Session
from lockcheck.history import Ending, EventWriter, F, History, Terms, read_history
from lockcheck.history.event import terms_event
from lockcheck.history.files import merge_event_files
from lockcheck.servers.wire import Phase, WireFailure
from tests.checker.dsl import ledger_of
from tests.client.crowd import Memory, MemoryStorage

TTL_MS = 60_000
UNANSWERED = WireFailure(Phase.COMMAND, "r1", TimeoutError())
PROMISES = Promises(session=False, fencing=True)
INNER = "k2"  # of which some requests are not answered


@dataclass
class Service:
    """A lock that lets everybody in, and whose answers about the inner lock can get lost."""

    memory: Memory = field(default_factory=lambda: Memory(PROMISES))
    unanswered: str = F.ACQUIRE
    meanwhile: Callable[[], object] = lambda: None
    tokens: int = 0

    def token(self) -> int:
        self.tokens += 1
        return self.tokens

    def ask(self, f: str, key: str) -> None:
        if (f, key) == (self.unanswered, INNER):
            self.meanwhile()
            raise UNANSWERED


@dataclass(eq=False)
class KeptLock(KeptAliveLock[KeptAlive]):
    service: Service

    def __post_init__(self) -> None:
        super().__init__()

    def acquire(self, claim: Claim) -> Grant:
        self.service.ask(F.ACQUIRE, claim.key)
        keeper = Keeper(claim, lambda _timeout_s: None, TTL_MS / 1000, time.monotonic())
        keeper.start()
        return self._granted(claim, KeptAlive(claim.key, keeper, self), self.service.token())

    def release(self, grant: Grant) -> object:
        self._let_go(grant)
        self.service.ask(F.RELEASE, grant.key)
        return {"removed": 1}

    def close(self) -> None: ...


@dataclass
class Clients:
    folder: Path
    service: Service = field(default_factory=Service)
    made: list[Session] = field(default_factory=list)

    def add(self) -> Session:
        name = f"c{len(self.made) + 1}"
        (self.folder / f"{name}.aims").mkdir()
        session = Session(
            backend=Backend(
                name="kept",
                summary="",
                promises=PROMISES,
                servers=(),
                connect=lambda _servers, _settings: KeptLock(self.service),
                errors=(),
            ),
            lock=KeptLock(self.service),
            storage=MemoryStorage(self.service.memory),
            settings=LockSettings(name, TTL_MS, random.Random(name)),
            recorder=Recorder(
                EventWriter(self.folder / f"{name}.jsonl"),
                *(name, len(self.made), 2),
                origin_ns=0,
                stall_ms=1e9,
            ),
            stopping=threading.Event(),
            keys=("k1", INNER),
            think_ms=(0, 0),
            check_validity=False,
            aims=self.folder / f"{name}.aims",
        )
        self.made.append(session)
        return session

    def history(self) -> History:
        events = list(merge_event_files(sorted(self.folder.glob("*.jsonl"))))
        terms = Terms(backend="kept", workload="register", clients=2, ttl_ms=TTL_MS, stores=True)
        ledger = [structs.replace(each, time=events[-1].time) for each in ledger_of(events)]
        return History.of([terms_event(terms), *events, *ledger])


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    clients = Clients(tmp_path)
    yield clients
    for session in clients.made:
        session.recorder.close()


def written(clients: Clients) -> list[str]:
    """What the first client wrote: `acquire k1`, `acquire k1 ok` ..."""
    events = read_history(clients.folder / "c1.jsonl").events
    return [" ".join([e.f, e.key or "", *([] if e.type == "invoke" else [e.type])]) for e in events]


def under_both(session: Session, held: Held) -> None:
    session.read(held)
    session.locked(INNER, lambda session, inner: session.read(inner))
    session.write_mark(held, None)
    pytest.fail("it goes on")


@pytest.mark.parametrize(
    ("unanswered", "last"),
    [(F.ACQUIRE, f"acquire {INNER} info"), (F.RELEASE, f"release {INNER} info")],
)
def test_a_second_lock_that_does_not_answer_ends_the_section_under_the_first(
    clients: Clients, unanswered: str, last: str
) -> None:
    clients.service.unanswered = unanswered
    session = clients.add()
    assert session.locked("k1", under_both)
    assert written(clients)[-1] == last, "nothing is written after it, and nothing is released"
    [hold, *_] = clients.history().holds
    assert (hold.key, hold.ending) == ("k1", Ending.LAST_SEEN)
    assert not session._held


def test_an_unanswered_read_under_the_second_lock_ends_both_sections(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, seen = clients.add(), list[str]()

    def serve(storage: MemoryStorage, ask: object) -> object:
        seen.append(storage.memory_of_all.serve(ask))  # type: ignore[arg-type]
        if len(seen) == 2:
            raise UNANSWERED
        return seen[-1]

    clients.service.unanswered = ""
    monkeypatch.setattr(MemoryStorage, "serve", serve)
    assert session.locked("k1", under_both)
    assert written(clients)[-1] == f"read {INNER} info"
    assert not session._held


def test_a_keeper_stops_with_the_process_and_the_client_goes_on_as_another(
    clients: Clients,
) -> None:
    session, keepers = clients.add(), list[Keeper]()

    def section(session: Session, held: Held) -> None:
        assert isinstance(held.grant.handle, KeptAlive)
        keepers.append(held.grant.handle.keeper)
        under_both(session, held)

    session.locked("k1", section)
    [keeper] = keepers
    assert not keeper._thread.is_alive()
    clients.service.unanswered = ""
    session.locked("k1", Session.update)
    assert written(clients)[-1] == "release k1 ok"
    assert {hold.process for hold in clients.history().holds} == {0, 2}


def test_a_lock_around_three_ends_with_the_innermost(clients: Clients) -> None:
    session = clients.add()

    def middle(session: Session, _held: Held) -> None:
        session.locked("k3", under_both)
        pytest.fail("it goes on")

    assert session.locked("k1", middle)
    assert written(clients)[-1] == f"acquire {INNER} info"


def test_what_a_retired_process_holds_can_be_neither_used_nor_released(clients: Clients) -> None:
    session = clients.add()
    held = session.try_acquire("k1")
    assert held is not None
    with pytest.raises(SectionOver):
        session.try_acquire(INNER)
    with pytest.raises(SectionOver):
        session.write_mark(held, None)
    assert not session.release(held)
    assert written(clients)[-1] == f"acquire {INNER} info"


def test_outside_of_a_section_an_unanswered_acquire_is_no_grant_and_no_more(
    clients: Clients,
) -> None:
    assert clients.add().try_acquire(INNER) is None


# --- what the judges make of it ------------------------------------------------------------------


def blamed(clients: Clients) -> set[tuple[str, Culprit]]:
    findings = judge(clients.history()).findings
    return {(each.code, each.blame.who) for each in findings if each.blame}


def test_whom_the_service_lets_in_meanwhile_overlaps_and_makes_writes_stale(
    clients: Clients,
) -> None:
    """The service lets the second client in early, again and again."""
    first, second = clients.add(), clients.add()
    clients.service.meanwhile = lambda: second.locked("k1", Session.update)

    def section(session: Session, held: Held) -> None:
        base = session.read(held)
        second.locked("k1", Session.update)
        session.write_mark(held, base)
        session.locked(INNER, lambda *_: pytest.fail("it was not granted"))
        base = session.read(held)
        second.locked("k1", Session.update)
        session.write_mark(held, base)

    first.locked("k1", section)
    assert blamed(clients) == {
        ("overlap", Culprit.SERVICE),
        ("stale-write", Culprit.SERVICE),
        ("lost-update", Culprit.SERVICE),
        ("not-linearizable", Culprit.SERVICE),
    }


def test_no_write_is_lost_to_a_client_that_goes_on_without_its_lock(clients: Clients) -> None:
    first, second = clients.add(), clients.add()

    def section(session: Session, held: Held) -> None:
        session.locked(INNER, lambda *_: pytest.fail("it was not granted"))
        base = session.read(held)

        def under_one(session: Session, other: Held) -> None:
            session.read(other)
            first.write_mark(held, base)
            session.write_mark(other, base)

        second.locked("k1", under_one)

    first.locked("k1", section)
    second.locked("k1", Session.update)
    assert blamed(clients) == {("not-linearizable", Culprit.SERVICE)}
