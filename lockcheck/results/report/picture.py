"""The small picture of the first screen, drawn as SVG: no script, so it prints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from markupsafe import Markup, escape

from lockcheck.results.story.picture import Lane, Picture

WIDTH, NAMES, RIGHT = 960, 150, 12
TOP, AXIS, KEY = 6, 22, 20
LANE, BELOW = 46, 19  # the height of a lane of an incident, and of what is below its middle
NAMED, PLAIN, HALF = 40, 24, 12  # the same of a whole run: lanes with words and without
BAR, THIN = 14, 10
SHORTEST, THINNEST = 3.0, 0.8  # what was over at once is still to be seen
TURNS = 0.6  # texts of marks further right stand before them
LAST_TICK = 0.97  # there is no room for the text of a later one
CHARACTER = 6.4  # about the width of one


def svg(picture: Picture) -> Markup:
    *tops, bottom = accumulate((_height(picture, lane) for lane in picture.lanes), initial=TOP)
    lanes = zip(picture.lanes, tops, strict=True)
    drawn = "".join(part for lane, top in lanes for part in _lane(picture, lane, top))
    words = "; ".join(_in_words(lane) for lane in picture.lanes)
    return Markup(  # noqa: S704 - all text in it is escaped
        f'<svg class="picture" viewBox="0 0 {WIDTH} {bottom + AXIS + KEY}" role="img" '
        f'aria-label="{escape(words)}">{_axis(picture, bottom)}{_taken(picture)}{drawn}'
        f"{_key(picture, bottom + AXIS)}</svg>"
    )


def _x(share: float) -> float:
    return round(NAMES + share * (WIDTH - NAMES - RIGHT), 1)


def _height(picture: Picture, lane: Lane) -> int:
    if picture.taken_at is not None:
        return LANE
    return NAMED if lane.marks else PLAIN


def _lane(picture: Picture, lane: Lane, top: int) -> Iterator[str]:
    whole = picture.taken_at is None
    middle = top + _height(picture, lane) - (HALF if whole else BELOW)
    thick, shortest = (THIN, THINNEST) if whole else (BAR, SHORTEST)
    yield f'<text class="p-name" x="0" y="{middle + 4}">{escape(lane.name[:22])}</text>'
    yield f'<path class="p-line" d="M{NAMES} {middle}H{WIDTH - RIGHT}"/>'
    for bar in sorted(lane.bars, key=lambda bar: bar.kind != "fault"):  # behind the others
        start, end = _x(bar.start), _x(bar.end)
        tall = (PLAIN - 4 if whole else LANE - 12) if bar.kind == "fault" else thick
        yield (
            f'<rect class="p-{bar.kind}" x="{start}" y="{middle - tall / 2}" '
            f'width="{max(shortest, end - start):.1f}" height="{tall}" rx="2"/>'
        )
    yield from _marks(lane, middle)


def _marks(lane: Lane, middle: int) -> Iterator[str]:
    below = -1.0
    for mark in sorted(lane.marks, key=lambda mark: mark.at):
        x, left = _x(mark.at), mark.at <= TURNS
        long = CHARACTER * len(mark.text)
        begins = x + 5 if left else x - 5 - long
        high = begins >= below
        below = max(below, begins + long + 8) if high else below
        y = middle - BAR / 2 - 4 if high else middle + BAR / 2 + 12
        anchor = "start" if left else "end"
        yield f'<path class="p-mark p-{mark.kind}" d="M{x} {middle - 12}v24"/>'
        yield (
            f'<text class="p-text p-{mark.kind}" x="{x + 5 if left else x - 5}" y="{y}" '
            f'text-anchor="{anchor}">{escape(mark.text)}</text>'
        )


def _taken(picture: Picture) -> str:
    """From who took the lock to who lost it."""
    if picture.taken_at is None:
        return ""
    x, one, other = _x(picture.taken_at), TOP + LANE * 1.5 - 6, TOP + LANE / 2 + 14
    back = 6
    if picture.deleted:
        one, other, back = other, one, -back
    head = f"M{x - 4} {other + back}L{x} {other}L{x + 4} {other + back}"
    return f'<path class="p-took" d="M{x} {one}V{other}"/><path class="p-took" d="{head}"/>'


def _axis(picture: Picture, bottom: int) -> str:
    return "".join(
        f'<path class="p-line" d="M{_x(share)} {TOP}V{bottom}"/>'
        f'<text class="p-note" x="{_x(share)}" y="{bottom + 14}" text-anchor="middle">{text}</text>'
        for share, text in picture.ticks
        if share < LAST_TICK
    )


def _key(picture: Picture, top: int) -> str:
    parts, x = [], float(NAMES)
    for kind, meaning in picture.key:
        parts.append(
            f'<rect class="p-{kind}" x="{x:.1f}" y="{top + 4}" width="22" height="10" rx="2"/>'
            f'<text class="p-note" x="{x + 28:.1f}" y="{top + 13}">{meaning}</text>'
        )
        x += 28 + CHARACTER * len(meaning) + 24
    return "".join(parts)


def _in_words(lane: Lane) -> str:
    return f"{lane.name}: {', '.join(mark.text for mark in lane.marks) or 'held the lock'}"
