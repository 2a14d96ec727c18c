"""An incident's small picture, drawn as SVG: no script, so it prints."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup, escape

from lockcheck.results.story.picture import Lane, Picture

WIDTH, NAMES, RIGHT = 960, 150, 12
LANE, BAR, TOP = 46, 14, 6
SHORTEST = 3.0  # a hold that was over at once is still to be seen
TURNS = 0.6  # texts of marks further right stand before them
CHARACTER = 6.4  # about the width of one


def svg(picture: Picture) -> Markup:
    height = TOP + LANE * len(picture.lanes)
    lanes = "".join("".join(_lane(lane, TOP + LANE * n)) for n, lane in enumerate(picture.lanes))
    words = "; ".join(_in_words(lane) for lane in picture.lanes)
    return Markup(  # noqa: S704 - all text in it is escaped
        f'<svg class="picture" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="'
        f'{escape(words)}">{_taken(picture)}{lanes}</svg>'
    )


def _x(share: float) -> float:
    return round(NAMES + share * (WIDTH - NAMES - RIGHT), 1)


def _lane(lane: Lane, top: int) -> Iterator[str]:
    middle = top + LANE // 2 + 4
    yield f'<text class="p-name" x="0" y="{middle + 4}">{escape(lane.name[:22])}</text>'
    yield f'<path class="p-line" d="M{NAMES} {middle}H{WIDTH - RIGHT}"/>'
    for bar in sorted(lane.bars, key=lambda bar: bar.kind != "fault"):  # behind the others
        start, end = _x(bar.start), _x(bar.end)
        high = LANE - 12 if bar.kind == "fault" else BAR
        yield (
            f'<rect class="p-{bar.kind}" x="{start}" y="{middle - high / 2}" '
            f'width="{max(SHORTEST, end - start):.1f}" height="{high}" rx="2"/>'
        )
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
    x, one, other = _x(picture.taken_at), TOP + LANE * 1.5 - 6, TOP + LANE / 2 + 14
    back = 6
    if picture.deleted:
        one, other, back = other, one, -back
    head = f"M{x - 4} {other + back}L{x} {other}L{x + 4} {other + back}"
    return f'<path class="p-took" d="M{x} {one}V{other}"/><path class="p-took" d="{head}"/>'


def _in_words(lane: Lane) -> str:
    return f"{lane.name}: {', '.join(mark.text for mark in lane.marks) or 'held the lock'}"
