"""A client's loop with a lock that a test controls: notices, validity, aims, and its end."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import pytest

from lockcheck.backends.base import Backend, Claim, Grant, Lock, LockSettings, Mode, Promises
from lockcheck.client.claims import Held, SectionOver
from lockcheck.client.recorder import Recorder
from lockcheck.client.session import Session
from lockcheck.errors import InternalError
from lockcheck.history import Event, EventWriter, Refusal, read_history
from lockcheck.history.model import Ending
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure
from lockcheck.storage.base import Ask, Served, Storage
from lockcheck.workloads.mutex import WORKLOAD as MUTEX
from tests.waiting import wait_for


class ControlledLock(Lock):
    """Grants at once, and leaves the claim where a test finds it."""

    def __init__(self, _servers: tuple[Address, ...], _settings: LockSettings) -> None:
        self.claims: list[Claim] = []
        self.left: list[Grant] = []
        self.valid_ms: float | None = 10_000
        self.before_the_grant: Callable[[Claim], None] = lambda claim: None
        self.closed = False
        self.refuses_releases = False
        self.renewals: list[WireFailure | Refused | None] = []  # how each further one fails

    def acquire(self, claim: Claim) -> Grant:
        self.claims.append(claim)
        self.before_the_grant(claim)
        return Grant(claim.key, len(self.claims), valid_ms=self.valid_ms, mode=claim.mode)

    def renew(self, grant: Grant) -> float | None:
        if failure := self.renewals.pop():
            raise failure
        return 50.0

    def release(self, grant: Grant) -> object:
        if self.refuses_releases:
            raise Refused(Refusal.NOT_OWNER)
        return {"removed": 1}

    def leave(self, grant: Grant) -> None:
        self.left.append(grant)

    def close(self) -> None:
        self.closed = True


@dataclass
class Register(Storage):
    fails: bool = False
    asked: list[Ask] = field(default_factory=list)
    errors: tuple[ErrorRow, ...] = ()

    def serve(self, ask: Ask) -> Served:
        if self.fails:
            raise WireFailure(Phase.COMMAND, "s1", TimeoutError("slow"))
        self.asked.append(ask)
        return Served(len(self.asked), "", None)

    def ledger(self) -> list[Ask]:
        return self.asked

    def close(self) -> None: ...


BACKEND = Backend(
    name="controlled",
    summary="controlled by a test",
    promises=Promises(session=True, fencing=False, renews=True, waits=True),
    servers=(),
    connect=ControlledLock,
    errors=(),
    retry_ms=(0, 1),
)


@dataclass
class Client:
    session: Session
    path: Path

    @property
    def lock(self) -> ControlledLock:
        assert isinstance(self.session.lock, ControlledLock)
        return self.session.lock

    def events(self) -> list[Event]:
        return list(read_history(self.path).events)

    def names(self) -> list[str]:
        """`acquire`, `acquire!` for its answer, `lost` ..."""
        return [e.f + ("" if e.type in ("invoke", "info") else "!") for e in self.events()]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    aims = tmp_path / "aims"
    aims.mkdir()
    path = tmp_path / "history.jsonl"
    recorder = Recorder(EventWriter(path), "c1", 0, 5, origin_ns=0, stall_ms=1e6)
    settings = LockSettings("c1", 1000, random.Random(1))
    session = Session(
        backend=BACKEND,
        lock=BACKEND.connect((), settings),
        storage=Register(),
        settings=settings,
        recorder=recorder,
        stopping=threading.Event(),
        keys=("k1",),
        think_ms=(1, 1),
        check_validity=False,
        aims=aims,
    )
    yield Client(session, path)
    recorder.close()


def in_the_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_what_a_turn_writes(client: Client) -> None:
    assert client.session.locked("k1", lambda session, held: session.think())
    assert client.names() == ["acquire", "acquire!", "release", "release!"]


def test_work_takes_between_its_shortest_and_its_longest(client: Client) -> None:
    client.session.think_ms = (30, 40)
    began = time.monotonic()
    client.session.locked("k1", lambda session, held: session.think())
    assert time.monotonic() - began >= 0.03


def test_a_shared_claim_is_written_as_one(client: Client) -> None:
    client.session.locked("k1", lambda session, held: None, Mode.SHARED)
    assert [e.shared for e in client.events()] == [True, True, False, False]


def test_a_loss_reported_by_another_thread_ends_the_thinking_at_once(client: Client) -> None:
    client.session.think_ms = (60_000, 60_000)

    def section(session: Session, held: Held) -> None:
        in_the_background(lambda: client.lock.claims[0].lost("the session expired"))
        session.think()
        pytest.fail("it goes on")

    began = time.monotonic()
    client.session.locked("k1", section)
    assert time.monotonic() - began < 20
    assert client.names() == ["acquire", "acquire!", "lost", "release", "release!"]
    assert client.events()[2].error == "the session expired"
    [hold] = read_history(client.path).holds
    assert hold.ending is Ending.LOST


def test_a_client_that_looks_writes_its_loss_before_it_does_anything_else(client: Client) -> None:
    client.session.check_validity = True

    def section(session: Session, held: Held) -> None:
        reporting = in_the_background(lambda: client.lock.claims[0].lost("gone"))
        reporting.join()
        assert "lost" not in client.names(), "it is the client that writes it, not the keeper"
        session.read(held)
        pytest.fail("it goes on")

    client.session.locked("k1", section)
    assert client.names()[2] == "lost"
    assert not client.session.storage.ledger()  # type: ignore[union-attr]


def test_a_client_that_does_not_look_acts_first_and_heeds_its_loss_then(client: Client) -> None:
    def section(session: Session, held: Held) -> None:
        reporting = in_the_background(lambda: client.lock.claims[0].lost("gone"))
        reporting.join()
        session.read(held)
        pytest.fail("it goes on")

    client.session.locked("k1", section)
    assert client.names()[2:5] == ["read", "read!", "lost"]


def test_who_was_stopped_goes_on_where_it_stood(client: Client) -> None:
    """Its loss was reported and the mark removed while it was stopped: it does its next step."""
    client.session.think_ms = (0, 0)
    aimed = client.session.aims / "work-1"
    aimed.touch()

    def tell_and_let_go() -> None:
        aimed.unlink()
        client.lock.claims[0].lost("gone")

    def section(session: Session, held: Held) -> None:
        reporting = in_the_background(tell_and_let_go)
        session.think()
        reporting.join()
        session.write_mark(held, None)

    client.session.locked("k1", section)
    names = client.names()
    assert names[2:4] == ["write", "write!"]
    assert "lost" in names[4:]


def test_a_loss_that_comes_before_the_grant_ends_the_section_that_follows(client: Client) -> None:
    client.lock.before_the_grant = lambda claim: claim.lost("suspended")
    client.session.locked("k1", lambda session, held: session.think())
    assert client.names() == ["acquire", "acquire!", "lost", "release", "release!"]


def test_a_late_report_about_a_claim_that_is_over_does_not_hit_the_next(client: Client) -> None:
    client.session.locked("k1", lambda session, held: None)

    def section(session: Session, held: Held) -> None:
        client.lock.claims[0].lost("late")
        session.think()

    client.session.locked("k1", section)
    assert "lost" not in client.names()


def test_queued_is_written_while_the_acquire_is_under_way_and_only_then(client: Client) -> None:
    client.lock.before_the_grant = lambda claim: claim.queued()
    client.session.locked("k1", lambda session, held: None)
    assert client.names()[:3] == ["acquire", "queued", "acquire!"]
    with pytest.raises(InternalError, match="no longer under way"):
        client.lock.claims[0].queued()


def test_a_claim_gives_up_after_its_patience_and_when_the_client_is_to_leave(
    client: Client,
) -> None:
    client.session.locked("k1", lambda session, held: None)
    [claim] = client.lock.claims
    assert 0 < claim.left_s() <= 4
    client.session.stopping.set()
    assert claim.left_s() == 0


def test_whether_a_release_checked_the_owner_is_written(client: Client) -> None:
    client.session.locked("k1", lambda session, held: None)
    promises = replace(BACKEND.promises, checks_owner=False)
    client.session.backend = replace(BACKEND, promises=promises)
    client.session.locked("k1", lambda session, held: None)
    assert [event.blind for event in client.events()] == [False] * 7 + [True]


def test_a_refused_renewal_is_written_by_the_keeper(client: Client) -> None:
    def section(session: Session, held: Held) -> None:
        claim = client.lock.claims[0]
        renewal = claim.renewing()
        renewal.failed(Refused(Refusal.GONE, "lease not found"))
        claim.lost("the lease is gone")
        session.think()

    client.session.locked("k1", section)
    assert client.names()[2:5] == ["renew", "renew!", "lost"]
    renewal = client.events()[3]
    assert (renewal.type, renewal.error, renewal.of) == ("fail", "lease not found", 0)
    assert renewal.refused is Refusal.GONE


def test_validity_moves_with_renewals_that_come_in_time(client: Client) -> None:
    client.session.check_validity = True
    client.lock.valid_ms = 200

    def in_time(session: Session, held: Held) -> None:
        client.lock.claims[-1].renewing().granted(60_000)
        time.sleep(0.21)
        session.read(held)

    def too_late(session: Session, held: Held) -> None:
        time.sleep(0.21)
        client.lock.claims[-1].renewing().granted(60_000)
        session.read(held)

    client.session.locked("k1", in_time)
    assert client.names()[-4:] == ["read", "read!", "release", "release!"]
    client.session.locked("k1", too_late)
    assert client.names()[-3:] == ["lost", "release", "release!"]


@pytest.mark.parametrize(
    ("fails", "ends"),
    [
        (Refused(Refusal.NOT_OWNER), ["lost", "release", "release!"]),
        (WireFailure(Phase.COMMAND, "r1", TimeoutError("slow")), []),  # its process is retired
    ],
)
def test_a_client_that_renews_the_lease_itself_does_so_while_it_works(
    client: Client, fails: WireFailure | Refused, ends: list[str]
) -> None:
    session = client.session
    session.backend = replace(BACKEND, promises=replace(BACKEND.promises, extends=True))
    session.settings = replace(session.settings, ttl_ms=60)
    session.think_ms = (60_000, 60_000)  # it is lost long before
    client.lock.renewals = [fails, None, None]

    def section(session: Session, held: Held) -> None:
        session.think()
        raise AssertionError("the work went on")

    with suppress(SectionOver):
        session.locked("k1", section)
    renewals = ["renew", "renew!"] * 2 + ["renew", "renew!" if ends else "renew"]
    assert client.names() == ["acquire", "acquire!", *renewals, *ends]
    sent = [
        event.time for event in client.events() if event.f == "renew" and event.type == "invoke"
    ]
    assert all(late - early > 15e6 for early, late in pairwise(sent))


def test_validity_runs_from_the_invocation_but_not_in_a_queue(client: Client) -> None:
    client.session.check_validity = True
    client.lock.valid_ms = 150
    client.lock.before_the_grant = lambda claim: time.sleep(0.2)
    client.session.locked("k1", lambda session, held: session.read(held))
    assert "read" not in client.names()

    def waits(claim: Claim) -> None:
        claim.queued()
        time.sleep(0.2)

    client.lock.before_the_grant, client.lock.valid_ms = waits, 10_000
    client.session.locked("k1", lambda session, held: session.read(held))
    assert "read!" in client.names()
    client.lock.valid_ms = 150
    before = client.names().count("read!")
    client.session.locked("k1", lambda session, held: session.read(held))
    assert client.names().count("read!") == before + 1


def test_a_client_that_is_aimed_at_works_until_it_no_longer_is(client: Client) -> None:
    aim = client.session.aims / "work-1"
    aim.touch()
    turn = in_the_background(lambda: client.session.locked("k1", lambda s, held: s.think()))
    wait_for(lambda: "acquire!" in client.names(), "it is let in")
    turn.join(0.3)
    assert turn.is_alive()
    aim.unlink()
    turn.join(30)
    assert not turn.is_alive()
    assert client.names()[-1] == "release!"


@pytest.fixture
def mark(client: Client, request: pytest.FixtureRequest) -> Path:
    path = client.session.aims / f"{request.param}-1"
    path.touch()
    return path


def stands(mark: Path) -> bool:
    return mark.stat().st_size > 0


AT = pytest.mark.parametrize(
    ("mark", "done"),
    [("write", ["read!", "write"]), ("release", ["write", "write!"])],
    indirect=["mark"],
)


@AT
def test_a_client_stands_at_the_very_point_and_says_so(
    client: Client, mark: Path, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client.session._aims, "_longest_s", 60.0)
    turn = in_the_background(lambda: client.session.locked("k1", Session.update))
    wait_for(lambda: stands(mark), "it stands there")
    assert client.names()[-2:] == done
    assert isinstance(client.session.storage, Register)
    assert len(client.session.storage.asked) == done.count("write!") + 1  # the write is not sent
    mark.unlink()
    turn.join(30)
    assert client.names()[-2:] == ["release", "release!"]


@AT
def test_no_client_stands_there_for_long(client: Client, mark: Path, done: list[str]) -> None:
    began = time.monotonic()
    client.session.locked("k1", Session.update)
    assert 0.25 <= time.monotonic() - began < 30  # a quarter of its lease
    assert not stands(mark)
    assert client.names()[-2:] == ["release", "release!"]


def test_work_for_most_of_the_lease_ends_before_that_does(client: Client) -> None:
    client.lock.valid_ms = 500
    (client.session.aims / "lease-1").touch()
    began = time.monotonic()
    client.session.locked("k1", lambda session, held: session.think())
    assert time.monotonic() - began > 0.3
    assert client.lock.claims[0].left_s() > 0


def test_a_loss_and_its_own_clock_end_the_aim(client: Client) -> None:
    (client.session.aims / "work-1").touch()
    turn = in_the_background(lambda: client.session.locked("k1", lambda s, held: s.think()))
    wait_for(lambda: client.lock.claims, "it asks")
    client.lock.claims[0].lost("gone")
    turn.join(30)
    assert not turn.is_alive()
    client.session.check_validity, client.lock.valid_ms = True, 50
    client.session.locked("k1", lambda session, held: session.think())


def test_a_retired_process_leaves_the_lock_to_its_lease(client: Client) -> None:
    client.session.storage = Register(fails=True)
    client.session.locked("k1", lambda session, held: session.read(held))
    assert [grant.key for grant in client.lock.left] == ["k1"]
    assert client.names() == ["acquire", "acquire!", "read", "read"]
    assert client.session.recorder.process == 5


def test_another_lock_that_was_lost_ends_the_section_too(client: Client) -> None:
    def inner(session: Session, held: Held) -> None:
        client.lock.claims[0].lost("the outer one")
        with pytest.raises(SectionOver):
            session.think()

    client.session.locked("k1", lambda session, held: session.locked("k2", inner))
    assert [(e.f, e.key) for e in client.events() if e.f == "lost"] == [("lost", "k1")]


def again(client: Client, inside: Callable[[Session, Held], object]) -> Callable[..., None]:
    def section(session: Session, held: Held) -> None:
        with session.entered_again(held) as inner:
            inside(session, inner)
        session.read(held)

    return section


def test_a_lock_is_entered_again_and_left_as_often(client: Client) -> None:
    client.session.locked("k1", again(client, lambda session, inner: session.read(inner)))
    assert client.names() == [
        *("acquire", "acquire!") * 2,
        *("read", "read!", "release", "release!") * 2,
    ]


def test_who_is_not_let_in_again_has_lost_the_lock(client: Client) -> None:
    def refuse(_claim: Claim) -> None:
        raise Refused(Refusal.HELD)

    def section(session: Session, held: Held) -> None:
        client.lock.before_the_grant = refuse
        again(client, lambda session, inner: pytest.fail("it goes in"))(session, held)
        pytest.fail("it goes on")

    client.session.locked("k1", section)
    assert client.names()[2:] == ["acquire", "acquire!", "lost", "release", "release!"]


def test_an_inner_level_that_cannot_be_left_ends_the_outer_one(client: Client) -> None:
    client.lock.refuses_releases = True
    client.session.locked("k1", again(client, lambda session, inner: None))
    assert client.names()[4:] == ["release", "release!", "lost", "release", "release!"]


def test_a_loss_on_any_level_is_recorded_once_and_ends_all_of_them(client: Client) -> None:
    def lose(session: Session, inner: Held) -> None:
        for claim in client.lock.claims:
            claim.lost("the lease is gone")
        session.think()
        pytest.fail("it goes on")

    client.session.locked("k1", again(client, lose))
    assert client.names()[4:] == ["lost", *("release", "release!") * 2]


def test_a_process_that_was_retired_within_leaves_all_levels_to_the_lease(client: Client) -> None:
    client.session.storage = Register(fails=True)
    client.session.locked("k1", again(client, lambda session, inner: session.read(inner)))
    assert client.names()[4:] == ["read", "read"]
    assert len(client.lock.left) == 2
    assert not client.session._held


def test_a_workload_runs_until_its_client_is_to_leave(client: Client) -> None:
    running = in_the_background(lambda: MUTEX.run(client.session))
    wait_for(lambda: client.names().count("release!") > 3, "a few turns")
    client.session.stopping.set()
    running.join(30)
    assert not running.is_alive()
    client.session.close()
    assert client.lock.closed
