"""A judgement in plain words, for the terminal and for the report alike.

Pure functions: history and findings in, plain text out, without markup. Whatever comes from a
history passes through `plain`, so a key full of control characters spoils no terminal and no page.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from lockcheck.checker.finding import Blame, Code, Culprit, Finding, Judgement, Verdict
from lockcheck.history import Ending, F, FaultSpan, History, Hold, Operation, Testimony
from lockcheck.history.event import NS_PER_MS

# An operation or a proof that took longer than this is told as two steps: begun, and answered.
WORTH_TWO_STEPS_NS = 20 * NS_PER_MS
# Reads and writes of one hold that are told at its start and at its end; those between are counted.
DATA_STEPS_AT_EACH_END = 4
FAULTS_TOLD = 8

Identity = tuple[int | str, int]  # of an operation or a hold: its process and its start


class Kind(StrEnum):
    """What a step is about; the report colours by it."""

    LOCK = "lock"
    DATA = "data"
    FAULT = "fault"
    REFUSED = "refused"  # the storage kept it out
    HARM = "harm"


@dataclass(frozen=True, slots=True)
class Step:
    time_ns: int
    who: str
    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Story:
    title: str
    steps: tuple[Step, ...]
    blame: str
    prevention: str
    harm: tuple[str, ...]  # each finding of the incident in a sentence, notes included


@dataclass(frozen=True, slots=True)
class Incident:
    """Findings with one cause: an overlap, and what was written while it lasted."""

    findings: tuple[Finding, ...]

    @property
    def main(self) -> Finding:
        overlaps = (f for f in self.findings if f.code is Code.OVERLAP)
        return next(overlaps, self.findings[0])

    @property
    def effect(self) -> Verdict:
        return Verdict.merge(f.effect for f in self.findings)

    @property
    def holds(self) -> tuple[Hold, ...]:
        found = {hold_identity(h): h for f in self.findings for h in f.holds}
        return tuple(sorted(found.values(), key=lambda hold: hold.start_ns))


@dataclass(frozen=True, slots=True)
class RefusedWrite:
    """A write that the storage's guard did not let in."""

    time_ns: int | None  # when it was sent; None: only the storage knows of it
    node: str
    key: str
    value: str
    base: str
    token: int | None
    seq: int | None
    reason: str
    late_ns: int | None  # how long after the promise of the writer's lease it was sent
    newer_holder: str  # whoever had been granted the lock since: the write was stale


# --- small words ---------------------------------------------------------------------------


def plain(value: object, limit: int = 60) -> str:
    """Text from a history, made harmless for a terminal and cut to a length worth reading."""
    text = value if isinstance(value, str) else repr(value)
    clipped = text if len(text) <= limit else f"{text[: limit - 1]}…"
    if clipped.isprintable():
        return clipped
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in clipped)


def span(ns: int) -> str:
    """A length of time with as many digits as somebody wants to read: 1.2 ms, 312 ms, 2.013 s."""
    ms = abs(ns) / NS_PER_MS
    if ms < 0.095:
        return f"{ms:.2f} ms" if ms >= 0.005 else "0 ms"
    if ms < 9.95:
        return f"{ms:.1f} ms"
    if ms < 999.5:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.3f} s" if ms < 10_000 else f"{ms / 1000:.1f} s"


def moment(ns: int) -> str:
    """A point in time, counted from the start of the run."""
    return f"{ns / NS_PER_MS / 1000:.3f} s"


def amount(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")


def sentence(text: str) -> str:
    """A doubt or a note as a whole sentence, whoever wrote it."""
    shown = plain(text, 400)
    if not shown:
        return ""
    return f"{shown[:1].upper()}{shown[1:]}{'' if shown.endswith(('.', '!', '?')) else '.'}"


def listed(parts: Iterable[str]) -> str:
    *most, last = list(parts) or [""]
    return f"{', '.join(most)} and {last}" if most else last


def fault_name(fault: FaultSpan) -> str:
    where = f" of {plain(fault.node)}" if fault.node else ""
    return f"{plain(fault.name)}{where}"


# --- who is who ----------------------------------------------------------------------------


def hold_identity(hold: Hold) -> Identity:
    return hold.process, hold.start_ns


def operation_identity(operation: Operation) -> Identity:
    return operation.process, operation.start_ns


def stale_writes(findings: Iterable[Finding]) -> frozenset[Identity]:
    """The writes that the storage accepted from somebody who was no longer the holder."""
    return frozenset(
        operation_identity(write)
        for finding in findings
        if finding.code is Code.STALE_WRITE
        for write in _guilty_writes(finding)
    )


def _guilty_writes(finding: Finding) -> list[Operation]:
    """Of the writes in evidence those at fault: the earlier holder's, else the last."""
    writes = [o for o in finding.operations if o.f == F.WRITE]
    if finding.code is Code.STALE_WRITE and finding.holds:
        own = [o for o in writes if o.process == finding.holds[0].process]
        return own or writes[-1:]
    return writes[-1:]


def _taken_by(finding: Finding) -> Operation | None:
    """The release that took the lock away from somebody else."""
    if finding.blame.release is not None:
        return finding.blame.release
    releases = (o for o in finding.operations if o.f == F.RELEASE)
    return next(releases, None) if finding.code is Code.FOREIGN_RELEASE else None


def incidents(findings: Iterable[Finding]) -> tuple[Incident, ...]:
    """Findings with one cause read as one: the same wrong release, or the same earlier holder."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        cause: object = finding.key, finding.time_ns
        taken_by = _taken_by(finding)
        if taken_by is not None:
            cause = finding.key, "release", operation_identity(taken_by)
        elif finding.holds:
            cause = finding.key, "hold", hold_identity(finding.holds[0])
        groups.setdefault(cause, []).append(finding)
    return tuple(Incident(tuple(group)) for group in groups.values())


# --- the verdict ---------------------------------------------------------------------------


def headline(history: History, judgement: Judgement) -> str:
    if judgement.verdict is Verdict.VIOLATION:
        counted = [f for f in judgement.findings if f.effect is Verdict.VIOLATION]
        return f"Violation: {_what_happened(counted)}. {_whose_fault(counted)}".strip()
    if judgement.verdict is Verdict.UNKNOWN:
        return f"Unknown: {_why_unknown(judgement)}"
    return f"OK: {_what_held(history, judgement)}"


def _what_happened(findings: Iterable[Finding]) -> str:
    by_code: dict[Code, list[Finding]] = {}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    parts = []
    if overlaps := by_code.get(Code.OVERLAP):
        longest = span(max(f.length_ns for f in overlaps))
        often = f", {times(len(overlaps))} (for up to" if len(overlaps) > 1 else " (for"
        parts.append(f"two clients held the same lock at the same time{often} {longest})")
    if stale := by_code.get(Code.STALE_WRITE):
        parts.append(f"the storage accepted {amount(len(stale), 'stale write')}")
    if lost := by_code.get(Code.LOST_UPDATE):
        parts.append(f"{amount(len(lost), 'update')} {'was' if len(lost) == 1 else 'were'} lost")
    if foreign := by_code.get(Code.FOREIGN_RELEASE):
        parts.append(f"{amount(len(foreign), 'release')} took away somebody else's lock")
    return listed(parts) or "the lock did not keep its promise"


def _whose_fault(findings: Iterable[Finding]) -> str:
    mains = [incident.main for incident in incidents(findings)]
    worst = {
        who: max((f.blame.by_ns for f in mains if f.blame.who is who), default=0) for who in Culprit
    }
    words = {
        Culprit.HOLDER: f"the holder outlived its lease (by up to {span(worst[Culprit.HOLDER])})",
        Culprit.SERVICE: "the lock service broke the promise of its lease "
        f"(by up to {span(worst[Culprit.SERVICE])})",
        Culprit.CLIENT: "a client took away or overwrote what was not its own",
        Culprit.MACHINE: "the machine itself had stalled",
    }
    counted = Counter(f.blame.who for f in mains).most_common()
    if len(counted) == 1:
        always = "Each time " if len(mains) > 1 else ""
        return sentence(f"{always}{words[counted[0][0]]}")
    return sentence(listed(f"{times(n)} {words[who]}" for who, n in counted))


def _why_unknown(judgement: Judgement) -> str:
    start = "this run does not tell whether the lock is safe."
    if judgement.doubts:
        first, *others = judgement.doubts
        more = f" ({amount(len(others), 'more doubt')})" if others else ""
        return f"{start} {sentence(first)}{more}"
    traced = sum(1 for f in judgement.findings if f.effect is Verdict.UNKNOWN)
    return f"{start} {amount(traced, 'finding')} came from stalls of the machine itself."


def _what_held(history: History, judgement: Judgement) -> str:
    counts = judgement.counts
    scope = (
        f"{amount(counts.acquisitions, 'acquisition')} by {amount(counts.holders, 'client')} "
        f"under {amount(counts.faults, 'proven fault')}"
    )
    if history.terms.guard == "none":
        return f"in {scope} no two clients held a lock at the same time."
    refused = amount(counts.stale_writes_refused, "stale write")
    verdict = f"in {scope} the storage accepted nothing that it should have refused"
    overlaps = len(judgement.of(Code.OVERLAP))
    if not overlaps:
        return f"{verdict}; the guard refused {refused}."
    return (
        f"{verdict}. Two clients held the same lock at the same time, {times(overlaps)}; "
        f"the guard refused {refused}."
    )


# --- one incident --------------------------------------------------------------------------


def title(finding: Finding) -> str:
    key, long = plain(finding.key), span(finding.length_ns)
    nodes = [plain(hold.node) for hold in finding.holds]
    first = nodes[0] if nodes else "a client"
    second = nodes[1] if len(nodes) > 1 else "another client"
    if finding.code is Code.OVERLAP:
        return f"Two holders of {key}: {first} and {second} both held it for {long}"
    if finding.code is Code.STALE_WRITE:
        writer = next((plain(o.node) for o in _guilty_writes(finding)), first)
        late = f", {long} too late" if finding.length_ns else " after a later holder's"
        return f"Stale write on {key}: the storage accepted a write of {writer}{late}"
    if finding.code is Code.LOST_UPDATE:
        writers = [plain(o.node) for o in finding.operations if o.f == F.WRITE]
        if len(writers) > 1:
            return f"Lost update on {key}: {writers[-1]} overwrote what {writers[-2]} had written"
        return f"Lost update on {key}: an accepted write is missing in the final state"
    taken_by = _taken_by(finding)
    thief = plain(taken_by.node) if taken_by else first
    return f"Lock {key} taken away: a release by {thief} ended the hold of {second}"


def tell(history: History, finding: Finding) -> Story:
    return tell_incident(history, Incident((finding,)))


def tell_incident(history: History, incident: Incident) -> Story:
    main = incident.main
    return Story(
        title=title(main),
        steps=tuple(_Scene(history, incident).steps()),
        blame=_blame(main),
        prevention=_prevention(history, incident),
        harm=tuple(
            f"{title(f)}.{' ' + plain(f.note, 300) if f.note else ''}" for f in incident.findings
        ),
    )


class _Scene:
    """Collects the steps of one incident out of the evidence and the history around it."""

    def __init__(self, history: History, incident: Incident) -> None:
        self.history = history
        self.incident = incident
        self.holds = incident.holds
        self.stale = stale_writes(incident.findings)
        self.lossy = {
            operation_identity(o)
            for f in incident.findings
            if f.code is Code.LOST_UPDATE
            for o in _guilty_writes(f)
        }
        takings = (_taken_by(f) for f in incident.findings)
        self.takings = {operation_identity(o): o for o in takings if o is not None}

    def steps(self) -> list[Step]:
        steps = [
            *(step for hold in self.holds for step in self._grant(hold)),
            *(step for fault in self._faults() for step in self._fault(fault)),
            *self._stalls(),
            *(step for hold in self.holds for step in self._lease(hold)),
            *self._data(),
            *self._foreign_releases(),
            *(self._end(hold) for hold in self.holds if not self._ended_by_taking(hold)),
        ]
        return sorted(steps, key=lambda step: step.time_ns)

    def _grant(self, hold: Hold) -> Iterator[Step]:
        key, who, ask = plain(hold.key), plain(hold.node), hold.acquire
        ttl_ms = ask.invoke.ttl_ms or self.history.terms.ttl_ms
        lease = f" (lease {span(ttl_ms * NS_PER_MS)})" if ttl_ms else ""
        tries = self._attempts_before(hold)
        again = f"; {amount(tries, 'attempt')} before had found it taken" if tries else ""
        yield Step(ask.start_ns, who, f"asked for the lock {key}{lease}{again}", Kind.LOCK)
        token = f", with fencing token {hold.token}" if hold.token is not None else ""
        others = [h for h in self.holds if h is not hold and h.start_ns <= hold.start_ns < h.end_ns]
        if others:
            still = listed(plain(h.node) for h in others)
            text = f"was granted {key}{token}, while {still} still held it: two holders"
            yield Step(hold.start_ns, who, text, Kind.HARM)
        else:
            yield Step(hold.start_ns, who, f"was granted {key}{token}", Kind.LOCK)

    def _attempts_before(self, hold: Hold) -> int:
        since = min(h.start_ns for h in self.holds)
        return sum(
            1
            for o in self._operations_between(since, hold.start_ns)
            if o.process == hold.process and o.f == F.ACQUIRE and o.failed and o.key == hold.key
        )

    def _operations_between(self, start_ns: int, end_ns: int) -> tuple[Operation, ...]:
        every = self.history.operations  # in the order of their starts
        begin = bisect_left(every, start_ns, key=lambda o: o.start_ns)
        return every[begin : bisect_right(every, end_ns, key=lambda o: o.start_ns)]

    def _lease(self, hold: Hold) -> Iterator[Step]:
        key, who = plain(hold.key), plain(hold.node)
        for renewal in hold.renewals:
            answer = renewal.answer
            when = answer.time if answer else renewal.start_ns
            if renewal.ok:
                yield Step(when, who, f"renewed its lease on {key}", Kind.LOCK)
            else:
                reason = plain((answer and answer.error) or "no answer")
                yield Step(when, who, f"could not renew its lease on {key}: {reason}", Kind.LOCK)
        until_ns = hold.promised_until_ns(self.history.terms.ttl_ms)
        if until_ns is None:
            return
        if until_ns < hold.end_ns:
            text = f"its lease on {key} ran out: the lock may now go to somebody else"
            yield Step(until_ns, who, text, Kind.LOCK)
        elif self.incident.main.blame.who is Culprit.SERVICE and hold is self.holds[0]:
            yield Step(until_ns, who, f"its lease on {key} had been promised until here", Kind.LOCK)

    # --- faults and stalls

    def _faults(self) -> list[FaultSpan]:
        start_ns = min((h.start_ns for h in self.holds), default=0)
        end_ns = max((h.end_ns for h in self.holds), default=0)
        nodes = {h.node for h in self.holds}
        blamed = {f.blame.fault.id: f.blame.fault for f in self.incident.findings if f.blame.fault}
        near = (
            f
            for f in self.history.faults
            if f.id not in blamed and f.node in nodes and f.touches(start_ns, end_ns)
        )
        return [*blamed.values(), *near][:FAULTS_TOLD]

    def _fault(self, fault: FaultSpan) -> Iterator[Step]:
        who, name = plain(fault.node) or "cluster", plain(fault.name)
        proof = f" ({plain(fault.proof, 90)})" if fault.proof else ""
        start_ns, proven_ns = fault.start_ns, fault.proven_ns
        if proven_ns is None:
            why = plain(fault.why_unproven, 120)
            yield Step(start_ns, who, f"{name} began, unproven: {why}", Kind.FAULT)
        elif proven_ns - start_ns <= WORTH_TWO_STEPS_NS:
            took = span(proven_ns - start_ns)
            text = f"{name} began, proven {took} later{proof}"
            yield Step(start_ns, who, text, Kind.FAULT)
        else:
            yield Step(start_ns, who, f"{name} began", Kind.FAULT)
            yield Step(proven_ns, who, f"{name} proven{proof}", Kind.FAULT)
        if fault.healed_ns is not None:
            yield Step(fault.healed_ns, who, self._healed(fault, fault.healed_ns), Kind.FAULT)

    def _healed(self, fault: FaultSpan, healed_ns: int) -> str:
        believed = next(
            (h for h in self.holds if h.node == fault.node and h.start_ns < healed_ns <= h.end_ns),
            None,
        )
        if believed is None:
            return f"{plain(fault.name)} healed"
        ran = "it runs again" if fault.name == "pause" else "all is as before"
        belief = f"still believing that it holds {plain(believed.key)}"
        return f"{plain(fault.name)} healed: {ran}, {belief}"

    def _stalls(self) -> Iterator[Step]:
        stalls = {(s.node, s.start_ns): s for f in self.incident.findings for s in f.blame.stalls}
        for stall in list(stalls.values())[:FAULTS_TOLD]:
            long = span(stall.end_ns - stall.start_ns)
            text = f"did not run for {long}: the machine stalled, nobody had stopped it on purpose"
            yield Step(stall.start_ns, plain(stall.node) or "machine", text, Kind.FAULT)

    # --- reads and writes

    def _data(self) -> Iterator[Step]:
        guilty = {operation_identity(o): o for f in self.incident.findings for o in f.operations}
        told: set[Identity] = set()
        for hold in self.holds:
            mine = [
                o
                for o in self._operations_between(hold.start_ns, hold.end_ns)
                if o.process == hold.process and o.key == hold.key and o.f in {F.READ, F.WRITE}
            ]
            last = len(mine) - DATA_STEPS_AT_EACH_END
            left_out = [
                o for o in mine[DATA_STEPS_AT_EACH_END:last] if operation_identity(o) not in guilty
            ]
            skipped = {operation_identity(o) for o in left_out}
            for operation in mine:
                told.add(operation_identity(operation))
                if operation_identity(operation) not in skipped:
                    yield from self._read_or_write(operation)
            if left_out:
                more = f"… and {len(left_out):,} more reads and writes like these"
                yield Step(left_out[0].start_ns, plain(hold.node), more, Kind.DATA)
        for identity, operation in guilty.items():
            if identity not in told and operation.f in {F.READ, F.WRITE}:
                yield from self._read_or_write(operation)

    def _read_or_write(self, operation: Operation) -> Iterator[Step]:
        who, answer = plain(operation.node), operation.answer
        harmful = operation_identity(operation) in self.stale | self.lossy
        kind = Kind.HARM if harmful and not operation.failed else Kind.DATA
        if operation.failed and operation.f == F.WRITE and self.history.terms.guard != "none":
            kind = Kind.REFUSED
        if answer is None:
            yield Step(operation.start_ns, who, self._data_text(operation), kind)
            return
        if answer.time - operation.start_ns > WORTH_TWO_STEPS_NS:
            sent = _writing(operation) if operation.f == F.WRITE else f"read {plain(operation.key)}"
            yield Step(operation.start_ns, who, f"sent: {sent}", Kind.DATA)
        yield Step(answer.time, who, self._data_text(operation), kind)

    def _data_text(self, operation: Operation) -> str:
        answer, key = operation.answer, plain(operation.key)
        number = f" as #{answer.seq}" if answer and answer.seq is not None else ""
        reason = plain((answer and answer.error) or "no answer came", 120)
        if operation.f == F.READ:
            if operation.ok and answer:
                nothing = answer.value is None
                return f"read {key}: {'nothing written yet' if nothing else plain(answer.value)}"
            return f"could not read {key}: {reason}"
        if operation.ok:
            accepted = f"the storage accepted it{number}{self._why(operation)}"
            return f"wrote {_writing(operation)}; {accepted}"
        if operation.failed:
            return f"tried to write {_writing(operation)}; refused: {reason}"
        return f"sent a write of {_writing(operation)}; nobody told it the outcome ({reason})"

    def _why(self, write: Operation) -> str:
        identity = operation_identity(write)
        why = []
        if identity in self.stale:
            why.append("stale, a later holder had written already")
        if identity in self.lossy:
            why.append("built on an old value, so an update is lost")
        return f": {'; '.join(why)}" if why else ""

    # --- ends

    def _ended_by_taking(self, hold: Hold) -> bool:
        return hold.release is not None and operation_identity(hold.release) in self.takings

    def _foreign_releases(self) -> Iterator[Step]:
        for release in self.takings.values():
            when = release.start_ns if release.end_ns is None else release.end_ns
            robbed = next(
                (
                    plain(h.node)
                    for h in self.holds
                    if h.process != release.process and h.start_ns <= when <= h.end_ns
                ),
                "its holder",
            )
            text = f"released {plain(release.key)}, no longer its own: took it away from {robbed}"
            yield Step(when, plain(release.node), text, Kind.HARM)

    def _end(self, hold: Hold) -> Step:
        who, key = plain(hold.node), plain(hold.key)
        texts = {
            Ending.RELEASED: f"released {key}{_release_outcome(hold.release)}",
            Ending.LOST: f"was told that it had lost {key}",
            Ending.EXPIRED: f"stopped believing: by its own clock its lease on {key} was over",
            Ending.LAST_SEEN: f"was last heard of; it never released {key}",
        }
        return Step(hold.end_ns, who, texts[hold.ending], Kind.LOCK)


def _writing(write: Operation) -> str:
    base = write.invoke.base
    on_top = "" if base is None else f" on top of {plain(base)}"
    token = write.invoke.token
    shown = "" if token is None else f" with token {token}"
    return f"{plain(write.invoke.value)}{on_top}{shown}"


def _release_outcome(release: Operation | None) -> str:
    if release is None or release.ok:
        return ""
    error = plain((release.answer and release.answer.error) or "no answer")
    if release.failed:
        return f"; the service refused: {error} (it had lost the lock before)"
    return f"; whether it took is unknown: {error}"


# --- whose fault, and what would prevent it -------------------------------------------------


def _blame(finding: Finding) -> str:
    return " ".join(part for part in (_culprit(finding), _active_fault(finding.blame)) if part)


def _culprit(finding: Finding) -> str:
    blame, by = finding.blame, span(finding.blame.by_ns)
    nodes = [plain(h.node) for h in finding.holds]
    earlier = nodes[0] if nodes else "the earlier holder"
    later = nodes[1] if len(nodes) > 1 else "the next client"
    if blame.who is Culprit.MACHINE:
        long = span(sum(s.end_ns - s.start_ns for s in blame.stalls))
        what = f"it stalled for {long}" if blame.stalls else "its own clock jumped"
        return (
            f"The machine that ran this test: {what}, without any fault of ours. "
            "That is not counted against the lock."
        )
    if blame.release is not None or blame.who is Culprit.CLIENT:
        return _wrong_client(finding, earlier)
    if blame.who is Culprit.HOLDER:
        return (
            f"The holder, {earlier}: it went on believing for {by} after its lease had run out. "
            f"The service was entitled to let {later} in."
        )
    if blame.promised_until_ns is None:
        return f"The lock service: it let {later} in before {earlier} had released the lock."
    return (
        f"The lock service broke its promise: it let {later} in {by} before the lease that it had "
        f"granted to {earlier} ran out."
    )


def _wrong_client(finding: Finding, earlier: str) -> str:
    taken_by = _taken_by(finding)
    if taken_by is not None:
        return (
            f"The client {plain(taken_by.node)}: it released a lock that was no longer its own, "
            "and the service let it: the release does not check who the owner is."
        )
    if finding.code is Code.LOST_UPDATE and not finding.blame.by_ns:
        return (
            "A client: what it overwrote was there to be read under the lock, so neither the lock "
            "nor its lease is to blame."
        )
    return (
        f"The client {earlier}: it wrote {span(finding.blame.by_ns)} after it had let go of the "
        "lock itself, so neither the lock nor its lease is to blame."
    )


def _active_fault(blame: Blame) -> str:
    if blame.fault is None:
        unexplained = blame.who is Culprit.SERVICE and blame.release is None
        return "No injected fault explains it." if unexplained else ""
    proof = f", proven: {plain(blame.fault.proof, 120)}" if blame.fault.proof else ", unproven"
    return f"Active fault: {fault_name(blame.fault)}{proof}."


_GUARD_ADVICE = (
    "a guard at the storage: a fencing token that the storage checks (--guard fence, with a "
    "backend that gives tokens), or compare-and-set on the version (--guard cas)"
)
# Parts of a fault's name, and what makes a service survive that fault.
_SERVICE_CURES = (
    (
        ("clock", "skew"),
        (
            "Leases must not hang on a clock that can jump: slew instead of stepping it, and "
            "choose a service that counts leases by consensus or by a monotonic clock."
        ),
    ),
    (
        ("kill", "restart", "crash", "wipe", "amnesia"),
        (
            "A server must not come back without the locks that it granted: persist each grant "
            "before it is answered, or keep a restarted server out for longer than the longest "
            "lease."
        ),
    ),
    (
        ("failover", "promote", "primary", "replica"),
        (
            "A grant must be on a majority before it is answered: asynchronous replication forgets "
            "locks at failover. Choose a service with consensus."
        ),
    ),
    (
        ("partition", "cut", "loss", "link"),
        (
            "A server cut off from the majority must not grant or forget locks: choose a service "
            "with consensus, and check that its quorum is configured."
        ),
    ),
)


def _prevention(history: History, incident: Incident) -> str:
    blame, guard = incident.main.blame, history.terms.guard
    guarded = guard in {"fence", "cas"}
    if blame.who is Culprit.MACHINE:
        return (
            "Nothing about the lock. Run again on a quieter machine, or with a longer lease (--ttl)"
            " so that a short stall does not reach its end."
        )
    if guarded and incident.effect is Verdict.VIOLATION:
        return (
            f"The storage was to refuse this (--guard {guard}) and accepted it: look at how it "
            "compares tokens or versions, and at whether each write carries its own."
        )
    if guarded and blame.who is Culprit.HOLDER:
        return (
            "Nothing more: no lock with a lease can prevent a holder from outliving it, and the "
            f"guard at the storage (--guard {guard}) is what keeps the data right."
        )
    return _lock_cure(incident)


def _lock_cure(incident: Incident) -> str:
    blame = incident.main.blame
    if blame.release is not None or incident.main.code is Code.FOREIGN_RELEASE:
        return (
            "Compare and delete: store a random value of your own with the lock, and release it "
            "only while the value is still yours, in one atomic step, as --backend redis does."
        )
    if blame.who is Culprit.CLIENT:
        return (
            "Mend the client: it must read under the lock, and write only while it holds it. "
            f"What also helps is {_GUARD_ADVICE}."
        )
    if blame.who is Culprit.SERVICE:
        cure = _service_cure(blame.fault)
        return f"{cure} Whatever the service does, data stay safe behind {_GUARD_ADVICE}."
    return (
        "No lock service can prevent this: a client that does not run cannot notice that its lease "
        f"has run out. What helps is {_GUARD_ADVICE}. A longer lease only makes it rarer."
    )


def _service_cure(fault: FaultSpan | None) -> str:
    name = fault.name.lower() if fault else ""
    for parts, cure in _SERVICE_CURES:
        if any(part in name for part in parts):
            return cure
    return "The service must not grant a lock before the lease that it promised has run out."


# --- what the storage refused ---------------------------------------------------------------


def refused_writes(history: History) -> tuple[RefusedWrite, ...]:
    """The writes that the guard refused, by the storage's own word where there is any."""
    if history.terms.guard not in {"fence", "cas"}:
        return ()
    sent = {
        (o.process, o.key, plain(o.invoke.value)): o
        for o in history.operations
        if o.f == F.WRITE and not o.ok
    }
    testified = [t for t in history.testimony if t.f == F.WRITE and not t.accepted]
    lookup = _HoldLookup(history)
    if history.testimony:
        refused = [
            lookup.refused(sent.get((t.process, t.key, plain(t.value))), t) for t in testified
        ]
    else:  # the run ended before the storage could testify: what the clients were told
        refused = [lookup.refused(o, None) for o in sent.values() if o.failed]
    return tuple(sorted(refused, key=lambda w: (w.time_ns is None, w.time_ns or 0, w.seq or 0)))


class _HoldLookup:
    """Who held a key last at a given time, without walking all holds for each write."""

    def __init__(self, history: History) -> None:
        self._ttl_ms = history.terms.ttl_ms
        self._by_key: dict[str, list[Hold]] = {}
        self._by_owner: dict[tuple[int | str, str], list[Hold]] = {}
        for hold in history.holds:
            self._by_key.setdefault(hold.key, []).append(hold)
            self._by_owner.setdefault((hold.process, hold.key), []).append(hold)

    def refused(self, write: Operation | None, testimony: Testimony | None) -> RefusedWrite:
        if write is None:
            assert testimony is not None  # noqa: S101 - one of the two tells of the write
            return RefusedWrite(
                time_ns=None,
                node=f"process {plain(testimony.process)}",
                key=plain(testimony.key),
                value=plain(testimony.value),
                base="" if testimony.base is None else plain(testimony.base),
                token=testimony.token,
                seq=testimony.seq,
                reason=plain(testimony.reason, 160),
                late_ns=None,
                newer_holder="",
            )
        invoke, answer = write.invoke, write.answer
        own = _latest(self._by_owner.get((write.process, write.key), []), write.start_ns)
        last = _latest(self._by_key.get(write.key, []), answer.time if answer else write.start_ns)
        until_ns = own.promised_until_ns(self._ttl_ms) if own else None
        late = until_ns is not None and write.start_ns > until_ns
        superseded = own is not None and last is not None and last.process != own.process
        told = (testimony.reason if testimony else "") or (answer.error if answer else "") or ""
        return RefusedWrite(
            time_ns=write.start_ns,
            node=plain(write.node),
            key=plain(write.key),
            value=plain(invoke.value),
            base="" if invoke.base is None else plain(invoke.base),
            token=invoke.token,
            seq=testimony.seq if testimony else (answer.seq if answer else None),
            reason=plain(told, 160),
            late_ns=write.start_ns - until_ns if until_ns is not None and late else None,
            newer_holder=plain(last.node) if superseded and last is not None else "",
        )


def _latest(holds: list[Hold], at_ns: int) -> Hold | None:
    """The last that had begun by then; `holds` are in the order of their starts."""
    index = bisect_right(holds, at_ns, key=lambda hold: hold.start_ns)
    return holds[index - 1] if index else None
