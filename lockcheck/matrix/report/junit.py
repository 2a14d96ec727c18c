"""JUnit XML of a campaign: a test case for each trial, for each cell that is judged by a share of
its trials, and for each threshold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from lockcheck import __version__
from lockcheck.matrix.campaign import Campaign, Threshold
from lockcheck.matrix.model import Standing
from lockcheck.matrix.report.lines import CellLine, TrialLine, cell_lines

THRESHOLDS = "thresholds"  # their class name
# What XML 1.0 has no way to hold, escaped or not.
_NO_CHARACTERS = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(campaign: Campaign) -> str:
    lines = cell_lines(campaign)
    cases = [_of_trial(trial) for line in lines for trial in line.trials]
    cases += [_of_share(line) for line in lines if line.by_share]
    cases += map(_of_threshold, campaign.thresholds)
    suite = ET.Element(
        "testsuite",
        name=_text(campaign.name),
        timestamp=campaign.started.isoformat(timespec="seconds"),
        time=f"{campaign.seconds:.3f}",
        tests=str(len(cases)),
        failures=_number(cases, "failure"),
        errors=_number(cases, "error"),
        skipped=_number(cases, "skipped"),
    )
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="lockcheck version", value=__version__)
    suite.extend(cases)
    if campaign.blind:
        ET.SubElement(suite, "system-out").text = _text("\n".join(campaign.blind))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return f"{xml.decode()}\n"


def _number(cases: list[ET.Element], kind: str) -> str:
    return str(sum(case.find(kind) is not None for case in cases))


def _of_trial(trial: TrialLine) -> ET.Element:
    result = trial.result
    case = _case(result.cell, result.trial, result.seconds)
    if trial.standing in (Standing.VIOLATION, Standing.MISSED):
        _add(case, "failure", trial.why, _story(trial), trial.standing)
    elif trial.standing is Standing.ERROR:
        _add(case, "error", trial.why, _story(trial))
    elif trial.standing is Standing.UNKNOWN:
        _add(case, "skipped", " ".join(result.doubts) or trial.why)
    ET.SubElement(case, "system-out").text = _text("\n".join(_output(trial)))
    return case


def _of_share(line: CellLine) -> ET.Element:
    """The share itself: each trial alone is as expected, whatever came."""
    case = _case(line.id, f"{line.id}: {line.expected}", 0)
    if line.standing in (Standing.VIOLATION, Standing.MISSED):
        story = _story(line.telling) if line.telling else line.why
        _add(case, "failure", line.why, story, line.standing)
    elif not line.outcome.known:
        _add(case, "skipped", f"{line.share}: {line.came}")
    ET.SubElement(case, "system-out").text = _text(f"{line.share}, {line.interval}")
    return case


def _of_threshold(threshold: Threshold) -> ET.Element:
    case = _case(THRESHOLDS, threshold.text, 0)
    if threshold.held is None:
        _add(case, "skipped", threshold.measured or "there was nothing to measure")
    elif not threshold.held:
        _add(case, "failure", f"{threshold.text}: {threshold.measured}", threshold.measured)
    return case


def _case(of: str, name: str, seconds: float) -> ET.Element:
    return ET.Element("testcase", classname=_text(of), name=_text(name), time=f"{seconds:.3f}")


def _add(case: ET.Element, kind: str, message: str, story: str = "", type_: str = "") -> None:
    about = {"message": _text(message), **({"type": type_} if type_ else {})}
    ET.SubElement(case, kind, about).text = _text(story)


def _story(trial: TrialLine) -> str:
    result = trial.result
    parts = (
        trial.why,
        f"Whose fault: {result.whose}" if result.whose else "",
        *(result.doubts if trial.standing is not Standing.UNKNOWN else ()),
        f"Run it again: {result.rerun}" if result.rerun else "",
        f"Its page: {result.report}" if result.report else "",
    )
    return "\n".join(filter(None, parts))


def _output(trial: TrialLine) -> Iterator[str]:
    result = trial.result
    yield result.headline or trial.why
    yield from (f"{name.replace('_', ' ')}: {number:,}" for name, number in result.counts.items())
    yield from (f"fault {kind}: {number:,} times" for kind, number in result.faults.items())
    if result.ungranted_ms is not None:
        yield f"longest time without a grant: {result.ungranted_ms:,.0f} ms"
    if result.report:
        yield f"page: {result.report}"


def _text(text: str) -> str:
    return _NO_CHARACTERS.sub("", text)
