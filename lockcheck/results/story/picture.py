"""The small picture of the first screen: what is to be drawn, not how. Of an incident that is the
holder, who was let in beside it, the fault, and what was damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Culprit
from lockcheck.history import Ending, FaultSpan, Hold
from lockcheck.results.story.incidents import Incident, crossed, fault_behind, lease_end_ns
from lockcheck.results.story.refused import RefusedWrite, refused_writes
from lockcheck.results.story.wording.acts import lane_of, upon
from lockcheck.results.story.wording.guards import guard_name
from lockcheck.results.story.wording.titles import taken_first
from lockcheck.words import amount, moment, plain

MEANINGS = {
    "hold": "holds the lock",
    "after": "thinks it still has it",
    "fault": "injected fault",
    "gap": "not granted",
}
MOST_TICKS = 6
BEFORE, AFTER = 1.0, 0.4  # shown around the overlap, as shares of it
LONGEST_WAIT = 2  # from the lease's end to the next grant: a longer one is not shown in full
SHORTEST_NS = 2_000_000


@dataclass(frozen=True, slots=True)
class Bar:
    start: float  # of the picture's time, 0 to 1
    end: float
    kind: str  # one of MEANINGS


@dataclass(frozen=True, slots=True)
class Mark:
    at: float
    kind: str  # early, lease, harm, refused
    text: str
    ns: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    node: str = ""  # whose marks they are


@dataclass(frozen=True, slots=True)
class Picture:
    start_ns: int
    end_ns: int
    lanes: tuple[Lane, ...]
    taken_at: float | None = None  # when the second one got the lock that the first one had,
    deleted: bool = False  # or the first one deleted that of the second
    rightly: bool = False  # the lock had passed on by then

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        """The kinds of bars that it has, each with its meaning."""
        kinds = {bar.kind for lane in self.lanes for bar in lane.bars}
        return tuple((kind, meaning) for kind, meaning in MEANINGS.items() if kind in kinds)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """A few round moments of its time."""
        lasts_ns = self.end_ns - self.start_ns
        steps = (n * 10**power for power in count(6) for n in (1, 2, 5))
        step_ns = next(step for step in steps if lasts_ns < step * MOST_TICKS)
        first_ns = -(-self.start_ns // step_ns) * step_ns
        return tuple((self.share(ns), moment(ns)) for ns in range(first_ns, self.end_ns, step_ns))

    def share(self, ns: int) -> float:
        return min(1.0, max(0.0, (ns - self.start_ns) / (self.end_ns - self.start_ns)))


def client_lane(node: str) -> str:
    """A client without a name is a process already."""
    return plain(node) if node.startswith("process ") else f"client {plain(node)}"


def picture_of(case: Case, incident: Incident) -> Picture | None:
    """None: it is not about two holders."""
    main = incident.main
    if len(main.holds) < 2 or incident.crowd:
        return None
    holds = main.holds[1::-1] if crossed(main) else main.holds
    holder, rivals = holds[0], incident.rivals or holds[1:2]
    if crossed(main):
        rivals = holds[1:2]
    release = next(iter(incident.foreign_releases), None)
    deleted = release is not None and release.node == holder.node
    if deleted and (victim := taken_first(incident)):
        rivals = (victim,)
    let_in_ns = release.last_ns if release is not None and deleted else rivals[0].start_ns
    empty = _frame(incident, holder, let_in_ns, deleted=deleted)
    refused = (w for w in refused_writes(case) if let_in_ns <= w.time_ns <= empty.end_ns)
    draw = _Drawing(case, incident, empty, tuple(refused))
    lanes = draw.holder(holder), draw.rivals(rivals), *draw.next(), *draw.of_the_fault(holder)
    return replace(empty, lanes=lanes, taken_at=empty.share(let_in_ns))


def _frame(incident: Incident, holder: Hold, let_in_ns: int, *, deleted: bool) -> Picture:
    """The stretch of time that is shown: what was taken is about in the middle."""
    damage = [*incident.stale, *(loss.overwriting for loss in incident.losses)]
    ends = [hold.end_ns for hold in (holder, incident.next_holder if deleted else None) if hold]
    long_ns = max([o.last_ns for o in damage] + [*ends, let_in_ns + SHORTEST_NS]) - let_in_ns
    start_ns = max(let_in_ns - round(BEFORE * long_ns), holder.acquire.start_ns - long_ns // 5)
    over_ns = lease_end_ns(incident.main) or let_in_ns
    if 0 < let_in_ns - over_ns < LONGEST_WAIT * long_ns:
        start_ns = min(start_ns, over_ns - long_ns // 5)
    end_ns = let_in_ns + round((1 + AFTER) * long_ns)
    rightly = not deleted and incident.main.blame.who is Culprit.HOLDER
    return Picture(start_ns, end_ns, (), deleted=deleted, rightly=rightly)


@dataclass(frozen=True, slots=True)
class _Drawing:
    case: Case
    incident: Incident
    frame: Picture
    refused: tuple[RefusedWrite, ...]  # while it lasted

    @property
    def _accused(self) -> bool:
        """The lock's servers, and no release of a client's."""
        return self.incident.main.blame.who is Culprit.SERVICE and not self.frame.deleted

    def holder(self, hold: Hold) -> Lane:
        until_ns, fault = self._until_ns(hold), fault_behind(self.incident)
        marks = []
        if until_ns is not None and until_ns < hold.end_ns:
            marks.append(self._mark(until_ns, "lease", "its lease ends"))
        elif until_ns is not None and self._accused:
            further = until_ns > self.frame.end_ns
            to = f"its lease goes on to {moment(until_ns)} →" if further else "its lease ends"
            marks.append(self._mark(until_ns, "lease", to))
        if self._accused and hold.ending is Ending.RELEASED:
            marks.append(self._mark(hold.end_ns, "granted", "releases it"))
        bars = [*self._held(hold, until_ns)]
        if fault and hold.node in fault.nodes:
            bars.append(self._fault_bar(fault))
            marks.append(self._mark(fault.worked_from_ns, "fault", upon(fault)))
        if self.frame.deleted:
            release = self.incident.foreign_releases[0]
            marks.append(self._mark(release.last_ns, "harm", "deletes the lock"))
        marks += self._done_by(hold.node)
        return Lane(client_lane(hold.node), tuple(bars), tuple(marks), hold.node)

    def _until_ns(self, hold: Hold) -> int | None:
        """The end of its lease, also where what it did then is the cause."""
        late = [f for f in self.incident.late if f.holds[:1] == (hold,)]
        main = late[0] if self.frame.deleted and late else self.incident.main
        return lease_end_ns(main)

    def rivals(self, rivals: tuple[Hold, ...]) -> Lane:
        first, nodes = rivals[0], {hold.node for hold in rivals}
        name = f"{plain(first.node)} and others" if len(nodes) > 1 else client_lane(first.node)
        gone_ns = self.incident.foreign_releases[0].last_ns if self.frame.deleted else None
        bars = [bar for hold in rivals for bar in self._held(hold, gone_ns or self._end_ns(hold))]
        marks = [] if self.frame.deleted else [self._let_in(first)]
        return Lane(name, tuple(bars), (*marks, *self._done_by(first.node)), first.node)

    def _let_in(self, hold: Hold) -> Mark:
        if not self._accused:
            return self._mark(hold.start_ns, "granted", "granted")
        too = "granted as well" if crossed(self.incident.main) else "granted too early"
        return self._mark(hold.start_ns, "early", too)

    def next(self) -> Iterator[Lane]:
        """Who was let in because the lock was gone."""
        hold = self.incident.next_holder if self.frame.deleted else None
        if hold is not None:
            bars = tuple(self._held(hold, self._end_ns(hold)))
            marks = (self._mark(hold.start_ns, "granted", "granted"), *self._done_by(hold.node))
            yield Lane(client_lane(hold.node), bars, marks, hold.node)

    def of_the_fault(self, holder: Hold) -> Iterator[Lane]:
        fault = fault_behind(self.incident)
        if fault is not None and holder.node not in fault.nodes:
            began = self._mark(fault.worked_from_ns, "fault", upon(fault))
            yield Lane(lane_of(self.case.terms, fault), (self._fault_bar(fault),), (began,))

    def _end_ns(self, hold: Hold) -> int | None:
        """Of its lease."""
        return self.case.attribution.promises.in_all_ns(hold)

    def _held(self, hold: Hold, until_ns: int | None) -> Iterator[Bar]:
        """Up to the end of its lease, or until it was taken away; then it only believes."""
        over_ns = hold.end_ns if until_ns is None else min(until_ns, hold.end_ns)
        yield self._bar(hold.start_ns, max(hold.start_ns, over_ns), "hold")
        if over_ns < hold.end_ns:
            yield self._bar(over_ns, hold.end_ns, "after")

    def _fault_bar(self, fault: FaultSpan) -> Bar:
        healed_ns = self.frame.end_ns if fault.healed_ns is None else fault.healed_ns
        return self._bar(fault.worked_from_ns, healed_ns, "fault")

    def _done_by(self, node: str) -> Iterator[Mark]:
        losses = self.incident.losses
        for loss in losses if len(losses) == 1 == len(losses[0].lost) else ():
            if loss.lost[0].node == node:
                yield self._mark(loss.lost[0].last_ns, "granted", "writes")
        lost = [loss for loss in losses if loss.overwriting.node == node]
        for loss in lost[:1]:
            one = f"{plain(loss.lost[0].node)}'s write" if len(loss.lost) == 1 else ""
            text = f"overwrote {one or amount(len(loss.lost), 'write')}"
            yield self._mark(loss.overwriting.last_ns, "harm", text)
        stale = [write for write in self.incident.stale if write.node == node]
        for write in stale[:1] if not lost else ():
            text = "still wrote" if self._accused else "late write accepted"
            yield self._mark(write.last_ns, "harm", text)
        for refused in self.refused:
            if refused.node == node:
                by = guard_name(self.case.terms)
                yield self._mark(refused.time_ns, "refused", f"refused by {by}")
                break

    def _bar(self, start_ns: int, end_ns: int, kind: str) -> Bar:
        return Bar(self.frame.share(start_ns), self.frame.share(end_ns), kind)

    def _mark(self, ns: int, kind: str, text: str) -> Mark:
        if ns < self.frame.start_ns:
            text = f"← {text}, at {moment(ns)}"
        return Mark(self.frame.share(ns), kind, text, ns)
