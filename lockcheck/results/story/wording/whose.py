"""Whose an incident is, for the first screen: a few words, and a sentence that says why."""

from __future__ import annotations

from lockcheck.checker.finding import Code, Culprit, Finding
from lockcheck.history import Effect, Terms
from lockcheck.results.story.incidents import Incident, begun_in_time, crossed, slept
from lockcheck.results.story.wording.codes import about_a_lock, by_evidence, what_went_wrong
from lockcheck.words import node_of, plain, sentence, span, upper_first

LIMIT = "no one's: the limit of leases"
STOPPED = frozenset({Effect.STOPS, Effect.ENDS, Effect.STARVES})


def whose(terms: Terms, incident: Incident) -> str:
    """Never a server for what stands before it; and whom lockcheck stopped is no culprit."""
    main, blame = incident.main, incident.main.blame
    if blame.who is Culprit.SERVICE:
        return _service(terms, main)
    if blame.who is Culprit.HOLDER:
        return _holder(incident)
    if blame.who is Culprit.CLIENT:
        if blame.release is not None or main.code == Code.FOREIGN_RELEASE:
            return "lock client: no owner check"
        return "client" if by_evidence(main) else "application"
    return {Culprit.STORAGE: "storage"}.get(blame.who, "not known")


def _holder(incident: Incident) -> str:
    blame = incident.main.blame
    if blame.ended_by is not None:
        return "this kind of lock"
    if blame.fault is None:
        return "application: it works for too long"
    limited = blame.fault.effect in STOPPED or begun_in_time(incident)
    return LIMIT if limited else "lock client: it did not stop"


def _service(terms: Terms, main: Finding) -> str:
    server, struck = plain(terms.server), main.blame.fault is not None
    if terms.accused:
        return plain(terms.accused) + (f" with its {server}" if server and struck else "")
    return ("lock service" if about_a_lock(main) else "server") + (f" ({server})" if server else "")


def why(terms: Terms, incident: Incident) -> str:
    """Empty: not known."""
    main, blame = incident.main, incident.main.blame
    if incident.foreign_releases or blame.release is not None:
        return "It released the lock without checking whose it was."
    if by_evidence(main):
        return sentence(what_went_wrong(main))
    match blame.who:
        case Culprit.SERVICE:
            return _let_in(main)
        case Culprit.HOLDER:
            return _outlived(terms, incident)
        case Culprit.CLIENT:
            return _wrote(main)
    return "It served an older value than it had accepted." if blame.who is Culprit.STORAGE else ""


def _wrote(main: Finding) -> str:
    if main.code == Code.LOST_UPDATE and not main.blame.by_ns:
        return "What it overwrote was there to be read under the lock."
    return f"It wrote {span(main.blame.by_ns)} after it had let go of the lock."


def _let_in(main: Finding) -> str:
    earlier, later = node_of(main.holds, 0, "a client"), node_of(main.holds, 1, "another client")
    if main.blame.promised_until_ns is None:
        if crossed(main):
            return f"It let {earlier} and {later} in at the same time."
        return f"It let {later} in before {earlier} had released the lock."
    early = f"it let {later} in while {earlier}'s lease had {span(main.blame.by_ns)} to go"
    if main.blame.fault is not None and main.blame.fault.effect is Effect.SKEWS:
        return f"It counts leases by clocks that can jump: {early}."
    return f"{upper_first(early)}."


_LATE = {
    Effect.ENDS: "What a client sent before its end can arrive after its lease has ended.",
    Effect.CUTS: "It ran all the while, and could have counted that its lease was over.",
    Effect.SLOWS: "It ran all the while, and could have counted that its lease was over.",
    Effect.SKEWS: "It counted its lease by a clock that was wrong.",
}


def _outlived(terms: Terms, incident: Incident) -> str:
    main, fault = incident.main, incident.main.blame.fault
    if main.blame.ended_by is not None:
        return f"It lasts no longer than its {plain(terms.ends_with)}, and that had ended."
    if fault is None:
        return f"Its work went on for {span(main.blame.by_ns)} after its lease had ended."
    if slept(main):
        return "A paused client cannot notice that its lease has ended."
    if begun_in_time(incident):
        return "What was sent within the lease arrived when it had ended."
    return _LATE.get(fault.effect, "") if fault.effect else ""
