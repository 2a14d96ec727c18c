"""Explains why no order of a register's operations fits their answers: a cycle of constraints.

The engine knows which operations are at fault, so the graph has a handful of operations, and an
edge for every rule that requires one of two to come first:

- real time: one ended before the other began, by their times or by their client's own order;
- a value is seen after it was written, and not after a cas has replaced it;
- along a piece (see `pieces`) what comes earlier by cas comes earlier;
- a piece is contiguous: where one operation of it has to come before one of another piece, all
  have to; and the piece that the initial value began comes before all others.

The explanation is its shortest cycle, by rules that take the fewest words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations

from lockcheck.checker.linearizability.answer import Answer, Because
from lockcheck.checker.linearizability.own_order import in_own_order
from lockcheck.checker.linearizability.sentences import (
    INITIAL,
    Edge,
    OperationPart,
    Rule,
    Sentences,
    replaces,
)
from lockcheck.history.table import Table

ENGINE = "zones"
ALL_PAIRS = 12  # operations; of more only neighbours are compared


def explain(table: Table, parts: Sequence[OperationPart]) -> Answer:
    """The answer for one key, whose `parts` cannot all be put in an order."""
    cycle = _shortest_cycle(list(_edges(table, parts)))
    words = Sentences(table)
    rows = {part.row for edge in cycle for part in (edge.before, edge.after, *edge.witness)}
    return Answer(
        False,
        ENGINE,
        reason=words.why_not(cycle),
        rows=tuple(sorted(rows)),
        cycle=tuple(
            Because(edge.before.row, edge.after.row, words.because(edge)) for edge in cycle
        ),
    )


def unwritten(table: Table, row: int, witness: int | None = None) -> Answer:
    """`row` saw a value that was never written; `witness` shows that an unconfirmed row did."""
    rows = (row,) if witness is None else tuple(sorted((row, witness)))
    return Answer(False, ENGINE, reason=Sentences(table).unwritten(row, witness), rows=rows)


def _edges(table: Table, parts: Sequence[OperationPart]) -> Iterator[Edge]:
    """For each two operations the easiest rule; a long list is a cycle of neighbours by cas."""
    many = len(parts) > ALL_PAIRS
    pairs = pairwise((*parts, parts[0])) if many else permutations(parts, 2)
    ended = [] if many else [pair for pair in permutations(parts, 2) if _ended(table, *pair)]
    for before, after in pairs:
        rules = _rules(table, before, after, ended)
        easiest = min(rules, key=lambda edge: edge.rule, default=None)
        if easiest is not None:
            yield easiest


def _ended(table: Table, before: OperationPart, after: OperationPart) -> bool:
    end, start = table.end[before.row], table.start[after.row]
    return bool(end < start or (end == start and in_own_order(table, before.row, after.row)))


def _rules(
    table: Table,
    before: OperationPart,
    after: OperationPart,
    ended: Sequence[tuple[OperationPart, OperationPart]],
) -> Iterator[Edge]:
    pair = before, after
    if pair in ended:
        yield Edge(*pair, Rule.ENDED, pair)
    if after.source == before.row:
        yield Edge(*pair, Rule.SAW, pair)
    elif after.source is not None and after.source == before.source and replaces(table, after.row):
        yield Edge(*pair, Rule.REPLACED, pair)
    if before.piece is None or after.piece is None:
        return
    if before.piece == after.piece:
        if before.stage < after.stage:
            yield Edge(*pair, Rule.LED, pair)
        return
    if before.piece == INITIAL:
        yield Edge(*pair, Rule.FIRST, pair)
    for one, other in ended:
        if (one.piece, other.piece) == (before.piece, after.piece):
            rule = Rule.OVER if other is after else Rule.APART if one is before else Rule.BOTH
            yield Edge(*pair, rule, (one, other))


def _shortest_cycle(edges: Sequence[Edge]) -> list[Edge]:
    import networkx as nx

    graph = nx.DiGraph()
    for edge in edges:
        graph.add_edge(edge.before.row, edge.after.row, edge=edge, weight=int(edge.rule))
    cycles = []
    for edge in edges if len(graph) <= ALL_PAIRS else edges[:1]:
        ends = edge.after.row, edge.before.row
        if nx.has_path(graph, *ends):
            cost, way = nx.single_source_dijkstra(graph, *ends)
            cycles.append((cost + edge.rule, way))
    _, rows = min(cycles)
    return [graph.edges[pair]["edge"] for pair in pairwise((*rows, rows[0]))]
