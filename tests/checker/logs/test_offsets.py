"""Offsets that meet difference constraints, against all offsets of a small grid."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker.logs.offsets import FAR, Choice, Gaps, Search, split

CLOCKS = 3
FARTHEST = 4
GRID = range(-FARTHEST, FARTHEST + 1)
Gap: TypeAlias = tuple[list[int], list[int]]

clocks = st.lists(st.integers(0, CLOCKS - 1), min_size=2, max_size=2, unique=True)
ends = st.lists(st.integers(-5, 5) | st.sampled_from([-FAR, FAR]), min_size=2, max_size=2)
gaps = st.lists(st.tuples(clocks, ends.map(sorted)), max_size=6)
limits = st.tuples(clocks, st.integers(-5, 5)).map(lambda pair: (*pair[0], pair[1]))
choices = st.lists(st.lists(limits, min_size=1, max_size=3).map(tuple), max_size=4)


def gaps_of(given_gaps: list[Gap]) -> Gaps:
    rows = np.array([[*pair, *between] for pair, between in given_gaps], np.int64).reshape(-1, 4)
    return Gaps.of(*rows.T)


def meets(offsets: tuple[int, ...], given_gaps: list[Gap], given_choices: list[Choice]) -> bool:
    apart = [(offsets[one] - offsets[other], *between) for (one, other), between in given_gaps]
    return (
        max(offsets) - min(offsets) <= FARTHEST
        and not any(low < far < high for far, low, high in apart)
        and all(any(offsets[a] - offsets[b] <= most for a, b, most in c) for c in given_choices)
    )


@given(gaps, choices, st.sampled_from([None, 0.5, 0.25]))
def test_offsets_are_found_if_there_are_any(
    given_gaps: list[Gap], given_choices: list[Choice], share: float | None
) -> None:
    """The difference of two clocks says all, so the first one's offset is 0."""
    also, others = split(given_choices)
    known = gaps_of(given_gaps).and_these(also)
    limit = np.full((CLOCKS, CLOCKS), FARTHEST)
    found = Search(known, others, share).offsets(limit.copy())
    every = ((0, *rest) for rest in product(GRID, repeat=CLOCKS - 1))
    possible = [offsets for offsets in every if meets(offsets, given_gaps, given_choices)]
    assert (found is not None) == bool(possible)
    if found is not None:
        assert tuple(found.tolist()) in possible
        bounds = Search(known, others).around(found, limit)
        assert (found[:, None] - found[None, :] <= bounds).all()


def test_two_clocks_are_moved_as_little_as_possible() -> None:
    known = gaps_of([([0, 1], [-3, 2])])
    found = Search(known, []).offsets(np.full((2, 2), FARTHEST))
    assert found is not None
    assert found.tolist() == [0, -2]


def test_gaps_that_overlap_are_one() -> None:
    merged = gaps_of([([0, 1], [-3, 2]), ([1, 0], [-4, 1]), ([0, 1], [4, 5])])
    assert [column.tolist() for column in merged.columns] == [[0, 0], [1, 1], [-3, 4], [4, 5]]
