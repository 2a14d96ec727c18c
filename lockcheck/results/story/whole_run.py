"""The small picture of a run in which nothing went wrong: its holds and its faults, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lockcheck.checker.finding import Judgement
from lockcheck.history import FaultSpan, History
from lockcheck.results.story.picture import Bar, Lane, Mark, Picture, client_lane
from lockcheck.results.story.seen import clients, last_moment_ns
from lockcheck.results.story.wording.acts import lane_of, upon
from lockcheck.words import amount, natural, span

MOST_CLIENTS = 6
FEW = 3  # faults in a lane: each has its name
FINEST = 1 / 400  # bars closer to each other than this share of the picture are one
WORTH_A_LANE = 0.03  # of the run, without a grant


def whole_run(history: History, judgement: Judgement) -> Picture | None:
    """None: nothing was held, or only a part of the history is at hand."""
    if not history.holds or clients(history, judgement) is None:
        return None
    empty = Picture(0, max(1, last_moment_ns(history)), ())
    nodes = sorted({hold.node for hold in history.holds}, key=natural)
    single, rest = nodes[:MOST_CLIENTS], nodes[MOST_CLIENTS:]
    lanes = [_client(empty, history, {node}, client_lane(node)) for node in single]
    if rest:
        lanes.append(_client(empty, history, set(rest), f"{amount(len(rest), 'more client')}"))
    lanes += _servers(empty, history)
    lanes += _ungranted(empty, judgement) if _proven(history) else ()  # else others held it
    return replace(empty, lanes=tuple(lanes))


def _client(frame: Picture, history: History, nodes: set[str], name: str) -> Lane:
    held = ((h.start_ns, h.end_ns) for h in history.holds if h.node in nodes)
    faults = [f for f in _proven(history) if nodes & set(f.nodes)]
    return Lane(name, (*_bars(frame, faults), *_merged(frame, held)), _first(frame, faults))


def _servers(frame: Picture, history: History) -> Iterator[Lane]:
    by_name: dict[str, list[FaultSpan]] = {}
    for fault in _proven(history):
        if not history.clients.issuperset(fault.nodes) or not fault.nodes:
            by_name.setdefault(lane_of(history.terms, fault) or "all nodes", []).append(fault)
    for name, faults in sorted(by_name.items(), key=lambda each: natural(each[0])):
        yield Lane(name, tuple(_bars(frame, faults)), _first(frame, faults))


def _ungranted(frame: Picture, judgement: Judgement) -> Iterator[Lane]:
    longest = judgement.ungranted
    if longest is None:
        return
    start, end = (frame.share(longest.since_ns + ns) for ns in (0, longest.length_ns))
    if end - start >= WORTH_A_LANE:
        mark = Mark(end, "gap", f"for {span(longest.length_ns)}")
        yield Lane("no grant", (Bar(start, end, "gap"),), (mark,))


def _proven(history: History) -> list[FaultSpan]:
    return [fault for fault in history.faults if fault.proven_ns is not None]


def _bars(frame: Picture, faults: Iterable[FaultSpan]) -> Iterator[Bar]:
    for fault in faults:
        healed_ns = frame.end_ns if fault.healed_ns is None else fault.healed_ns
        yield Bar(frame.share(fault.worked_from_ns), frame.share(healed_ns), "fault")


def _first(frame: Picture, faults: Iterable[FaultSpan]) -> tuple[Mark, ...]:
    """The name of each fault where it strikes first; of a few, everywhere."""
    every = [(upon(fault), frame.share(fault.worked_from_ns)) for fault in faults]
    named = every if len(every) <= FEW else [*dict(reversed(every)).items()]
    return tuple(Mark(at, "fault", text) for text, at in named)


def _merged(frame: Picture, held: Iterable[tuple[int, int]]) -> Iterator[Bar]:
    """However many holds there are, no more bars than can be seen."""
    bars: list[Bar] = []
    for start_ns, end_ns in held:
        bar = Bar(frame.share(start_ns), frame.share(end_ns), "hold")
        if bars and bar.start - bars[-1].end < FINEST:
            bars[-1] = replace(bars[-1], end=max(bars[-1].end, bar.end))
        else:
            bars.append(bar)
    yield from bars
