"""What was to be expected, and what happened instead: one line each."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Culprit
from lockcheck.results.story.incidents import Incident, crossed, lease_end_ns
from lockcheck.results.story.wording.codes import by_evidence
from lockcheck.results.story.wording.titles import first_release
from lockcheck.words import moment, node_of, plain, span


@dataclass(frozen=True, slots=True)
class Contrast:
    expected: str
    happened: str


def contrast_of(incident: Incident) -> Contrast | None:
    """None: the incident's own words say it already."""
    main, key = incident.main, _lock(incident)
    if incident.foreign_releases:
        releaser, victim = first_release(incident)
        at = moment(incident.foreign_releases[0].last_ns)
        return Contrast(
            f"Only {victim} deletes {key} while it holds it.",
            f"{releaser} deleted it at {at}.",
        )
    if by_evidence(main) or len(main.holds) < 2 or incident.crowd:
        return None
    return _of_two(incident, node_of(main.holds, 0, ""), node_of(main.holds, 1, ""))


def _lock(incident: Incident) -> str:
    return f'the lock "{plain(incident.key)}"' if incident.key else "the lock"


def _of_two(incident: Incident, earlier: str, later: str) -> Contrast | None:
    main, key, blame = incident.main, _lock(incident), incident.main.blame
    granted, until_ns = moment(main.holds[1].start_ns), lease_end_ns(main)
    if blame.who is Culprit.SERVICE and crossed(main):
        first, second = sorted((hold.start_ns, plain(hold.node)) for hold in main.holds[:2])
        return Contrast(
            f"One client at a time holds {key}.",
            f"{first[1]} got it at {moment(first[0])}, and {second[1]} at {moment(second[0])}.",
        )
    if blame.who is Culprit.SERVICE and until_ns is None:
        return Contrast(
            f"{earlier} alone holds {key} until it releases it.", f"{later} got it at {granted}."
        )
    if until_ns is None:
        return None
    if blame.who is Culprit.SERVICE:
        return Contrast(
            f"{earlier} alone holds {key} until its lease ends, at {moment(until_ns)}.",
            f"{later} got it at {granted}: {span(blame.by_ns)} too early.",
        )
    if blame.who is not Culprit.HOLDER:
        return None
    return _of_a_late_one(incident, earlier, later, until_ns)


def _of_a_late_one(incident: Incident, earlier: str, later: str, until_ns: int) -> Contrast:
    """Of a write, what is expected is what the storage can do; a paused client can do nothing."""
    granted, end = moment(incident.main.holds[1].start_ns), moment(until_ns)
    harmful = [*incident.stale, *(loss.overwriting for loss in incident.losses)]
    own = [write for write in harmful if plain(write.node) == earlier]
    if own:
        return Contrast(
            f"No write of {earlier} is accepted after its lease has ended, at {end}.",
            f"{later} got the lock at {granted}; {earlier}'s write at {moment(own[0].last_ns)} was "
            "accepted.",
        )
    return Contrast(
        f"{earlier} holds {_lock(incident)} no longer than its lease, until {end}.",
        f"{later} got it at {granted}, and {earlier} still took itself for the holder.",
    )
