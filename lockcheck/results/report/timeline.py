"""The history as the timeline's script reads it: columns instead of objects, times in µs.

A column repeats no names, so ten thousand operations take well below a megabyte. Texts that occur
often (marks, reasons) are stored once and referred to by their number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Code, Judgement, Verdict
from lockcheck.history import Ending, History, Hold
from lockcheck.results.report.columns import Table, append, or_none, safe_in_script, us
from lockcheck.results.report.marks import KINDS, evidence, marks, tries
from lockcheck.results.report.sheet import LONGEST_TEXT, MOST_MARKS, Sheet, faults_drawn, places
from lockcheck.results.story.incidents import Incident
from lockcheck.results.story.narrative import Narrative
from lockcheck.results.story.picture import MEANINGS, picture_of
from lockcheck.results.story.seen import last_moment_ns
from lockcheck.results.story.steps.cuts import cut_apart
from lockcheck.results.story.wording.acts import upon
from lockcheck.words import fault_name, plain, span

MOST_ROWS_PER_LANE = 4
MOST_LABELLED = 20  # incidents

_ENDINGS = list(Ending)


@dataclass(frozen=True, slots=True)
class Timeline:
    json: str  # safe inside a script element, whatever the history holds
    kinds: frozenset[str]  # the kinds of marks that occur on it, for the legend
    names: tuple[str, ...]  # of its lanes


def timeline(narrative: Narrative, shown: Iterable[Incident], windows: Iterable[range]) -> Timeline:
    history, judgement = narrative.history, narrative.judgement
    sheet = Sheet(history, list(shown), list(windows))
    drawing = _Lasting(sheet, judgement)
    unseen = max(0, judgement.counts.operations - len(history.operations))
    data = {
        "end": us(last_moment_ns(history)),
        "holds": drawing.holds(),
        "marks": marks(sheet, narrative),
        "tries": tries(sheet),
        "faults": drawing.faults(),
        "quiet": or_none(history.quiet_ns),
        "stalls": drawing.stalls(),
        "overlaps": drawing.overlaps(),
        "evidence": evidence(sheet),
        "findings": list(_findings(sheet, narrative)),
        "operations": len(history.operations) + unseen,
        "omitted": sheet.omitted + unseen,
        "hidden": sheet.hidden,
        "unfolded": sheet.unfolded,
        "endings": [ending.value for ending in _ENDINGS],
        # last: the tables above number what they mention
        "lanes": sheet.described(),
        "keys": sheet.keys.texts,
        "texts": sheet.texts.texts,
    }
    json = safe_in_script(msgspec.json.encode(data).decode())
    return Timeline(json, frozenset(_kinds(history, sheet.incidents, data)), tuple(sheet.lanes))


def _findings(sheet: Sheet, narrative: Narrative) -> Iterator[dict[str, object]]:
    drawn = {fault.id: number for number, fault in enumerate(faults_drawn(sheet))}
    for number, (incident, window) in enumerate(zip(sheet.incidents, sheet.windows, strict=True)):
        nodes = {hold.node for hold in incident.holds}
        nodes |= {o.node for finding in incident.findings for o in finding.operations}
        fault = incident.main.blame.fault
        labelled = number < MOST_LABELLED
        yield {
            "from": us(window.start),
            "to": us(window.stop),
            "at": us(incident.start_ns),
            "key": sheet.key(incident.main.key),
            "effect": incident.effect.value,
            "lanes": sorted(sheet.lanes[node] for node in nodes if node in sheet.lanes),
            "fault": drawn.get(fault.id, -1) if fault else -1,
            "flags": list(_flags(sheet, narrative.case, incident)) if labelled else [],
        }


def _flags(sheet: Sheet, case: Case, incident: Incident) -> Iterator[dict[str, object]]:
    """The words at the marks of the incident's small picture; for the end of a lease that its
    holder did not notice, what it believed then."""
    picture = picture_of(case, incident)
    if picture is None:
        return
    for lane in picture.lanes:
        late = any(bar.kind == "after" for bar in lane.bars)
        for mark in lane.marks if lane.node in sheet.lanes else ():
            after = late and mark.kind == "lease"
            outside = not picture.start_ns <= mark.ns <= picture.end_ns
            if mark.kind == "fault" or (outside and not after):
                continue
            yield {
                "lane": sheet.lanes[lane.node],
                "at": us(mark.ns),
                "kind": "after" if after else mark.kind,
                "text": MEANINGS["after"] if after else plain(mark.text, LONGEST_TEXT),
            }


def _kinds(
    history: History, incidents: Sequence[Incident], data: Mapping[str, Any]
) -> Iterator[str]:
    yield from (KINDS[state] for state in data["marks"]["state"])
    yield from _kinds_of_holds(data["holds"])
    yield from ("overlap" if counts else "harmless" for counts in data["overlaps"]["counts"])
    yield from ("violation" if i.effect is Verdict.VIOLATION else "no violation" for i in incidents)
    proven = [fault.proven_ns is not None for fault in history.faults]
    occurs = {
        "fault": any(proven),
        "proven": any(proven),
        "unproven": not all(proven),
        "try": data["tries"]["lane"],
        "quiet": history.quiet_ns is not None,
        "stall": data["stalls"],
        "flight": any(end >= 0 for end in data["marks"]["end"]),
        "evidence": any(incident.with_evidence for incident in incidents),
        "open": any(end < 0 for end in data["evidence"]["end"]),
        "cursor": incidents,
    }
    yield from (kind for kind, there in occurs.items() if there)


def _kinds_of_holds(holds: Table) -> set[str]:
    leases = [
        end - until for end, until in zip(holds["end"], holds["until"], strict=True) if until >= 0
    ]
    kinds = {"shared" if shared else "hold" for shared in holds["shared"]}
    kinds |= {"asking"} if kinds else set()
    if any(over > 0 for over in leases):
        kinds |= {"outlived", "lease"}
    return kinds


class _Lasting:
    """Whatever has a length: holds, faults, stalls, and overlaps of holds."""

    def __init__(self, sheet: Sheet, judgement: Judgement) -> None:
        self.sheet = sheet
        self.judgement = judgement
        self.history = sheet.history
        self._end_ns = last_moment_ns(sheet.history)

    def holds(self) -> Table:
        names = (
            *("lane", "row", "key", "op", "release", "asked", "start", "end"),
            *("until", "gone", "token", "shared", "how"),
        )
        table: Table = {name: [] for name in names}
        busy: dict[str, list[int]] = {}
        drawn = [hold for hold in self.history.holds if hold.node in self.sheet.lanes]
        for hold in self.sheet.choose(drawn, lambda hold: hold.start_ns):
            release = hold.release
            gone = hold.end_ns if release is None else (release.end_ns or self._end_ns)
            values = (
                self.sheet.lanes[hold.node],
                self._row(hold, busy.setdefault(hold.node, [])),
                self.sheet.key(hold.key),
                self.sheet.number(hold.acquire),
                self.sheet.number(release),
                us(hold.acquire.start_ns),
                us(hold.start_ns),
                us(hold.end_ns),
                or_none(self.judgement.case.attribution.promises.in_all_ns(hold)),
                us(gone),
                -1 if hold.token is None else hold.token,
                int(hold.shared),
                _ENDINGS.index(hold.ending),
            )
            append(table, names, values)
        return table

    def _row(self, hold: Hold, busy_until: list[int]) -> int:
        """Holds of several locks at once are drawn below each other in the lane of their node."""
        for row, until_ns in enumerate(busy_until):
            if until_ns <= hold.start_ns:
                busy_until[row] = hold.end_ns
                return row
        if len(busy_until) == MOST_ROWS_PER_LANE:
            return MOST_ROWS_PER_LANE - 1
        busy_until.append(hold.end_ns)
        self.sheet.rows[hold.node] = len(busy_until)
        return len(busy_until) - 1

    def faults(self) -> list[dict[str, object]]:
        lanes, idle = self.sheet.lanes, {fault.id for fault in self.judgement.not_exercised}
        return [
            {
                "lanes": drawn_in,
                "name": plain(fault.name, 24),
                "title": fault_name(fault),
                "upon": plain(upon(fault), LONGEST_TEXT),
                "apart": cut_apart(fault),
                "when": plain(fault.waited_for, 40),
                "felt": fault.id not in idle,
                "start": us(fault.start_ns),
                "since": us(fault.worked_from_ns),
                "proven": or_none(fault.proven_ns),
                "healed": or_none(fault.healed_ns),
                "proof": plain(fault.proof or fault.why_unproven, 160),
            }
            for fault in faults_drawn(self.sheet)
            if (drawn_in := [lanes[node] for node in places(fault) if node in lanes])
        ]

    def stalls(self) -> list[dict[str, object]]:
        return [
            {
                "lane": self.sheet.lanes[stall.node],
                "start": us(max(0, stall.start_ns)),
                "end": us(stall.end_ns),
                "long": span(stall.end_ns - stall.start_ns),
            }
            for stall in self.sheet.stalls[:MOST_MARKS]
            if stall.node in self.sheet.lanes
        ]

    def overlaps(self) -> Table:
        names = ("key", "first", "second", "start", "end", "counts")
        table: Table = {name: [] for name in names}
        overlaps = [f for f in self.judgement.of(Code.OVERLAP) if len(f.holds) > 1]
        for finding in overlaps[:MOST_MARKS]:
            first, second = finding.holds[:2]
            if not {first.node, second.node} <= self.sheet.lanes.keys():
                continue
            start_ns = max(hold.start_ns for hold in finding.holds)
            end_ns = max(start_ns, min(hold.end_ns for hold in finding.holds))
            values = (
                self.sheet.key(finding.key),
                self.sheet.lanes[first.node],
                self.sheet.lanes[second.node],
                us(start_ns),
                us(end_ns),
                int(finding.effect.value == "violation"),
            )
            append(table, names, values)
        return table
