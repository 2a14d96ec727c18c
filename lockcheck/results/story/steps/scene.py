"""An incident step by step: at most fifteen, in the order of their times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Code, Culprit, Verdict
from lockcheck.history import Effect, Ending, F, FaultSpan, Hold, Operation
from lockcheck.history.event import NS_PER_MS
from lockcheck.results.story.incidents import (
    Incident,
    evidence_of,
    foreign_release_of,
    identity,
)
from lockcheck.results.story.numbers import Numbers
from lockcheck.results.story.steps import texts
from lockcheck.results.story.steps.between import between
from lockcheck.results.story.steps.cast import Part, cast_of
from lockcheck.results.story.steps.cuts import cut_apart
from lockcheck.results.story.steps.evidence import WEIGHT, evidence_steps
from lockcheck.results.story.steps.stalls import own_stalls
from lockcheck.results.story.steps.step import Kind, Step, weightiest
from lockcheck.results.story.wording.codes import by_holds
from lockcheck.results.story.wording.titles import releaser_and_victim
from lockcheck.words import fault_kind, in_letters, lock_name, names, plain, span

MOST_STEPS = 15
# An operation or a proof that took longer than this becomes two steps: begun, and answered.
WORTH_TWO_STEPS_NS = 20 * NS_PER_MS
# Reads and writes of one hold that are steps at its start and at its end; others are counted.
DATA_STEPS_AT_EACH_END = 2
FAULTS_SHOWN = 3

# How much the story would miss a step, by its hold's role: extra, rival, lead.
GRANT, LEASE_OVER, ENDED = (62, 97, 97), (24, 50, 92), (34, 40, 78)
READ, WROTE, SENT, RENEWED = (20, 30, 60), (66, 76, 74), (10, 22, 58), (5, 15, 45)
MORE_OF_THESE = (12, 26, 56)
HARM, REFUSED, FAULT, FAULT_PROVEN, HEALED, STALLED = 100, 98, 90, 55, 85, 88


def steps_of(case: Case, incident: Incident, numbers: Numbers) -> tuple[tuple[Step, ...], int]:
    """At most fifteen, and how many more there were."""
    steps = sorted(_Scene(case, incident, numbers).steps(), key=lambda step: step.time_ns)
    return weightiest(steps, MOST_STEPS), max(0, len(steps) - MOST_STEPS)


class _Scene:
    """Collects the steps of one incident out of the evidence and the history around it."""

    def __init__(self, case: Case, incident: Incident, numbers: Numbers) -> None:
        self.case = case
        self.history = case.history
        self.incident = incident
        self.holds = incident.holds
        self.cast = cast_of(incident, numbers)
        self.guarded = case.terms.guard != "none"
        harmless = incident.damaged or incident.effect is not Verdict.VIOLATION
        self.overlap = Kind.OVERLAP if harmless else Kind.HARM  # red is for damage
        held = any(map(by_holds, incident.findings))
        self.at_once = max(1, case.terms.permits) if held else None
        self.at_fault = {identity(o) for o in evidence_of(incident)}

    def steps(self) -> Iterator[Step]:
        for hold in self.cast.shown:
            yield self._grant(hold)
        for fault in self._faults():
            yield from self._fault(fault)
        yield from self._stalls()
        for hold in self.cast.shown:
            yield from self._lease(hold)
        yield from self._between()
        yield from self._data()
        yield from evidence_steps(self.incident, self.cast)
        for hold in self.cast.shown:
            yield self._end(hold)

    def _operations_between(self, start_ns: int, end_ns: int) -> tuple[Operation, ...]:
        every = self.history.operations  # in the order of their starts
        begin = bisect_left(every, start_ns, key=lambda o: o.start_ns)
        return every[begin : bisect_right(every, end_ns, key=lambda o: o.start_ns)]

    def _between(self) -> list[Step]:
        others = self.cast.others
        if not others:
            return []
        until_ns = max(hold.end_ns for hold in others)
        meanwhile = self._operations_between(others[0].start_ns, until_ns)
        return between(self.cast, meanwhile, self.overlap)

    # --- grants and leases

    def _grant(self, hold: Hold) -> Step:
        key, who, part = lock_name(hold.key), plain(hold.node), self.cast.part_of(hold)
        ttl_ms = hold.acquire.invoke.ttl_ms or self.history.terms.ttl_ms
        terms = ["shared"] if hold.shared else []
        terms += [f"lease {span(ttl_ms * NS_PER_MS)}"] if ttl_ms and part is not Part.EXTRA else []
        terms += [f"token {hold.token}"] if hold.token is not None else []
        waited_ns = hold.start_ns - hold.acquire.start_ns
        terms += [f"asked for {span(waited_ns)} before"] if waited_ns > WORTH_TWO_STEPS_NS else []
        shown = f" ({', '.join(terms)})" if terms else ""
        tries = self._attempts_before(hold)
        after = f" at attempt {tries + 1:,}" if tries else ""
        others = [h for h in self.holds if _excludes(h, hold)]
        text, kind, weight = f"was granted {key}{shown}{after}", Kind.LOCK, GRANT[part]
        still = f"{names(h.node for h in others)} still held it"
        if others and part is not Part.EXTRA and self.at_once and len(others) >= self.at_once:
            text = f"{text}, while {still}: {in_letters(len(others) + 1)} holders"
            kind, weight = self.overlap, HARM
        elif others:
            text = f"{text}, {still}"
        return Step(hold.start_ns, who, text, kind, weight)

    def _attempts_before(self, hold: Hold) -> int:
        """How often it had found the lock taken since it last held it, in this incident."""
        before = [h.end_ns for h in self.holds if h.process == hold.process and h is not hold]
        since = [min(h.start_ns for h in self.holds), *(ns for ns in before if ns <= hold.start_ns)]
        return sum(
            1
            for o in self._operations_between(max(since), hold.start_ns)
            if o.process == hold.process and o.f == F.ACQUIRE and o.failed and o.key == hold.key
        )

    def _lease(self, hold: Hold) -> Iterator[Step]:
        key, who, part = lock_name(hold.key), plain(hold.node), self.cast.part_of(hold)
        for renewal in hold.renewals:
            answer = renewal.answer
            reason = plain((answer and answer.error) or "no answer")
            failed = f"could not renew its lease on {key}: {reason}"
            text = f"renewed its lease on {key}" if renewal.ok else failed
            weight = WEIGHT if identity(renewal) in self.at_fault else RENEWED[part]
            yield Step(renewal.last_ns, who, text, Kind.LOCK, weight)
        promises = self.case.attribution.promises
        until_ns = promises.in_all_ns(hold)
        ended = promises.server_end(hold, hold.end_ns)
        if ended is not None and ended.worked_from_ns < hold.end_ns:
            its = plain(self.history.terms.ends_with)
            text = f"its {its} had ended with the server: {key} may now go to another client"
            yield Step(ended.worked_from_ns, who, text, Kind.LOCK, LEASE_OVER[part])
            return
        if until_ns is None or self._taken_away_before(hold, until_ns):
            return
        if until_ns < hold.end_ns:
            text = f"its lease on {key} ran out: the lock may now go to somebody else"
            yield Step(until_ns, who, text, Kind.LOCK, LEASE_OVER[part])
        elif part is Part.LEAD and self.incident.main.blame.who is Culprit.SERVICE:
            text = f"its lease on {key} had been promised until here"
            yield Step(until_ns, who, text, Kind.LOCK, LEASE_OVER[part])

    def _taken_away_before(self, hold: Hold, until_ns: int) -> bool:
        """A lease that was taken away before it was over does not run out."""
        for finding in self.incident.findings:
            release = foreign_release_of(finding)
            victim = finding.holds[int(finding.code == Code.FOREIGN_RELEASE) :][:1]
            if release is not None and hold in victim and release.start_ns < until_ns:
                return True
        return False

    # --- faults and stalls

    def _faults(self) -> list[FaultSpan]:
        start_ns = min((h.start_ns for h in self.holds), default=0)
        end_ns = max((h.end_ns for h in self.holds), default=0)
        nodes = {h.node for h in self.cast.shown}
        blamed = {f.blame.fault.id: f.blame.fault for f in self.incident.findings if f.blame.fault}
        others = (f for f in self.history.faults if f.id not in blamed)
        near = (f for f in others if any(map(f.concerns, nodes)) and f.touches(start_ns, end_ns))
        return [*blamed.values(), *near][:FAULTS_SHOWN]

    def _fault(self, fault: FaultSpan) -> Iterator[Step]:
        who, name = texts.struck(self.history.terms, fault), fault_kind(fault)
        apart = f": {cut_apart(fault)}" if fault.links else ""
        proof = f" ({plain(fault.proof, 90)})" if fault.proof else ""
        start_ns, proven_ns, began = fault.start_ns, fault.proven_ns, f"{name} began{apart}"
        late = proven_ns is not None and proven_ns - start_ns > WORTH_TWO_STEPS_NS
        if proven_ns is None:
            began += f", not confirmed: {plain(fault.why_unproven, 120)}"
        elif not late:
            began += f", confirmed {span(proven_ns - start_ns)} later{proof}"
        elif fault.since_ns is not None:
            began += f", and took effect {span(fault.since_ns - start_ns)} later"
        yield Step(start_ns, who, began, Kind.FAULT, FAULT)
        if proven_ns is not None and late:
            yield Step(proven_ns, who, f"{name} confirmed{proof}", Kind.FAULT, FAULT_PROVEN)
        if fault.healed_ns is not None:
            over_ns = self._over_ns(fault, fault.healed_ns)
            believed = self._believing(fault, over_ns)
            yield Step(over_ns, who, texts.healed(fault, believed), Kind.FAULT, HEALED)

    def _over_ns(self, fault: FaultSpan, healed_ns: int) -> int:
        """A process that does something runs again, whenever its healing was seen."""
        if fault.effect is not Effect.STOPS or len(fault.nodes) != 1 or fault.proven_ns is None:
            return healed_ns
        since_ns = min((h.start_ns for h in self.holds), default=0)
        mine = [o for o in self._operations_between(since_ns, healed_ns) if o.node in fault.nodes]
        signs = [o.start_ns for o in mine] + [o.answer.time for o in mine if o.answer]
        return min((ns for ns in signs if fault.proven_ns < ns < healed_ns), default=healed_ns)

    def _believing(self, fault: FaultSpan, at_ns: int) -> Hold | None:
        mine = (h for h in self.holds if h.node in fault.nodes)
        return next((h for h in mine if h.start_ns < at_ns <= h.end_ns), None)

    def _stalls(self) -> Iterator[Step]:
        found = {(s.node, s.start_ns): s for f in self.incident.findings for s in f.blame.stalls}
        for stall in own_stalls(self.history, list(found.values()))[:FAULTS_SHOWN]:
            long = span(stall.end_ns - stall.start_ns)
            text = f"did not run for {long}: the machine stalled, no fault had stopped it"
            yield Step(stall.start_ns, plain(stall.node) or "machine", text, Kind.FAULT, STALLED)

    # --- reads and writes

    def _data(self) -> Iterator[Step]:
        evidence = {identity(o): o for o in self.cast.evidence}
        shown = self.at_fault - self.cast.stale - set(self.cast.losses)
        for hold in self.cast.shown:
            part = self.cast.part_of(hold)
            mine = [
                o
                for o in self._operations_between(hold.start_ns, hold.end_ns)
                if o.process == hold.process
                and o.key == hold.key
                and o.f in {F.READ, F.WRITE}
                and identity(o) not in shown
            ]
            last = len(mine) - DATA_STEPS_AT_EACH_END
            middle = mine[DATA_STEPS_AT_EACH_END:last]
            left_out = [o for o in middle if identity(o) not in evidence]
            skipped = {identity(o) for o in left_out}
            for operation in mine:
                shown.add(identity(operation))
                if identity(operation) not in skipped:
                    yield from self._read_or_write(operation, part)
            if left_out:
                more = f"… and {len(left_out):,} more reads and writes like these"
                when, who = left_out[0].start_ns, plain(hold.node)
                yield Step(when, who, more, Kind.DATA, MORE_OF_THESE[part])
        for known, operation in evidence.items():
            if known not in shown:
                yield from self._read_or_write(operation, Part.EXTRA)

    def _read_or_write(self, operation: Operation, part: Part) -> Iterator[Step]:
        who, when, known = plain(operation.node), operation.last_ns, identity(operation)
        kind, weight = Kind.DATA, (READ if operation.f == F.READ else WROTE)[part]
        if not operation.failed and (known in self.cast.stale or known in self.cast.losses):
            kind, weight = Kind.HARM, HARM
        elif operation.failed and operation.f == F.WRITE and self.guarded:
            kind, weight = Kind.REFUSED, REFUSED
        if when - operation.start_ns > WORTH_TWO_STEPS_NS:
            what = f"read {plain(operation.key)}"
            sent = f"write {texts.writing(operation)}" if operation.f == F.WRITE else what
            yield Step(operation.start_ns, who, f"asked to {sent}", Kind.DATA, SENT[part])
        yield Step(when, who, texts.data(self.cast, operation), kind, weight)

    # --- ends

    def _end(self, hold: Hold) -> Step:
        who, key, part = plain(hold.node), lock_name(hold.key), self.cast.part_of(hold)
        release = hold.release
        if release is not None and identity(release) in self.cast.foreign_releases:
            return self._foreign_release(release)
        terms, taken_away = self.history.terms, self._taken_away_before(hold, hold.end_ns)
        by_then = {
            Ending.RELEASED: texts.released(terms, key, release, taken_away=taken_away),
            Ending.LOST: f"learned that it had lost {key}",
            Ending.EXPIRED: f"stopped believing: by its own clock its lease on {key} was over",
            Ending.LAST_SEEN: f"was last heard of; no release of this hold of {key} is known",
        }
        return Step(hold.end_ns, who, by_then[hold.ending], Kind.LOCK, ENDED[part])

    def _foreign_release(self, release: Operation) -> Step:
        when = release.start_ns if release.end_ns is None else release.end_ns
        findings = self.incident.findings
        victim = next(
            (releaser_and_victim(f)[1] for f in findings if foreign_release_of(f) == release),
            "its holder",
        )
        text = f"released {lock_name(release.key)}, no longer its own: deleted {victim}'s lock"
        return Step(when, plain(release.node), text, self.overlap, HARM)


def _excludes(other: Hold, hold: Hold) -> bool:
    """It had the lock, or a permit, when this one was let in to it."""
    if other is hold or other.key != hold.key or (other.shared and hold.shared):
        return False
    return other.start_ns <= hold.start_ns < other.end_ns
