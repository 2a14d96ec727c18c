"""An incident's small picture in characters, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.results.story.picture import Lane, Picture

NAMES, WIDE = 18, 58
TURNS = 0.6  # texts of marks further right stand before them
BARS = {"hold": "━", "after": "╍", "fault": "░", "gap": "·"}


def lines_of_picture(picture: Picture) -> list[str]:
    lanes = [line for lane in picture.lanes for line in _lane(lane)]
    drawn = set("".join(lanes))  # a bar may be wholly behind another
    known = ((BARS[kind], meaning) for kind, meaning in picture.key)
    key = "   ".join(f"{bar} {meaning}" for bar, meaning in known if bar in drawn)
    return [*lanes, _axis(picture), key]


def _axis(picture: Picture) -> str:
    line = ""
    for share, text in picture.ticks:
        begins = min(_at(share), WIDE - len(text))
        if begins > len(line) or not line:
            line = f"{line:<{begins}}{text}"
    return f"{' ' * NAMES}{line}"


def _lane(lane: Lane) -> Iterator[str]:
    line = [" "] * WIDE
    for bar in sorted(lane.bars, key=lambda bar: bar.kind != "fault"):
        start, end = _at(bar.start), _at(bar.end)
        line[start : end + 1] = BARS[bar.kind] * (end + 1 - start)
    for mark in lane.marks:
        line[_at(mark.at)] = "┃"
    yield f"{lane.name[: NAMES - 2]:<{NAMES}}{''.join(line)}".rstrip()
    words = ""
    for mark in sorted(lane.marks, key=lambda mark: mark.at):
        at, before = _at(mark.at), mark.at > TURNS
        text = f"{mark.text} ┘" if before else f"└ {mark.text}"
        begins = at + 1 - len(text) if before else at
        if words and begins <= len(words):  # it goes on a line of its own
            yield " " * NAMES + words
            words = ""
        words = f"{words:<{max(0, begins)}}{text}"
    if words:
        yield " " * NAMES + words


def _at(share: float) -> int:
    return min(WIDE - 1, round(share * (WIDE - 1)))
