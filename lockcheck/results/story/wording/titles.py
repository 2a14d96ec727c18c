"""One line for an incident, and the lines that list what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Code, Culprit, Finding
from lockcheck.history import F, FaultSpan, Hold, Operation
from lockcheck.results.story.incidents import (
    Incident,
    begun_in_time,
    foreign_release_of,
    identity,
    slept,
)
from lockcheck.results.story.numbers import Numbers
from lockcheck.results.story.wording.codes import anomalies, by_evidence, note, precedence, words_of
from lockcheck.results.story.wording.effects import suffered
from lockcheck.words import (
    amount,
    full_stop,
    listed,
    lock_name,
    names,
    names_with_counts,
    node_of,
    plain,
    span,
    spans,
    times,
    upper_first,
)

LISTED_AT_MOST = 3
NOTES_AT_MOST = 2


def incident_title(incident: Incident) -> str:
    main = incident.main
    if incident.chained:
        return _taken_away(incident)
    if main.code == Code.OVERLAP:
        held = _held(incident)
        return f"{held}. {upper_first(also_taken(incident))}" if incident.foreign_releases else held
    if by_evidence(main):
        others = len(incident.of(main.code)) - 1
        more = f" (and {others:,} more like it)" if others else ""
        return f"{words_of(main).title(main)}{more}"
    return _stale(incident) if main.code == Code.STALE_WRITE else _lost(main)


def _held(incident: Incident) -> str:
    main, key, blame = incident.main, lock_name(incident.key), incident.main.blame
    long = f" for {span(main.length_ns)}" if len(incident.rivals) <= 1 else ""
    if incident.crowd:
        who, permits = names(hold.node for hold in incident.crowd), len(main.holds) - 1
        return f"{who} all held one of the {permits} permits of {key}{long}"
    earlier, others = node_of(main.holds, 0, "a client"), let_in(incident)
    if blame.promised_until_ns is None or blame.who in (Culprit.CLIENT, Culprit.UNKNOWN):
        if long and not any(hold.shared for hold in main.holds):
            return f"{names(hold.node for hold in main.holds)} both held {key}{long}"
        return f"{earlier} still held {key} while {others}"
    if blame.who in (Culprit.SERVICE, Culprit.CLOCKS):
        early = f"{span(blame.by_ns)} before {earlier}'s lease ran out"
        later = f"{node_of(main.holds, 1, 'another client')} was let in to {key} {early}"
        return f"{later}, and both held it{long}" if long else f"{later} ({others})"
    return f"{outlived(incident)}, while {others}"


def outlived(incident: Incident) -> str:
    """A client that was stopped did not go on: it slept."""
    main, key, by = incident.main, lock_name(incident.key), span(incident.main.blame.by_ns)
    earlier = node_of(main.holds, 0, "a client")
    late = [write for write in incident.stale if write.process == main.holds[0].process]
    until_ns = main.blame.promised_until_ns
    if until_ns is not None and (begun := begun_in_time(incident)):
        return _arrived_late(main.blame.fault, begun[0], until_ns)
    if main.blame.ended_by is not None:
        return f"{earlier} held {key} for {by} after its session had ended with its server"
    if not slept(main):
        return f"{earlier} held {key} for {by} beyond its lease"
    then = ", then wrote at once," if late else " and still believed in it"
    return f"{earlier} slept through its lease on {key}{then} {by} after its end"


def _arrived_late(fault: FaultSpan | None, write: Operation, until_ns: int) -> str:
    """It was begun in time, so its client did not go on beyond its lease: the write did."""
    who, key = plain(write.node), lock_name(write.key)
    end_ns = write.end_ns or until_ns
    late = f"{span(end_ns - until_ns)} after" if end_ns > until_ns else "after"
    happened = ""
    if fault and write.node in fault.nodes and write.start_ns <= fault.worked_from_ns:
        happened = suffered(fault)
    if happened.startswith("it "):
        return (
            f"{who} {happened[3:]} with a write to {key} under way, which arrived {late} its lease"
            " had ended"
        )
    return f"A write of {who} to {key}, begun within its lease, arrived {late} the lease had ended"


def let_in(incident: Incident) -> str:
    """The clients that were let in while the first one still believed."""
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


def _stale(incident: Incident) -> str:
    main, key = incident.main, lock_name(incident.key)
    writer = next(iter(incident.stale)).node
    late = f", {span(main.length_ns)} too late" if main.length_ns else " after a later holder's"
    return f"Late write on {key}: the storage accepted a write of {plain(writer)}{late}"


def _lost(finding: Finding) -> str:
    writers = [plain(o.node) for o in finding.operations if o.f == F.WRITE]
    key = lock_name(finding.key)
    if len(writers) > 1:
        return f"Lost write on {key}: {writers[-1]} overwrote what {writers[-2]} had written"
    return f"Lost write on {key}: an accepted write is missing in the final state"


def _taken_away(incident: Incident) -> str:
    key, many = lock_name(incident.key), len(incident.foreign_releases)
    first, victim = releaser_and_victim(incident.main)
    began = ""
    for late in incident.late[:1]:
        did = "slept through" if slept(late) else "outlived"
        began = f"{plain(late.holds[0].node)} {did} its lease, then "
    if many > 1:
        return (
            f"{began}{many:,} blind releases in a chain took {key} away from its holder "
            f"(the first: {first}'s, from {victim})"
        )
    then = f", and {plain(incident.next_holder.node)} was let in" if incident.next_holder else ""
    return f"{began}{'a' if began else 'A'} blind release by {first} took {key} from {victim}{then}"


def also_taken(incident: Incident) -> str:
    """What the release of a late holder did in the end."""
    releaser, victim = first_release(incident)
    return f"then a blind release by {releaser} took {lock_name(incident.key)} away from {victim}"


def first_release(incident: Incident) -> tuple[str, str]:
    """Who released another one's lock first, and whose."""
    return releaser_and_victim(_first_foreign(incident))


def taken_first(incident: Incident) -> Hold | None:
    """The first hold that another client's release took away; None: not known."""
    return next(iter(_victim(_first_foreign(incident))), None)


def _first_foreign(incident: Incident) -> Finding:
    release = incident.foreign_releases[0]
    return next(f for f in incident.findings if foreign_release_of(f) == release)


def _victim(finding: Finding) -> tuple[Hold, ...]:
    place = 1 if finding.code == Code.FOREIGN_RELEASE else 0
    return finding.holds[place : place + 1]


def releaser_and_victim(finding: Finding) -> tuple[str, str]:
    """The nodes of the client that released another one's lock, and of that one."""
    release, holds = foreign_release_of(finding), finding.holds
    releaser = plain(release.node) if release else node_of(holds, 0, "a client")
    return releaser, node_of(_victim(finding), 0, "its holder")


# --- all that it did ---------------------------------------------------------------------------


def harm(incident: Incident, numbers: Numbers) -> tuple[str, ...]:
    """One line for each kind of harm, however often it was done; the worst first."""
    lines = (*_lost_writes(incident, numbers), *_stale_writes(incident, numbers))
    return (*lines, *_anomalies(incident), *_foreign(incident), *_overlaps(incident))


def _anomalies(incident: Incident) -> Iterator[str]:
    found = [same for same in incident.by_code.values() if by_evidence(same[0])]
    for same in sorted(found, key=lambda same: -precedence(same[0])):
        first, title = same[0], words_of(same[0]).title
        each = listed(dict.fromkeys(map(title, same)), LISTED_AT_MOST)
        yield _noted(
            each if len(same) == 1 else f"{anomalies(first.code, len(same))}: {each}", same
        )


def _overlaps(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.OVERLAP)
    if not found:
        return
    first = {f.holds[0].process for f in found}
    nodes = [hold.node for hold in incident.holds]
    who = f"among {names(sorted(nodes))}"
    if len(first) == 1:
        others = [hold.node for f in found for hold in f.holds[1:]]
        who = f"of {plain(found[0].holds[0].node)} with {names(sorted(others))}"
    long = spans([f.length_ns for f in found])
    unexplained = [f for f in found if f.blame.release is None or len(incident.findings) == 1]
    yield _noted(f"{anomalies(Code.OVERLAP, len(found))} {who}: {long}", unexplained)


def _foreign(incident: Incident) -> Iterator[str]:
    found = incident.of(Code.FOREIGN_RELEASE)
    if len(found) == 1:
        releaser, victim = releaser_and_victim(found[0])
        yield _noted(f"1 blind release, by {releaser}, took the lock away from {victim}", found)
    elif found:
        by, many = names_with_counts(releaser_and_victim(f)[0] for f in found), len(found)
        yield f"{anomalies(Code.FOREIGN_RELEASE, many)} took another client's lock away: by {by}."


def _stale_writes(incident: Incident, numbers: Numbers) -> Iterator[str]:
    found = incident.of(Code.STALE_WRITE)
    if not found:
        return
    late = {identity(f.operations[-1]): f.length_ns for f in found}

    def shown(write: Operation) -> str:
        late_ns = late.get(identity(write))
        after = f", {span(late_ns)} after its lease" if late_ns else ""
        return f"{numbers.write(write)} ({plain(write.invoke.value, 24)}{after})"

    which = listed(map(shown, incident.stale), LISTED_AT_MOST)
    yield _noted(f"{anomalies(Code.STALE_WRITE, len(found))} accepted: {which}", found)


def _lost_writes(incident: Incident, numbers: Numbers) -> Iterator[str]:
    found, known = incident.of(Code.LOST_UPDATE), incident.losses
    if not found:
        return
    acknowledged = "acknowledged " if all(loss.acknowledged for loss in known) else ""
    text = f"{amount(len(found), f'{acknowledged}write')} lost"
    each = [
        f"{numbers.writes(loss.lost)}, overwritten by {numbers.write(loss.overwriting)}"
        for loss in known
        if loss.lost
    ]
    yield _noted(f"{text}{': ' if each else ''}{listed(each, LISTED_AT_MOST)}", found)


def _noted(text: str, found: Iterable[Finding]) -> str:
    """What the numbers do not say, where it does not repeat itself too often."""
    notes = Counter(map(note, found))
    total = notes.total()
    sentences = [
        full_stop(words) if often == total else f"({often:,} of them: {full_stop(words)})"
        for words, often in notes.most_common(NOTES_AT_MOST + 1)
        if words and (often > 1 or total <= NOTES_AT_MOST)
    ]
    return " ".join([f"{text}.", *sentences[:NOTES_AT_MOST]])
