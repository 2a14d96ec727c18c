"""What was to be expected, and what happened instead: one line each."""

from __future__ import annotations

from dataclasses import dataclass

from lockcheck.checker.finding import Culprit
from lockcheck.results.story.incidents import Incident, lease_end_ns
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
    if blame.who is Culprit.HOLDER:
        return Contrast(
            f"{earlier} stops by the end of its lease, at {moment(until_ns)}.",
            f"{earlier} believed in it for {span(blame.by_ns)} more; "
            f"{later} was granted it at {granted}.",
        )
    return None
