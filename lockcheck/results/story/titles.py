"""One line for an incident, and the lines that list what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Code, Culprit, Finding
from lockcheck.history import F, Hold, Operation
from lockcheck.results.story.anomalies import anomalies, anomaly_title
from lockcheck.results.story.incidents import (
    TOLD_BY_EVIDENCE,
    Incident,
    guilty_writes,
    operation_identity,
    taken_by,
)
from lockcheck.results.story.words import (
    amount,
    full_stop,
    listed,
    lock_name,
    names,
    names_with_counts,
    node_of,
    numbers,
    plain,
    span,
    spans,
    times,
)

LISTED_AT_MOST = 3
NOTES_AT_MOST = 2


def title(finding: Finding) -> str:
    return incident_title(Incident((finding,)))


def incident_title(incident: Incident) -> str:
    if incident.chained:
        return _taken_away(incident)
    main = incident.main
    if main.code is Code.OVERLAP:
        held = _held(incident)
        return f"{held}; {also_taken(incident)}" if incident.takings else held
    if main.code in TOLD_BY_EVIDENCE:
        return _often(incident)
    return _stale(main) if main.code is Code.STALE_WRITE else _lost(main)


def _often(incident: Incident) -> str:
    """The first of its kind; the others are counted."""
    others = len(incident.of(incident.main.code)) - 1
    more = f" (and {others:,} more like it)" if others else ""
    return f"{anomaly_title(incident.main)}{more}"


def _held(incident: Incident) -> str:
    if incident.crowd:
        who, key = names(hold.node for hold in incident.crowd), lock_name(incident.key)
        long, permits = span(incident.main.length_ns), len(incident.main.holds) - 1
        return f"{who} all held one of the {permits} permits of {key} for {long}"
    return _held_by_many(incident) if len(incident.rivals) > 1 else _held_by_two(incident.main)


def _held_by_two(finding: Finding) -> str:
    first = node_of(finding.holds, 0, "a client")
    second = node_of(finding.holds, 1, "another client")
    key, long = lock_name(finding.key), span(finding.length_ns)
    modes = [hold.shared for hold in finding.holds[:2]]
    if any(modes):
        sharing, alone = (first, second) if modes[0] else (second, first)
        return f"{alone} had {key} alone and {sharing} shared it, both for {long}"
    return f"{first} and {second} both held {key} for {long}"


def _held_by_many(incident: Incident) -> str:
    main, key, rivals = incident.main, lock_name(incident.key), incident.rivals
    earlier, others = node_of(main.holds, 0, "a client"), let_in(incident)
    held = "shared" if main.holds and main.holds[0].shared else "held"
    if main.blame.promised_until_ns is None or main.blame.who is Culprit.CLIENT:
        return f"{earlier} still {held} {key} while {others}"
    if main.blame.who is Culprit.SERVICE:
        early = f"{span(main.blame.by_ns)} before {earlier}'s lease ran out"
        return f"{plain(rivals[0].node)} was let in to {key} {early}, then others: {others}"
    return f"{earlier} {held} {key} for {span(main.blame.by_ns)} beyond its lease, while {others}"


def let_in(incident: Incident) -> str:
    """Who came in while the first one still believed."""
    rivals = incident.rivals or incident.main.holds[1:2]
    first, nodes = node_of(rivals, 0, "another client"), {hold.node for hold in rivals}
    how = _how(incident.main.holds[:1], rivals)
    if len(rivals) <= 1:
        return f"{first} was let in{how}"
    if len(nodes) == 1:
        return f"{first} was let in {times(len(rivals))}{how}"
    return f"others were let in {times(len(rivals))}{how} ({first} first)"


def _how(first: tuple[Hold, ...], rivals: tuple[Hold, ...]) -> str:
    """What is wrong with two at once, where some locks are shared."""
    if any(hold.shared for hold in first):
        return " to have it alone"
    return " to share it" if rivals and all(hold.shared for hold in rivals) else ""


def _stale(finding: Finding) -> str:
    writer = next(
        (plain(o.node) for o in guilty_writes(finding)), node_of(finding.holds, 0, "a client")
    )
    late = f", {span(finding.length_ns)} too late" if finding.length_ns else " after a later one's"
    return (
        f"Stale write on {lock_name(finding.key)}: the storage accepted a write of {writer}{late}"
    )


def _lost(finding: Finding) -> str:
    writers = [plain(o.node) for o in finding.operations if o.f == F.WRITE]
    key = lock_name(finding.key)
    if len(writers) > 1:
        return f"Lost update on {key}: {writers[-1]} overwrote what {writers[-2]} had written"
    return f"Lost update on {key}: an accepted write is missing in the final state"


def _taken_away(incident: Incident) -> str:
    main, key, many = incident.main, lock_name(incident.key), len(incident.takings)
    first, robbed = robbery(main)
    let_in = f", and {plain(incident.guest.node)} was let in" if incident.guest else ""
    if many == 1:
        return f"A blind release by {first} took {key} away from {robbed}{let_in}"
    return (
        f"{many} blind releases in a chain took {key} away from its holder "
        f"(the first: {first}'s, from {robbed})"
    )


def also_taken(incident: Incident) -> str:
    """What the release of a late holder did in the end."""
    release = incident.takings[0]
    thief, robbed = robbery(next(f for f in incident.findings if taken_by(f) == release))
    return f"then a blind release by {thief} took {lock_name(incident.key)} away from {robbed}"


def robbery(finding: Finding) -> tuple[str, str]:
    """Who released what was not its own, and who was robbed by that."""
    release, holds = taken_by(finding), finding.holds
    thief = plain(release.node) if release else node_of(holds, 0, "a client")
    return thief, node_of(holds, 1 if finding.code is Code.FOREIGN_RELEASE else 0, "its holder")


# --- all that it did ---------------------------------------------------------------------------


def harm(incident: Incident) -> tuple[str, ...]:
    """One line for each kind of harm, however often it was done."""
    lines = (*_overlaps(incident), *_foreign(incident), *_stale_writes(incident))
    return (*lines, *_lost_updates(incident), *_anomalies(incident))


def _anomalies(incident: Incident) -> Iterator[str]:
    for code in TOLD_BY_EVIDENCE:
        found = incident.of(code)
        if len(found) == 1:
            yield _noted(anomaly_title(found[0]), found)
        elif found:
            each = listed(map(anomaly_title, found), LISTED_AT_MOST)
            yield _noted(f"{anomalies(code, len(found))}: {each}", found)


def _overlaps(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.OVERLAP)
    if not found:
        return
    first = {f.holds[0].process for f in found if f.holds}
    nodes = [hold.node for hold in incident.holds]
    who = f"among {names(sorted(nodes))}"
    if len(first) == 1:
        others = [hold.node for f in found for hold in f.holds[1:]]
        who = f"of {node_of(found[0].holds, 0, 'a client')} with {names(sorted(others))}"
    long = spans([f.length_ns for f in found])
    unexplained = [f for f in found if f.blame.release is None or len(incident.findings) == 1]
    yield _noted(f"{amount(len(found), 'overlap')} {who}: {long}", unexplained)


def _foreign(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.FOREIGN_RELEASE)
    if len(found) == 1:
        thief, robbed = robbery(found[0])
        yield _noted(f"1 blind release, by {thief}, took the lock away from {robbed}", found)
    elif found:
        by = names_with_counts(robbery(f)[0] for f in found)
        yield f"{amount(len(found), 'blind release')} took somebody else's lock away: by {by}."


def _stale_writes(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.STALE_WRITE)
    if not found:
        return
    late = {
        operation_identity(o): f.length_ns for f in found for o in guilty_writes(f) if f.length_ns
    }

    def told(write: Operation) -> str:
        late_ns = late.get(operation_identity(write))
        after = f", {span(late_ns)} after its lease" if late_ns else ""
        return f"{_write(write)} ({plain(write.invoke.value, 24)}{after})"

    which = listed(map(told, incident.stale), LISTED_AT_MOST)
    many = amount(len(found), "stale write")
    yield _noted(f"{many} accepted{': ' if which else ''}{which}", found)


def _lost_updates(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.LOST_UPDATE)
    if not found:
        return
    known = incident.losses
    acknowledged = "acknowledged " if known and all(loss.acknowledged for loss in known) else ""
    whose = [(_writes(loss.lost), _write(loss.overwriting)) for loss in known if loss.lost]
    text = f"{amount(len(found), f'{acknowledged}update')} lost"
    each = listed((f"{lost} by {by}" for lost, by in whose), LISTED_AT_MOST)
    told = f", overwritten: {each}" if each else ""
    if len(whose) == 1:
        told = f": {whose[0][0]}, overwritten by {whose[0][1]}"
    yield _noted(f"{text}{told}", found)


def _write(write: Operation) -> str:
    seq = write.answer.seq if write.answer else None
    return plain(write.node) if seq is None else f"#{seq} of {plain(write.node)}"


def _writes(writes: tuple[Operation, ...]) -> str:
    if len(writes) == 1:
        return _write(writes[0])
    shown = numbers(write.answer.seq if write.answer else None for write in writes)
    of = names(sorted(write.node for write in writes))
    return f"{shown} of {of}" if shown else f"those of {of}"


def _noted(text: str, found: Iterable[Finding]) -> str:
    """What the numbers do not say, where it does not repeat itself too often."""
    notes = Counter(f.note for f in found)
    total = notes.total()
    told = [
        full_stop(note) if often == total else f"({often:,} of them: {full_stop(note)})"
        for note, often in notes.most_common(NOTES_AT_MOST + 1)
        if note and (often > 1 or total <= NOTES_AT_MOST)
    ]
    return " ".join([f"{text}.", *told[:NOTES_AT_MOST]])
