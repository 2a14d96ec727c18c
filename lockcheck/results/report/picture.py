"""The small picture of the first screen, drawn as SVG: no script, so it prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from markupsafe import Markup, escape

from lockcheck.results.story.picture import Lane, Picture

TOP, AXIS, KEY = 6, 22, 20
LANE, BELOW = 46, 19  # the height of a lane of an incident, and of what is below its middle
NAMED, PLAIN, HALF = 40, 24, 12  # the same of a whole run: lanes with words and without
BAR, THIN = 14, 10
SHORTEST, THINNEST = 3.0, 0.8  # what was over at once is still to be seen
TURNS = 0.6  # texts of marks further right stand before them
LAST_TICK = 0.97  # there is no room for the text of a later one
CHARACTER = 6.4  # about the width of one
TIME = 56.0  # the width of a tick's text, with some room


def svg(picture: Picture) -> Markup:
    """Twice, for a screen and for a phone: the style shows the one that fits."""
    wide = _Drawing(picture, "wide", width=948, names=150).svg()
    narrow = _Drawing(picture, "narrow", width=388, names=104).svg()
    return Markup(wide + narrow)  # noqa: S704 - all text in it is escaped


@dataclass(frozen=True, slots=True)
class _Drawing:
    picture: Picture
    name: str
    width: int
    names: int  # the part of it that the names of the lanes take

    def svg(self) -> str:
        picture = self.picture
        *tops, bottom = accumulate(map(self._height, picture.lanes), initial=TOP)
        lanes = zip(picture.lanes, tops, strict=True)
        drawn = "".join(part for lane, top in lanes for part in self._lane(lane, top))
        words = "; ".join(map(_in_words, picture.lanes))
        key, under = self._key(bottom + AXIS)
        return (
            f'<svg class="picture {self.name}" viewBox="0 0 {self.width + 12} {under}" '
            f'role="img" aria-label="{escape(words)}">{self._axis(bottom)}{self._taken()}{drawn}'
            f"{key}</svg>"
        )

    def _x(self, share: float) -> float:
        return round(self.names + share * (self.width - self.names), 1)

    def _height(self, lane: Lane) -> int:
        if self.picture.taken_at is not None:
            return LANE
        return NAMED if lane.marks else PLAIN

    def _lane(self, lane: Lane, top: int) -> Iterator[str]:
        whole = self.picture.taken_at is None
        middle = top + self._height(lane) - (HALF if whole else BELOW)
        thick, shortest = (THIN, THINNEST) if whole else (BAR, SHORTEST)
        fits = int(self.names / (CHARACTER + 0.5))
        yield f'<text class="p-name" x="0" y="{middle + 4}">{escape(lane.name[:fits])}</text>'
        yield f'<path class="p-line" d="M{self.names} {middle}H{self.width}"/>'
        for bar in sorted(lane.bars, key=lambda bar: bar.kind != "fault"):  # behind the others
            start, end = self._x(bar.start), self._x(bar.end)
            tall = (PLAIN - 4 if whole else LANE - 12) if bar.kind == "fault" else thick
            yield (
                f'<rect class="p-{bar.kind}" x="{start}" y="{middle - tall / 2}" '
                f'width="{max(shortest, end - start):.1f}" height="{tall}" rx="2"/>'
            )
        yield from self._marks(lane, middle)

    def _marks(self, lane: Lane, middle: int) -> Iterator[str]:
        taken: dict[float, list[tuple[float, float]]]  # by the height of the text
        taken = {middle - BAR / 2 - 4: [], middle + BAR / 2 + 12: []}
        for mark in sorted(lane.marks, key=lambda mark: (mark.kind != "lease", mark.at)):
            x, long = self._x(mark.at), CHARACTER * len(mark.text)
            left = mark.at <= TURNS and x + 5 + long < self.width
            begins = x + 5 if left else x - 5 - long
            anchor = "start" if left else "end"
            if self.picture.start_ns <= mark.ns <= self.picture.end_ns:
                yield f'<path class="p-mark p-{mark.kind}" d="M{x} {middle - 12}v24"/>'
            ends = begins + long + 8
            free = (
                y for y, texts in taken.items() if all(ends < a or b < begins for a, b in texts)
            )
            y = next(free, None)
            if y is None:  # on a phone: what there is no room for is in the steps
                continue
            taken[y].append((begins, ends))
            yield (
                f'<text class="p-text p-{mark.kind}" x="{x + 5 if left else x - 5}" y="{y}" '
                f'text-anchor="{anchor}">{escape(mark.text)}</text>'
            )

    def _taken(self) -> str:
        """From who took the lock to who lost it; or where it rightly went."""
        if self.picture.taken_at is None:
            return ""
        x, one, other = self._x(self.picture.taken_at), TOP + LANE * 1.5 - 6, TOP + LANE / 2 + 14
        back, kind = 6, "p-passed" if self.picture.rightly else "p-took"
        if self.picture.deleted or self.picture.rightly:
            one, other, back = other, one, -back
        head = f"M{x - 4} {other + back}L{x} {other}L{x + 4} {other + back}"
        return f'<path class="{kind}" d="M{x} {one}V{other}{head}"/>'

    def _axis(self, bottom: int) -> str:
        parts, free = [], 0.0
        for share, text in self.picture.ticks:
            x = self._x(share)
            if share >= LAST_TICK:
                continue
            parts.append(f'<path class="p-line" d="M{x} {TOP}V{bottom}"/>')
            if free <= x:
                y, free = bottom + 14, x + TIME
                parts.append(f'<text class="p-note" x="{x}" y="{y}" text-anchor="middle">{text}')
                parts.append("</text>")
        return "".join(parts)

    def _key(self, top: int) -> tuple[str, int]:
        """And where it ends."""
        parts, x = [], float(self.names)
        for kind, meaning in self.picture.key:
            long = 28 + CHARACTER * len(meaning)
            if x + long > self.width:
                x, top = float(self.names), top + KEY
            parts.append(
                f'<rect class="p-{kind}" x="{x:.1f}" y="{top + 4}" width="22" height="10" rx="2"/>'
                f'<text class="p-note" x="{x + 28:.1f}" y="{top + 13}">{meaning}</text>'
            )
            x += long + 24
        return "".join(parts), top + KEY


def _in_words(lane: Lane) -> str:
    return f"{lane.name}: {', '.join(mark.text for mark in lane.marks) or 'held the lock'}"
