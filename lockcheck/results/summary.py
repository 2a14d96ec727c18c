"""A verdict for programs: verdict.json, and what `--json` prints.

Its fields are in docs/verdicts.md. `schema` is raised when one goes or changes its meaning, and not
when one is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from lockcheck.checker.doubt import Clocks, DoubtCode
from lockcheck.checker.finding import Definition, Finding, Freed, Ungranted
from lockcheck.history import FaultSpan, Hold, Operation
from lockcheck.history.event import NS_PER_MS
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.narrative import Narrative, Story
from lockcheck.results.story.seen import why_idle
from lockcheck.results.story.steps.step import Step
from lockcheck.results.story.wording.codes import in_full, note
from lockcheck.results.story.wording.definitions import comparison
from lockcheck.results.story.wording.doubts import in_words
from lockcheck.results.story.wording.settling import settled_by
from lockcheck.words import by_its_clock

SCHEMA = 1
MOST_INCIDENTS = 20
MOST_EVIDENCE = 50  # holds and operations of one finding; the history has them all


class HoldSummary(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    process: int | str
    key: str
    start_ms: float
    end_ms: float
    token: int | None


class OperationSummary(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    process: int | str
    f: str
    key: str
    start_ms: float
    end_ms: float | None  # None: not answered, so it may have taken effect at any time or never
    outcome: str


class FindingSummary(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    effect: str
    key: str
    nodes: tuple[str, ...]
    at_ms: float
    at: str  # the same as date and time, by the clock of the log; empty: unknown
    length_ms: float
    blame: str
    by_ms: float
    fault: str | None
    note: str
    steps: tuple[str, ...]
    holds: tuple[HoldSummary, ...]
    operations: tuple[OperationSummary, ...]  # the first of them, where they are many


class FreedSummary(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    node: str
    effect: str  # of the fault: `ends` or `cuts`
    ended_ms: float  # when that worked
    after_ms: float | None  # None: no other client was granted it


class UngrantedSummary(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    at_ms: float
    length_ms: float


class FaultSummary(msgspec.Struct, frozen=True, kw_only=True):
    fault: str  # `pause of c3`
    effect: str | None
    at_ms: float
    why: str


class StepSummary(msgspec.Struct, frozen=True, kw_only=True):
    at_ms: float
    who: str
    what: str
    kind: str


class IncidentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Findings with one cause, as the report shows them."""

    title: str
    effect: str
    outcome: str  # `data damaged`, `violation`, `guard stopped it` ...
    at_ms: float
    codes: dict[str, int]  # how many findings there are of each
    harm: tuple[str, ...]
    steps: tuple[StepSummary, ...]
    blame: str
    prevention: str
    advice: tuple[str, ...]  # the same in at most three steps


class AheadSummary(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    least_ms: float  # negative: behind
    most_ms: float


class ClocksSummary(msgspec.Struct, frozen=True, kw_only=True):
    apart_ms: float | None  # that explains everything; None: no constant below a second does
    ahead: tuple[AheadSummary, ...]


class VerdictSummary(msgspec.Struct, frozen=True, kw_only=True):
    schema: int
    verdict: str
    level: str  # the verdict, or "OK only with the guard"
    headline: str  # the main point: at most twenty words
    detail: str  # the same in a few sentences, with the numbers
    whose: str  # fault it was, in a few words; empty where nothing went wrong
    why: str  # the same in a sentence
    did: str  # what lockcheck did, where that is a part of it
    incidents: tuple[IncidentSummary, ...]  # the worst of them
    incidents_in_all: int
    findings: tuple[FindingSummary, ...]
    doubts: tuple[str, ...]
    doubt_codes: tuple[DoubtCode, ...]  # of each of them
    counts: object
    definitions: object  # as they are in `checker.finding`, as `counts` are
    settled_by: str = ""  # what would settle an `unknown`, where its doubts do not say so
    problem: str = ""
    cut: str = ""  # why there is more to find than is listed
    freed: tuple[FreedSummary, ...] = ()  # how soon a lock was free again after its holder was gone
    ungranted: UngrantedSummary | None = None  # the longest time without a grant
    not_exercised: tuple[FaultSummary, ...] = ()  # faults that were proven and had no effect
    clocks: ClocksSummary | None = None  # what differences of the hosts' clocks explain


def verdict_summary(narrative: Narrative, problem: str = "") -> VerdictSummary:
    judgement = narrative.judgement
    doubts = in_words(judgement)
    return VerdictSummary(
        schema=SCHEMA,
        verdict=judgement.verdict,
        level=narrative.point.level,
        headline=_text(narrative.headline),
        detail=_text(narrative.detail),
        whose=_text(narrative.point.whose),
        why=_text(narrative.point.why),
        did=_text(narrative.point.did),
        incidents=tuple(_incident(*each) for each in narrative.stories(MOST_INCIDENTS)),
        incidents_in_all=len(narrative.incidents),
        findings=tuple(_summaries(judgement.findings, judgement.began_ns)),
        doubts=_writable(doubts),
        doubt_codes=tuple(doubt.code for doubt in doubts.values()),
        counts=msgspec.to_builtins(judgement.counts),
        definitions=[_definition(each) for each in judgement.definitions],
        settled_by=settled_by(judgement),
        problem=problem,
        cut=judgement.cut,
        freed=tuple(map(_freed, judgement.freed)),
        ungranted=None if judgement.ungranted is None else _ungranted(judgement.ungranted),
        not_exercised=tuple(map(_not_exercised, judgement.not_exercised)),
        clocks=None if judgement.clocks is None else _clocks(judgement.clocks),
    )


def _incident(incident: Incident, story: Story) -> IncidentSummary:
    return IncidentSummary(
        title=_text(story.title),
        effect=incident.effect,
        outcome=story.badge,
        at_ms=_ms(incident.start_ns),
        codes=Counter(str(finding.code) for finding in incident.findings),
        harm=_writable(story.harm),
        steps=tuple(_step(step) for step in story.steps),
        blame=_text(story.blame),
        prevention=_text(story.prevention),
        advice=tuple(map(_text, story.advice)),
    )


def _step(step: Step) -> StepSummary:
    what = _text(step.text)
    return StepSummary(at_ms=_ms(step.time_ns), who=_text(step.who), what=what, kind=step.kind)


def _not_exercised(fault: FaultSpan) -> FaultSummary:
    return FaultSummary(
        fault=_fault(fault),
        effect=fault.effect,
        at_ms=_ms(fault.worked_from_ns),
        why=why_idle(fault),
    )


def _clocks(clocks: Clocks) -> ClocksSummary:
    ahead = (
        AheadSummary(node=_text(c.node), least_ms=_ms(c.least_ns), most_ms=_ms(c.most_ns))
        for c in clocks.ahead
    )
    apart_ms = None if clocks.apart_ns is None else _ms(clocks.apart_ns)
    return ClocksSummary(apart_ms=apart_ms, ahead=tuple(ahead))


def _ungranted(longest: Ungranted) -> UngrantedSummary:
    return UngrantedSummary(
        key=_text(longest.key), at_ms=_ms(longest.since_ns), length_ms=_ms(longest.length_ns)
    )


def _freed(freed: Freed) -> FreedSummary:
    return FreedSummary(
        key=_text(freed.key),
        node=_text(freed.node),
        effect=freed.effect,
        ended_ms=_ms(freed.ended_ns),
        after_ms=None if freed.after_ns is None else _ms(freed.after_ns),
    )


def _summaries(findings: Iterable[Finding], began_ns: int) -> Iterable[FindingSummary]:
    for finding in findings:
        blame = finding.blame
        yield FindingSummary(
            code=finding.code,
            effect=finding.effect,
            key=_text(finding.key),
            nodes=_writable(_nodes(finding)),
            at_ms=_ms(finding.time_ns),
            at=by_its_clock(began_ns, finding.time_ns) if began_ns else "",
            length_ms=_ms(finding.length_ns),
            blame=blame.who,
            by_ms=_ms(blame.by_ns),
            fault=_fault(blame.fault) if blame.fault else None,
            note=_text(note(finding)),
            steps=_writable(in_full(finding)),
            holds=tuple(map(_hold, finding.holds[:MOST_EVIDENCE])),
            operations=tuple(map(_operation, finding.operations[:MOST_EVIDENCE])),
        )


def _fault(fault: FaultSpan) -> str:
    return _text(f"{fault.name} of {fault.where}" if fault.nodes else fault.name)


def _nodes(finding: Finding) -> tuple[str, ...]:
    """The holders, in the order of their holds; without holds, the nodes in evidence."""
    holders = tuple(hold.node for hold in finding.holds)
    return holders or tuple(dict.fromkeys(o.node for o in finding.operations))[:MOST_EVIDENCE]


def _hold(hold: Hold) -> HoldSummary:
    return HoldSummary(
        node=_text(hold.node),
        process=_process(hold),
        key=_text(hold.key),
        start_ms=_ms(hold.start_ns),
        end_ms=_ms(hold.end_ns),
        token=hold.token,
    )


def _operation(operation: Operation) -> OperationSummary:
    end_ns, answer = operation.end_ns, operation.answer
    return OperationSummary(
        node=_text(operation.node),
        process=_process(operation),
        f=_text(operation.f),
        key=_text(operation.key),
        start_ms=_ms(operation.start_ns),
        end_ms=None if end_ns is None else _ms(end_ns),
        outcome="none" if answer is None else answer.type.value,
    )


def _definition(definition: Definition) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(definition)
    del fields["reason"]
    fields["sentence"] = comparison(definition)
    return {name: _text(v) if isinstance(v, str) else v for name, v in fields.items()}


def _process(of: Hold | Operation) -> int | str:
    return of.process if isinstance(of.process, int) else _text(of.process)


def _text(text: str) -> str:
    """Replaces halves of surrogate pairs, which text from outside may have and JSON cannot."""
    return text.encode("utf-8", "replace").decode()


def _writable(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_text, texts))


def _ms(ns: int) -> float:
    return round(ns / NS_PER_MS, 3)
