"""The simulated servers, question by question: what the locks that are right rely on."""

from __future__ import annotations

from lockcheck.history.event import NS_PER_MS
from tests.simulation.locks import LOCKS
from tests.simulation.locks.queue import FORGOTTEN_NS, LEAVE, NO_PLACE, POLL, STAND, QueueServer
from tests.simulation.locks.single import NOT_OWNER, LeaseServer
from tests.simulation.world import Ask, Reply, World

TTL_MS = 100
TTL_NS = TTL_MS * NS_PER_MS


def ask(server: LeaseServer, f: str, secret: str, at_ns: int = 0, key: str = "k") -> Reply:
    return server.handle(Ask(f, key, secret, TTL_MS), at_ns)


def granted(token: int) -> Reply:
    return Reply(ok=True, token=token)


def refused(why: str) -> Reply:
    return Reply(ok=False, why=why)


def test_a_lease_lasts_as_long_as_it_was_asked_for() -> None:
    server = LeaseServer(World(0))
    assert ask(server, "acquire", "a") == granted(1)
    assert ask(server, "acquire", "b", TTL_NS) == refused("held")
    assert ask(server, "acquire", "b", TTL_NS + 1) == granted(2)


def test_each_key_is_a_lock_of_its_own() -> None:
    server = LeaseServer(World(0))
    assert ask(server, "acquire", "a") == granted(1)
    assert ask(server, "acquire", "b", key="other") == granted(1)


def test_only_its_owner_releases_or_renews_it() -> None:
    server = LeaseServer(World(0))
    ask(server, "acquire", "a")
    assert ask(server, "release", "b") == refused(NOT_OWNER)
    assert ask(server, "renew", "b") == refused(NOT_OWNER)
    assert ask(server, "renew", "a", TTL_NS) == Reply(ok=True)
    assert ask(server, "acquire", "b", 2 * TTL_NS) == refused("held")
    assert ask(server, "release", "a", 2 * TTL_NS) == Reply(ok=True)
    assert ask(server, "acquire", "b", 2 * TTL_NS) == granted(2)


def test_a_lease_that_ran_out_is_nobodys() -> None:
    server = LeaseServer(World(0))
    ask(server, "acquire", "a")
    assert ask(server, "renew", "a", TTL_NS + 1) == refused(NOT_OWNER)
    assert ask(server, "release", "a", TTL_NS + 1) == refused(NOT_OWNER)


def test_a_server_without_its_data_knows_neither_leases_nor_tokens() -> None:
    server = LeaseServer(World(0))
    ask(server, "acquire", "a")
    server.forget()
    assert ask(server, "acquire", "b") == granted(1)


def queue_of(*secrets: str) -> QueueServer:
    """The first holds it, the others wait."""
    server = QueueServer(World(0))
    for secret in secrets:
        ask(server, STAND, secret)
    return server


def test_who_came_first_is_served_first() -> None:
    server = queue_of("a", "b", "c")
    assert ask(server, POLL, "b") == refused("queued")
    ask(server, "release", "a")
    assert ask(server, POLL, "c") == refused("queued")
    assert ask(server, STAND, "d") == refused("queued")
    assert ask(server, POLL, "b") == granted(2)


def test_who_is_not_heard_of_loses_the_place_and_is_told() -> None:
    server = queue_of("a", "b", "c")
    ask(server, "release", "a")
    ask(server, POLL, "c", FORGOTTEN_NS)
    assert ask(server, POLL, "c", FORGOTTEN_NS + 1) == granted(2)
    assert ask(server, POLL, "b", FORGOTTEN_NS + 1) == refused(NO_PLACE)


def test_a_grant_that_was_not_heard_is_told_again_and_lasts_from_then() -> None:
    server = queue_of("a")
    assert ask(server, POLL, "a", TTL_NS) == granted(1)
    assert ask(server, STAND, "b", 2 * TTL_NS) == refused("queued")


def test_who_leaves_gives_back_what_it_had() -> None:
    server = queue_of("a", "b", "c")
    ask(server, LEAVE, "a")
    ask(server, LEAVE, "b")
    assert ask(server, POLL, "b") == refused(NO_PLACE)
    assert ask(server, POLL, "c") == granted(2)


def test_an_old_question_does_not_bring_anybody_back() -> None:
    server = queue_of("a", "b")
    ask(server, LEAVE, "b")
    ask(server, "release", "a")
    assert ask(server, POLL, "b") == refused(NO_PLACE)
    assert ask(server, STAND, "c") == granted(2)


def test_every_lock_says_what_it_is() -> None:
    assert all(kind.summary for kind in LOCKS.values())
    assert {name for name, kind in LOCKS.items() if not kind.caught_by} == {
        "single", "fenced", "majority", "queue", "readers", "nested", "permits",
    }  # fmt: skip
