"""The nemesis: what it says, that everything is healed whatever breaks, and whom it strikes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from lockcheck.errors import FaultError
from lockcheck.history import Effect, EventType, History
from lockcheck.nemesis.base import DidNotLastError, FaultKind, Plan, Step
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.scene import Scene
from lockcheck.nodes.node import Role
from lockcheck.nodes.waiting import wait_until
from tests.nemesis.client_events import grant, release
from tests.nemesis.made_up import Paper, PaperFleet, PaperKind, PaperNode, acted, play

INVOKE, OK, INFO = EventType.INVOKE, EventType.OK, EventType.INFO
CLIENTS = [PaperNode(name, Role.CLIENT) for name in ("c1", "c2", "c3")]


def test_what_a_fault_says(tmp_path: Path) -> None:
    paper = PaperKind()

    async def scene() -> None:
        acting = play(["slow:for=20ms,gap=1ms"], [paper.kind("slow", Effect.SLOWS)], tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: len(acting.events) >= 4, "it is over", 30)
        await acting.nemesis.finish(at_once=True)
        begun, proven, _, healed = acting.events[:4]
        assert acting.recorded()[:4] == [
            "invoke slow r1",
            "ok slow r1",
            "invoke heal r1",
            "ok heal r1",
        ]
        assert (begun.effect, begun.asked) == (Effect.SLOWS, "slow:server,for=20ms,gap=1ms")
        assert begun.fault == proven.fault == healed.fault == 1
        assert proven.value == "seen on paper"
        assert proven.since is not None
        assert begun.time <= proven.since <= proven.time
        assert healed.time - proven.time >= 20e6
        assert paper.calls[:3] == ["inject r1", "prove r1", "heal r1"]

    acted(scene)


def test_a_fault_that_is_felt_before_it_is_complete_says_since_when(tmp_path: Path) -> None:
    paper = PaperKind(before_ns=7)

    async def scene() -> None:
        acting = play(["skew:gap=1ms"], [paper.kind("skew", Effect.SKEWS)], tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: len(acting.events) >= 2, "it is proven", 30)
        await acting.nemesis.finish(at_once=True)
        assert acting.events[1].since == 7

    acted(scene)


BREAKS = {
    "inject": (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left"),
    "prove": (FaultError("nothing was seen of it"), "nothing was seen of it"),
}


@pytest.mark.parametrize("where", BREAKS)
def test_whatever_breaks_is_unproven_with_its_cause_and_healed(where: str, tmp_path: Path) -> None:
    broken, sound = PaperKind(), PaperKind()
    error, words = BREAKS[where]
    broken.raises[where] = [error] * 1000

    async def scene() -> None:
        acting = play(
            ["broken:server,gap=1ms", "sound:client,gap=1ms"],
            [broken.kind("broken"), sound.kind("sound")],
            tmp_path,
            nodes=[PaperNode("r1", Role.SERVER), *CLIENTS],
        )
        acting.nemesis.start()
        await wait_until(lambda: broken.calls.count("heal r1") > 2, "it goes on trying", 30)
        await acting.nemesis.finish(at_once=True)
        unproven = [event for event in acting.events if event.f == "broken" and event.type is INFO]
        assert len(unproven) > 2
        assert all(words in (event.error or "") for event in unproven)
        assert "ok broken r1" not in acting.recorded()
        healed = [event.fault for event in acting.events if (event.f, event.type) == ("heal", OK)]
        begun = [event.fault for event in acting.events if event.f in ("broken", "sound")]
        assert set(healed) == set(begun)
        assert any(text.startswith("ok sound") for text in acting.recorded())

    acted(scene)


def test_a_kind_that_cannot_even_begin(tmp_path: Path) -> None:
    kind = PaperKind().kind("broken")

    def strike(*_: object) -> None:
        raise KeyError("r1")

    object.__setattr__(kind, "strike", strike)

    async def scene() -> None:
        acting = play(["broken:gap=1ms"], [kind], tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: len(acting.events) >= 4, "it is over", 30)
        await acting.nemesis.finish(at_once=True)
        assert acting.events[1].error == "KeyError: 'r1'"
        assert acting.recorded()[3] == "ok heal r1"

    acted(scene)


def test_a_heal_that_fails_is_told_and_tried_again(tmp_path: Path) -> None:
    paper = PaperKind(raises={"heal": [OSError("busy"), OSError("still busy")]})

    async def scene() -> None:
        acting = play(["slow:gap=1ms"], [paper.kind("slow")], tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: "ok heal r1" in acting.recorded(), "it is healed", 30)
        await acting.nemesis.finish(at_once=True)
        assert acting.recorded()[2:8] == ["invoke heal r1", "info heal r1"] * 2 + [
            "invoke heal r1",
            "ok heal r1",
        ]
        assert [e.error for e in acting.events if e.type is INFO] == [
            "OSError: busy",
            "OSError: still busy",
        ]

    acted(scene)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_can_only_be_healed_when_another_fault_is_does_not_keep_it_waiting(
    at_once: bool, tmp_path: Path
) -> None:
    """A member of a cluster that was killed while others were cut off: they are healed beside it,
    although that began later."""
    reached = asyncio.Event()

    class Cut(Paper):
        async def heal(self) -> None:
            reached.set()

    class Restart(Paper):
        async def heal(self) -> None:
            await reached.wait()

    def kind(name: str, strike: type[Paper]) -> FaultKind:
        made_up = PaperKind().kind(name, lasts_ms=None)
        return replace(made_up, strike=lambda _step, nodes, _scene: strike(nodes, [], {}))

    async def scene() -> None:
        acting = play(
            ["cut:client,gap=1ms", "restart:server,gap=50ms"],
            [kind("cut", Cut), kind("restart", Restart)],
            tmp_path,
            nodes=[PaperNode("r1", Role.SERVER), *CLIENTS],
        )
        acting.nemesis.start()
        await wait_until(lambda: len(acting.recorded(OK)) == 2, "both have struck", 30)
        async with asyncio.timeout(10):
            await acting.nemesis.finish(at_once=at_once)
        assert len([text for text in acting.recorded(OK) if "heal" in text]) == 2

    acted(scene)


def test_a_heal_that_always_fails_keeps_nobody_from_being_healed(tmp_path: Path) -> None:
    broken, sound = PaperKind(raises={"heal": [OSError("gone")] * 1000}), PaperKind()

    async def scene() -> None:
        acting = play(
            ["broken:server,for=1h,gap=1ms", "sound:client,for=1h,gap=1ms"],
            [broken.kind("broken"), sound.kind("sound")],
            tmp_path,
            nodes=[PaperNode("r1", Role.SERVER), CLIENTS[0]],
            time_limit_ms=10**8,
        )
        acting.nemesis.start()
        await wait_until(lambda: len(acting.recorded(OK)) == 2, "both are proven", 30)
        await acting.nemesis.finish(at_once=True)
        assert broken.calls.count("heal r1") == 3
        assert "ok heal c1" in acting.recorded()
        assert "ok heal r1" not in acting.recorded()

    acted(scene)


def test_what_did_not_last_is_said_and_not_covered_up_by_another_try(tmp_path: Path) -> None:
    paper = PaperKind(raises={"heal": [DidNotLastError("another process had woken it")]})

    async def scene() -> None:
        acting = play(["slow:for=1h,gap=1ms"], [paper.kind("slow")], tmp_path, time_limit_ms=10**8)
        acting.nemesis.start()
        await wait_until(lambda: "ok slow r1" in acting.recorded(), "it is proven", 30)
        await acting.nemesis.finish(at_once=True)
        assert acting.recorded()[2:] == ["invoke heal r1", "info heal r1"]

    acted(scene)


def test_a_sequence_comes_in_its_order_again_and_again(tmp_path: Path) -> None:
    one, other = PaperKind(), PaperKind()

    async def scene() -> None:
        acting = play(
            ["one:gap=1ms then other:gap=1ms"], [one.kind("one"), other.kind("other")], tmp_path
        )
        acting.nemesis.start()
        await wait_until(lambda: len(acting.events) >= 24, "it comes again", 30)
        await acting.nemesis.finish(at_once=True)
        names = [event.f for event in acting.events if event.type is INVOKE and event.f != "heal"]
        assert names[:6] == ["one", "other"] * 3
        spans = History.of(acting.events).faults
        assert all(a.healed_ns and a.healed_ns <= b.start_ns for a, b in pairwise(spans))

    acted(scene)


def test_each_strike_draws_its_durations_by_the_seed(tmp_path: Path) -> None:
    def durations_of_three_strikes() -> list[tuple[int, int]]:
        struck: list[tuple[int, int]] = []

        def strike(step: Step, nodes: tuple[str, ...], _scene: Scene) -> Paper:
            struck.append((step.for_ms or 0, step.gap_ms or 0))
            return Paper(nodes, [], {})

        async def scene() -> None:
            kind = replace(PaperKind().kind("one"), strike=strike)
            acting = play(["one:for=1ms..90ms,gap=1ms..20ms"], [kind], tmp_path)
            acting.nemesis.start()
            await wait_until(lambda: len(struck) > 3, "it comes again and again", 30)
            await acting.nemesis.finish(at_once=True)
            asked = {event.asked for event in acting.events if event.asked}
            assert asked == {"one:server,for=1ms..90ms,gap=1ms..20ms"}

        acted(scene)
        return struck[:3]

    drawn = durations_of_three_strikes()
    assert drawn == durations_of_three_strikes()
    assert len({*drawn}) == 3
    assert all(1 <= for_ms <= 90 and 1 <= gap_ms <= 20 for for_ms, gap_ms in drawn)


def test_a_fault_that_struck_gives_way_to_one_that_has_not(tmp_path: Path) -> None:
    """Both want the one server: the first would take it again and again."""
    one, other = PaperKind(), PaperKind()

    async def scene() -> None:
        acting = play(
            ["one:gap=1ms", "other:gap=300ms"],
            [one.kind("one", lasts_ms=500), other.kind("other")],
            tmp_path,
        )
        acting.nemesis.start()
        await wait_until(lambda: len(acting.recorded(OK)) >= 6, "each strikes, and one again", 30)
        await acting.nemesis.finish(at_once=True)
        names = [event.f for event in acting.events if event.type is INVOKE and event.f != "heal"]
        assert names[:3] == ["one", "other", "one"]

    acted(scene)


def test_it_strikes_where_others_have_left_it_a_link_to_cut(tmp_path: Path) -> None:
    """Else nothing would show that it took."""

    async def scene() -> None:
        kind = replace(PaperKind().kind("cut"), links=lambda *_: (Link("r1", "c1"),))
        acting = play(["cut:gap=1ms"], [kind], tmp_path)
        slow = acting.nemesis._scene.links.slow
        slow.add("r1")
        acting.nemesis.start()
        await asyncio.sleep(0.1)
        assert acting.events == []
        slow.discard("r1")
        await wait_until(lambda: "ok cut r1" in acting.recorded(), "it is cut", 30)
        await acting.nemesis.finish(at_once=True)

    acted(scene)


def test_one_that_never_finds_its_moment_is_waited_for_no_longer_than_a_while(
    tmp_path: Path,
) -> None:
    one, never = PaperKind(), PaperKind()

    async def scene() -> None:
        kinds = [one.kind("one"), never.kind("never")]
        acting = play(["one:gap=1ms", "never:leader,gap=1ms"], kinds, tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: one.calls.count("heal r1") >= 2, "it strikes again", 30)
        await acting.nemesis.finish(at_once=True)
        assert never.calls == []

    acted(scene)


def test_several_are_active_at_once_and_healed_the_last_one_first(tmp_path: Path) -> None:
    paper = PaperKind()
    kinds = [paper.kind(name) for name in ("one", "two", "three")]

    async def scene() -> None:
        acting = play(
            [f"{kind.name}:client,for=1h,gap={n * 30 + 1}ms" for n, kind in enumerate(kinds)],
            kinds,
            tmp_path,
            nodes=CLIENTS,
            time_limit_ms=10**8,
        )
        acting.nemesis.start()
        await wait_until(lambda: len(acting.recorded(OK)) == 3, "all are active", 30)
        begun = [event.node for event in acting.events if event.type is INVOKE]
        assert sorted(filter(None, begun)) == ["c1", "c2", "c3"]  # none is struck twice
        await acting.nemesis.finish(at_once=True)
        healed = [e.node for e in acting.events if (e.f, e.type) == ("heal", OK)]
        assert healed == begun[::-1]

    acted(scene)


def test_they_run_their_course_unless_told_otherwise(tmp_path: Path) -> None:
    paper = PaperKind()

    async def scene() -> None:
        acting = play(["slow:for=300ms,gap=1ms"], [paper.kind("slow")], tmp_path)
        acting.nemesis.start()
        await wait_until(lambda: "ok slow r1" in acting.recorded(), "it is proven", 30)
        await acting.nemesis.finish(at_once=False)
        assert acting.recorded() == ["invoke slow r1", "ok slow r1", "invoke heal r1", "ok heal r1"]
        assert acting.events[2].time - acting.events[1].time >= 300e6
        await acting.nemesis.finish(at_once=True)  # the agent leaves: nothing is left to do
        assert len(acting.events) == 4

    acted(scene)


def test_what_lasts_to_the_end_comes_once_and_ends_with_the_run(tmp_path: Path) -> None:
    once, often = PaperKind(), PaperKind()

    async def scene() -> None:
        acting = play(
            ["once:client,gap=1ms then often:server,gap=1ms"],
            [once.kind("once", lasts_ms=None), often.kind("often")],
            tmp_path,
            nodes=[PaperNode("r1", Role.SERVER), *CLIENTS],
        )
        acting.nemesis.start()
        await wait_until(lambda: often.calls.count("heal r1") >= 3, "the other goes on", 30)
        assert [call.split()[0] for call in once.calls] == ["inject", "prove"]
        await acting.nemesis.finish(at_once=False)
        assert [call.split()[0] for call in once.calls] == ["inject", "prove", "heal"]

    acted(scene)


def test_no_fault_is_begun_that_cannot_end_in_time(tmp_path: Path) -> None:
    async def scene() -> None:
        kind = PaperKind().kind("slow", lasts_ms=1000)
        acting = play(["slow"], [kind], tmp_path, time_limit_ms=999, now_ns=lambda: 0)
        acting.nemesis.start()
        await asyncio.gather(*acting.nemesis._tasks)  # it ends by itself
        await acting.nemesis.finish(at_once=False)
        (event,) = acting.events
        assert (event.type, event.f, event.fault, event.asked) == (
            INFO,
            "slow",
            None,
            "slow:server",
        )
        assert "never took effect" in (event.error or "")
        assert History.of(acting.events).faults == ()

    acted(scene)


def test_a_kind_of_fault_that_breaks_is_told_with_its_cause(tmp_path: Path) -> None:
    def breaks(_step: Step, _plan: Plan) -> int:
        raise OSError("no clock here")

    async def scene() -> None:
        kind = replace(PaperKind().kind("odd"), lasts_ms=breaks)
        acting = play(["odd"], [kind], tmp_path)
        acting.nemesis.start()
        await acting.nemesis.finish(at_once=False)
        (event,) = acting.events
        assert (event.type, event.asked) == (INFO, "odd:server")
        assert event.error == "it never took effect: OSError: no clock here"

    acted(scene)


def test_a_pause_before_a_fault_is_shorter_where_it_would_not_fit(tmp_path: Path) -> None:
    async def scene() -> None:
        kind = PaperKind().kind("slow", lasts_ms=100)
        acting = play(["slow"], [kind], tmp_path, time_limit_ms=450)
        acting.nemesis.start()
        await asyncio.gather(*acting.nemesis._tasks)
        await acting.nemesis.finish(at_once=False)
        assert "ok slow r1" in acting.recorded()

    acted(scene)


@pytest.mark.parametrize("fleet", [PaperFleet(), PaperFleet(breaks=OSError("no answer"))])
def test_it_waits_for_a_leader_and_says_so_if_there_never_is_one(
    fleet: PaperFleet, tmp_path: Path
) -> None:
    async def scene() -> None:
        acting = play(["slow:leader,gap=1ms"], [PaperKind().kind("slow")], tmp_path, fleet=fleet)
        acting.nemesis.start()
        await asyncio.sleep(0.05)
        await acting.nemesis.finish(at_once=False)
        (event,) = acting.events
        assert "it never took effect" in (event.error or "")
        assert ("OSError: no answer" in (event.error or "")) == (fleet.breaks is not None)

    acted(scene)


@pytest.mark.timeout(60)
def test_who_is_always_there_keeps_nobody_waiting_while_there_is_nobody_to_strike(
    tmp_path: Path,
) -> None:
    """A hunter that asks for a target again and again, at once, would stop everything else."""

    async def scene() -> None:
        kinds = [PaperKind().kind("slow")]
        acting = play(["slow:leader,gap=1ms,when=expiry"], kinds, tmp_path, nodes=CLIENTS)
        acting.nemesis.start()
        for _ in CLIENTS:  # more than it may let pass; of a lease that is over at once
            await asyncio.sleep(0.01)
            grant(acting.nemesis, "c1")
        await asyncio.sleep(0.05)
        await acting.nemesis.finish(at_once=False)
        assert ["never took effect" in (event.error or "") for event in acting.events] == [True]

    acted(scene)


def test_the_leader_is_struck_once_there_is_one(tmp_path: Path) -> None:
    async def scene() -> None:
        fleet = PaperFleet(breaks=OSError("no answer"))
        acting = play(["slow:leader,gap=1ms"], [PaperKind().kind("slow")], tmp_path, fleet=fleet)
        acting.nemesis.start()
        await asyncio.sleep(0.05)
        assert acting.events == []
        fleet.breaks, fleet.leading = None, "r1"
        await wait_until(lambda: "ok slow r1" in acting.recorded(), "it is struck", 30)
        await acting.nemesis.finish(at_once=True)

    acted(scene)


def test_a_hunter_whose_prey_is_struck_already_takes_the_next(tmp_path: Path) -> None:
    paper = PaperKind()
    kinds = [paper.kind("one"), paper.kind("two")]

    async def scene() -> None:
        acting = play(
            ["one:holder,for=1h,gap=1ms", "two:holder,for=1h,gap=1ms"],
            kinds,
            tmp_path,
            nodes=CLIENTS,
            time_limit_ms=10**8,
        )
        acting.nemesis.start()

        def grant_for_a_moment(node: str) -> None:
            grant(acting.nemesis, node)
            release(acting.nemesis, node)

        async def until(number: int, *nodes: str) -> None:
            async with asyncio.timeout(30):
                while len(acting.recorded(OK)) < number:
                    for node in nodes:
                        grant_for_a_moment(node)
                    await asyncio.sleep(0.005)

        await until(1, "c1")
        for _ in range(20):  # c1 is struck: for the other hunter it is no prey
            grant_for_a_moment("c1")
            await asyncio.sleep(0.002)
        assert acting.recorded(OK) in (["ok one c1"], ["ok two c1"])
        await until(2, "c1", "c2")
        assert acting.recorded(OK)[1].endswith(" c2")
        await acting.nemesis.finish(at_once=True)
        assert len([text for text in acting.recorded(OK) if "heal" in text]) == 2

    acted(scene)


def test_it_gives_up_a_hunt_when_the_run_ends(tmp_path: Path) -> None:
    (tmp_path / "c1" / "aims").mkdir(parents=True)

    async def scene() -> None:
        acting = play(["slow:holder,gap=1ms"], [PaperKind().kind("slow")], tmp_path, nodes=CLIENTS)
        acting.nemesis.start()
        for _ in CLIENTS:  # more than it may let pass
            await asyncio.sleep(0.01)
            grant(acting.nemesis, "c2")
            release(acting.nemesis, "c2")
        await acting.nemesis.finish(at_once=False)
        assert list((tmp_path / "c1" / "aims").iterdir()) == []
        assert all(event.type is not INVOKE or event.node == "c2" for event in acting.events)

    acted(scene)


def test_nobody_is_struck_by_two_at_once(tmp_path: Path) -> None:
    paper = PaperKind()

    async def scene() -> None:
        acting = play(
            ["one:gap=30ms", "two:gap=30ms"],
            [paper.kind("one", lasts_ms=30), paper.kind("two", lasts_ms=30)],
            tmp_path,
        )
        acting.nemesis.start()
        await wait_until(
            lambda: (
                {"ok one r1", "ok two r1"} <= set(acting.recorded()) and len(acting.events) > 24
            ),
            "both had their turns",
            30,
        )
        await acting.nemesis.finish(at_once=True)
        spans = History.of(acting.events).faults
        assert all(a.healed_ns and a.healed_ns <= b.start_ns for a, b in pairwise(spans))

    acted(scene)


@pytest.mark.parametrize(("effect", "goes_on"), [(Effect.STOPS, True), (Effect.ENDS, False)])
def test_who_was_ended_need_not_go_on_when_it_is_started_again(
    effect: Effect, goes_on: bool, tmp_path: Path
) -> None:
    aims = tmp_path / "c1" / "aims"
    aims.mkdir(parents=True)

    async def scene() -> None:
        acting = play(
            ["strange:holder,for=1h,gap=1ms"],
            [PaperKind().kind("strange", effect)],
            tmp_path,
            nodes=[CLIENTS[0]],
            time_limit_ms=10**12,
            now_ns=time.monotonic_ns,  # as the client does
        )
        acting.nemesis.start()
        async with asyncio.timeout(30):
            while not acting.recorded(OK):
                grant(acting.nemesis, "c1")
                await asyncio.sleep(0.005)
        assert bool(list(aims.iterdir())) == goes_on
        assert bool(acting.nemesis._scene.holders.now()) == goes_on
        await acting.nemesis.finish(at_once=True)
        assert list(aims.iterdir()) == []

    acted(scene)


@pytest.mark.parametrize(("effect", "goes_on"), [(Effect.SKEWS, True), (Effect.CUTS, False)])
def test_who_stands_there_goes_on_where_others_get_the_lock_a_moment_later(
    effect: Effect, goes_on: bool, tmp_path: Path
) -> None:
    aims = tmp_path / "c1" / "aims"
    aims.mkdir(parents=True)

    async def scene() -> None:
        acting = play(
            ["strange:server,when=write,for=1h,gap=1ms"],
            [PaperKind().kind("strange", effect)],
            tmp_path,
            nodes=[CLIENTS[0], PaperNode("r1", Role.SERVER)],
            time_limit_ms=10**8,
        )
        acting.nemesis.start()
        async with asyncio.timeout(30):
            while not acting.recorded(OK):
                for mark in aims.iterdir():
                    mark.write_text("!")  # it stands there
                await asyncio.sleep(0.005)
        assert bool(list(aims.iterdir())) == goes_on
        await acting.nemesis.finish(at_once=True)
        assert list(aims.iterdir()) == []

    acted(scene)
