"""Cuts nodes off from others: packets are lost silently, in both directions or in one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockcheck.errors import FaultError
from lockcheck.history import Effect
from lockcheck.nemesis.aims import (
    BRIDGE,
    CLIENT,
    HALVES,
    HOLDER,
    LEADER,
    MAJORITIES_RING,
    MAJORITY,
    MINORITY,
    NODE,
    SERVER,
)
from lockcheck.nemesis.base import FaultKind, Step
from lockcheck.nemesis.network.arrivals import TRY_S, Arrivals
from lockcheck.nemesis.network.links import Link
from lockcheck.nemesis.network.sides import FROM, ONE_WAY, links_to_cut, links_to_leave, why_not
from lockcheck.nemesis.scene import Scene
from lockcheck.words import amount

SILENT_TRIES = 15
REACHED_S = 1.0  # over a link that is not cut, packets arrive within microseconds
HEALED_S = 5.0
AIMS = (
    *(HOLDER, CLIENT, SERVER, LEADER, NODE),
    *(MINORITY, MAJORITY, HALVES, MAJORITIES_RING, BRIDGE),
)


class Partition:
    def __init__(
        self,
        nodes: tuple[str, ...],
        links: Iterable[Link],
        scene: Scene,
        leave: Iterable[Link] = (),  # links that must go on working
    ) -> None:
        self._nodes = nodes
        self._wanted = tuple(links)
        self._leave = tuple(leave)
        self._scene = scene
        self._arrivals: Arrivals | None = None
        self._mute_before: set[Link] = set()

    async def inject(self) -> int:
        if not self._wanted:
            raise FaultError(f"there is no node to cut {', '.join(self._nodes)} off from")
        self._arrivals = arrivals = Arrivals(self._scene.nodes.values())
        self._mute_before = await arrivals.all_arrive(self._uncut(arrivals), REACHED_S)
        _need_none(self._mute_before, "before anything was cut")
        before_ns = self._scene.now_ns()
        await self._cut_links()
        return before_ns

    async def _cut_links(self) -> None:
        self._scene.links.cut(self._wanted, self)

    async def prove(self) -> str:
        """Raises FaultError unless the links that are cut are silent and others go on."""
        arrivals = self._arrivals
        silent = self._uncut(arrivals) if arrivals else []
        if arrivals is None or not silent:
            raise FaultError("other faults had already cut or slowed all of its links")
        controls = self._controls(arrivals)
        arrived = await arrivals.watch([*silent, *controls], SILENT_TRIES)
        if leaks := [link for link in silent if arrived[link]]:
            raise FaultError(f"packets still arrive: {_words(leaks)}")
        # Another fault may have cut one of those meanwhile, or slowed it down.
        asked = list(self._goes_on(controls, arrivals))
        _need_none({link for link in asked if not _went_on(arrived[link])}, "beside what was cut")
        silence_ms = SILENT_TRIES * TRY_S * 1000
        seen = f", and {amount(len(asked), 'link')} beside them went on" if asked else ""
        return f"{amount(len(silent), 'link')} silent for {silence_ms:.0f} ms{seen}"

    async def heal(self) -> None:
        self._scene.links.mend(self)
        if self._arrivals is None:
            return
        mended = set(self._uncut(self._arrivals)) - self._mute_before
        _need_none(await self._arrivals.all_arrive(mended, HEALED_S), "after healing")
        self._arrivals.close()
        self._arrivals = None

    def _uncut(self, arrivals: Arrivals) -> list[Link]:
        """The links to cut that no other fault cuts or slows: only they prove the cut."""
        links = self._scene.links
        return [
            link
            for link in self._wanted
            if self._is_clear(link, arrivals) and not links.is_cut(link, but_by=self)
        ]

    def _controls(self, arrivals: Arrivals) -> list[Link]:
        """The links that must go on; and one uncut link in and one out of each node concerned."""
        ends = ((link.sender, link.receiver) for link in self._wanted)
        concerned = dict.fromkeys(name for pair in ends for name in pair)
        found = {*self._goes_on(self._leave, arrivals)}
        for name in concerned:
            for link_of in (Link, lambda a, b: Link(b, a)):
                of_it = (link_of(name, other) for other in self._scene.nodes if other != name)
                found.update(list(self._goes_on(of_it, arrivals))[:1])
        return sorted(found)

    def _goes_on(self, links: Iterable[Link], arrivals: Arrivals) -> Iterator[Link]:
        is_cut = self._scene.links.is_cut
        return (link for link in links if self._is_clear(link, arrivals) and not is_cut(link))

    def _is_clear(self, link: Link, arrivals: Arrivals) -> bool:
        return arrivals.covers(link) and link.sender not in self._scene.links.slow


def _went_on(tries: list[int]) -> bool:
    """Whether packets arrived at the beginning, at the end, and most of the time between."""
    return len(tries) > SILENT_TRIES // 2 and tries[-1] > SILENT_TRIES // 2 > tries[0]


def _need_none(mute: set[Link], when: str) -> None:
    if mute:
        raise FaultError(f"nothing arrived {when}: {_words(sorted(mute))}")


def _words(links: Iterable[Link]) -> str:
    return ", ".join(f"{link.sender} to {link.receiver}" for link in links)


def _strike(step: Step, nodes: tuple[str, ...], scene: Scene) -> Partition:
    links = links_to_cut(step, nodes, scene)
    return Partition(nodes, links, scene, leave=links_to_leave(step, nodes, scene))


KIND = FaultKind(
    name="partition",
    summary="packets are lost silently; by default between the holder and the lock's servers",
    effect=Effect.CUTS,
    aims=AIMS,
    strike=_strike,
    links=links_to_cut,
    parameters=(FROM, ONE_WAY),
    why_not=why_not,
    variants=("", "from=storage", "one-way=in", "one-way=out"),
    needs="networks of the run's own, which both runtimes have",
)
