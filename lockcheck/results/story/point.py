"""The main point: one sentence of at most twenty words (cause, act, damage), what it comes to at a
glance, and whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lockcheck.checker.check import GUARDS
from lockcheck.checker.finding import Code, Culprit, Finding, Judgement, Verdict
from lockcheck.history import Effect, History, Terms
from lockcheck.history.event import TRANSACTION
from lockcheck.results.story.incidents import Incident, crossed, fault_behind, identity, slept
from lockcheck.results.story.refused import rolled_back
from lockcheck.results.story.seen import about_locks, injected
from lockcheck.results.story.wording.acts import befell, did, nothing_done
from lockcheck.results.story.wording.codes import by_evidence, words_of
from lockcheck.results.story.wording.doubts import in_words
from lockcheck.results.story.wording.guards import guard_name
from lockcheck.results.story.wording.titles import first_release
from lockcheck.results.story.wording.whose import LIMIT, whose, why
from lockcheck.words import amount, lock_server, names, node_of, plain, sentence, upper_first

MOST_WORDS = 20
PROCESS = "process "  # how a client without a name is called
UNHARMED = "no data was damaged this time"
OUR_OPENINGS = frozenset({"client", "clients", "process", "the", "too", "no", "your", "without"})


class Level(StrEnum):
    """The verdict to the eye: a run that only its guard kept right is no plain `ok`."""

    OK = "OK"
    GUARDED = "OK only with the guard"
    UNKNOWN = "Unknown"
    VIOLATION = "Violation"


@dataclass(frozen=True, slots=True)
class Point:
    level: Level
    sentence: str
    whose: str = ""  # fault it was, in a few words; empty where nothing went wrong
    why: str = ""  # the same in a sentence; empty: not known
    did: str = ""  # what lockcheck did, where that is a part of it
    guard: str = ""  # what kept it right, by its name

    @property
    def blameless(self) -> bool:
        return self.whose == LIMIT

    @property
    def title(self) -> str:
        """The verdict, with the name of the guard that it hangs on."""
        return f"OK only with {self.guard}" if self.level is Level.GUARDED else self.level


def point_of(history: History, judgement: Judgement, incidents: Sequence[Incident]) -> Point:
    """`incidents`: the worst first."""
    level = level_of(history, judgement)
    if level is Level.UNKNOWN:
        return Point(level, _unknown(history, judgement))
    if level is Level.OK or not incidents:
        return Point(level, _ok(history, judgement), guard=guard_name(history.terms))
    worst, counted = incidents[0], [i for i in incidents if i.effect is Verdict.VIOLATION]
    fault = fault_behind(worst)
    violated = level is Level.VIOLATION
    return Point(
        level,
        _violation(history, judgement, worst, counted) if violated else _ok(history, judgement),
        whose(history.terms, worst),
        why(history.terms, worst),
        did(history.terms, fault) if fault else nothing_done(history),
        guard_name(history.terms),
    )


def level_of(history: History, judgement: Judgement) -> Level:
    if judgement.verdict is not Verdict.OK:
        violated = judgement.verdict is Verdict.VIOLATION
        return Level.VIOLATION if violated else Level.UNKNOWN
    needed = history.terms.guard in GUARDS and _refused(history, judgement)
    return Level.GUARDED if needed else Level.OK


def _refused(history: History, judgement: Judgement) -> int:
    """The writes that would have done harm without the guard."""
    if history.terms.guard == TRANSACTION:
        return rolled_back(history)
    return judgement.counts.stale_writes_refused


# --- a violation ---------------------------------------------------------------------------------


def _violation(
    history: History, judgement: Judgement, worst: Incident, counted: Sequence[Incident]
) -> str:
    damage, main = _damage(judgement, worst, counted), worst.main
    clients = () if by_evidence(main) else {hold.node for hold in main.holds}
    for cause in _causes(history, worst, harmed=damage not in ("", UNHARMED)):
        text = _joined(cause, damage)
        for each in (_with_a_role(text, clients), text):
            if len(each.split()) <= MOST_WORDS:
                return f"{_begun(each)}."
    return f"{_begun(' '.join(text.split()[: MOST_WORDS - 1]))} …"


def _joined(cause: str, damage: str) -> str:
    """What the same client did needs its name but once."""
    if not damage[:1].isalpha():
        return f"{cause}{'; ' if ':' in cause else ': '}{damage}" if damage else cause
    who, _, act = damage.partition(" ")
    clause = re.split(r"[;:,] ", cause)[-1]
    if clause.startswith(f"{who} "):
        return f"{cause} and {act}"
    return f"{cause}, {'but' if damage == UNHARMED else 'and'} {damage}"


def _with_a_role(text: str, clients: Iterable[str]) -> str:
    """The first name of a client says what it is one of."""
    named = "|".join(sorted((re.escape(plain(name)) for name in clients), key=len, reverse=True))
    found = re.search(rf"(?<![\w-])({named})( and ({named}))?(?![\w-])", text) if named else None
    if found is None or found[1].startswith(PROCESS):
        return text
    role = "clients" if found[2] else "client"
    return f"{text[: found.start()]}{role} {text[found.start() :]}"


def _begun(text: str) -> str:
    """A client's name stays as it is."""
    return upper_first(text) if text.partition(" ")[0] in OUR_OPENINGS else text


def _causes(history: History, incident: Incident, *, harmed: bool) -> list[str]:
    """Cause and act, in ever fewer words."""
    main = incident.main
    if incident.foreign_releases:
        return _deleted(incident)
    if by_evidence(main):
        return [words_of(main).title(main)]
    if incident.crowd:
        who = names(hold.node for hold in incident.crowd)
        permits = f"the {len(main.holds) - 1} permits of the lock"
        return [f"{who} all held one of {permits}", f"too many clients held {permits}"]
    earlier, later = node_of(main.holds, 0, "a client"), node_of(main.holds, 1, "another client")
    return _by_culprit(history, main, earlier, later, harmed=harmed)


def _by_culprit(
    history: History, main: Finding, earlier: str, later: str, *, harmed: bool
) -> list[str]:
    match main.blame.who:
        case Culprit.SERVICE:
            return _of_the_service(history, main, earlier, later)
        case Culprit.HOLDER:
            cause = _outlived(history.terms, main, earlier)
            got = f"{cause}; {later} got the lock"
            return [got, cause] if harmed else [f"{got}, and both took it for theirs", got]
        case Culprit.CLIENT:
            writer = main.operations[-1].node if main.operations else earlier
            return [f"{plain(writer)} wrote without holding the lock"]
        case Culprit.STORAGE:
            return ["the storage served an older value than it had accepted"]
    return [f"{earlier} and {later} held the lock at once"]


def _deleted(incident: Incident) -> list[str]:
    releaser, victim = first_release(incident)
    act = f"deleted {victim}'s lock"
    for late in incident.late[:1]:
        holder = node_of(late.holds, 0, "a client")
        past = "was paused past its lease" if slept(late) else "worked past its lease"
        if holder == releaser:
            return [f"{holder} {past}, then {act}", f"{releaser} {act}"]
        return [f"{holder} {past}; {releaser} then {act}", f"{releaser} {act}"]
    return [f"{releaser} {act}, which was not its own", f"{releaser} {act}"]


def _of_the_service(history: History, main: Finding, earlier: str, later: str) -> list[str]:
    terms, fault = history.terms, main.blame.fault
    server = lock_server(terms) if terms.accused else plain(terms.server) or "the lock server"
    beside = f"{server} gave {later} the lock that {earlier} held"
    if crossed(main):
        beside = f"{server} gave {earlier} and {later} the lock at the same time"
    if fault is None:
        calm = terms.backend and not any(f.proven_ns is not None for f in history.faults)
        return [f"without any disturbance, {beside}" if calm else beside, beside]
    cause = befell(terms, fault)
    if terms.accused:
        return [f"{cause}: {beside}", f"{cause}: {later} got {earlier}'s lock too", beside]
    if fault.effect is Effect.SKEWS:
        early = f"{cause}: {earlier}'s lock ended early"
        return [f"{early}, {later} got it too", early, cause]
    if fault.effect is Effect.ENDS:
        forgot = f"{cause} and forgot {earlier}'s lock"
        return [f"{forgot}; {later} got it too", forgot, cause]
    return [f"{cause}: {later} got {earlier}'s lock too", cause]


def _outlived(terms: Terms, main: Finding, earlier: str) -> str:
    fault = main.blame.fault
    if main.blame.ended_by is not None:
        return f"{befell(terms, main.blame.ended_by)}, and {earlier}'s lock ended with it"
    if slept(main):
        return f"{earlier} was paused past its lease"
    suffered = {
        Effect.CUTS: f"{earlier}, cut off, worked past its lease",
        Effect.SLOWS: f"{earlier}, slowed down, worked past its lease",
        Effect.ENDS: f"{earlier} was killed, and its last write came past its lease",
        Effect.SKEWS: f"{earlier}, its clock wrong, worked past its lease",
    }
    worked = f"{earlier} worked past its lease"
    return suffered.get(fault.effect, worked) if fault and fault.effect else worked


def _damage(judgement: Judgement, worst: Incident, counted: Sequence[Incident]) -> str:
    counts = judgement.counts
    found = sum(len(i.of(Code.LOST_UPDATE)) for i in counted)
    lost, of = counts.updates_lost or found, counts.updates_acknowledged
    late = {identity(write) for i in counted for write in i.stale}
    gone = {identity(write) for i in counted for loss in i.losses for write in loss.lost}
    if late and gone == late:  # a late write that was overwritten itself: nothing else is gone
        lost = 0
    if lost == 1 and len(worst.losses) == 1 and len(worst.losses[0].lost) == 1:
        [loss] = worst.losses
        return f"{plain(loss.overwriting.node)} overwrote {plain(loss.lost[0].node)}'s write"
    if lost:
        which = f"{lost:,} of {of:,} writes" if of else amount(lost, "write")
        return f"{which} lost"
    if late:
        [one, *others] = (write for i in counted for write in i.stale)
        if worst.main.blame.who is Culprit.SERVICE and not others:  # it was in its lease
            return f"{plain(one.node)} still wrote"
        writes = f"{len(late):,} late writes" if others else f"{plain(one.node)}'s late write"
        return f"the storage took {writes}"
    if by_evidence(worst.main):
        return ""
    return UNHARMED if counts.writes_accepted else ""


# --- no violation --------------------------------------------------------------------------------


def _ok(history: History, judgement: Judgement) -> str:
    if not about_locks(history, judgement):
        return f"All {amount(judgement.counts.operations, 'answer')} fit together."
    if refused := _refused(history, judgement):
        guard = guard_name(history.terms)
        if history.terms.guard == TRANSACTION:
            late = amount(refused, "late change")
            return f"Safe only because of {guard}: {late} did not happen."
        which = "the one late write" if refused == 1 else f"all {refused:,} late writes"
        if judgement.of(Code.STALE_WRITE):  # compare-and-set lets in what overwrites nothing
            which = amount(refused, "late write")
        return f"Safe only because of {guard}: it refused {which}."
    done = injected(history, judgement)
    under = f", under {done}" if done and len(done.split()) < 10 else ", under these faults"
    if not done:  # of a log it is not known
        under = ", without any disturbance" if history.terms.backend else ""
    if not history.terms.excludes:
        kept = "no acknowledged change was lost"
    elif history.terms.permits > 1:
        kept = f"no more than {history.terms.permits} clients held the lock at once"
    else:
        kept = "no two clients held the lock at once"
    return f"{upper_first(kept)}{under}."


def _unknown(history: History, judgement: Judgement) -> str:
    if judgement.doubts:
        first = next(iter(in_words(judgement)))
        if len(first.split()) <= MOST_WORDS:
            return sentence(first)
    what = "the lock is safe" if about_locks(history, judgement) else "the answers are right"
    return f"This run cannot tell whether {what}."
