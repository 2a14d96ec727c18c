"""Small histories of each model, for Hypothesis: any operations at any times, or nearly legal.

Nearly legal ones are what an object would have done, with some answers missing and few changed:
random operations alone are hardly ever linearizable, and never only just.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from lockcheck.checker.linearizability.models import (
    Call,
    Illegal,
    LockState,
    Model,
    State,
    value_words,
)
from lockcheck.history.table import Op, Table
from tests.checker.dsl import table

MOMENTS = 12
OPERATIONS = 8
PROCESSES = 3
VALUES = 3
TRIES = 6
OUTCOMES = ("", "", "", "", "", "?", "?", "!")

Draw = Callable[[st.SearchStrategy[Any]], Any]


def histories(model: Model, most: int = OPERATIONS) -> st.SearchStrategy[Table]:
    return st.one_of(anything(model, most), nearly_legal(model, most))


@st.composite
def anything(draw: Draw, model: Model, most: int) -> Table:
    return table(*(_anywhere(draw, model) for _ in range(_below(draw, most + 1))))


@st.composite
def nearly_legal(draw: Draw, model: Model, most: int) -> Table:
    """Operations that take effect one after another, each within its span; one may be changed."""
    state, lines = model.initial, []
    for moment in range(_below(draw, most + 1)):
        start, end = max(0, moment - _below(draw, 5)), moment + _below(draw, 5)
        state, line = _legal(draw, model, state, f"{start}-{end}")
        lines.append(line)
    if lines and not _below(draw, 3):
        lines[_below(draw, len(lines))] = _anywhere(draw, model)
    return table(*lines)


def _legal(draw: Draw, model: Model, state: State, span: str) -> tuple[State, str]:
    """An operation that is legal now, if a few tries find one."""
    outcome = draw(st.sampled_from(OUTCOMES))
    for _ in range(TRIES):
        process, f, values = _what(draw, model, state)
        after = model.step(state, _call(model, process, f, values))
        if not isinstance(after, Illegal):
            skipped = outcome == "!" or (outcome == "?" and _below(draw, 2))
            return state if skipped else after, f"{process} {f} {span}{outcome} {values}"
    return state, f"{process} {f} {span}! {values}"


def _call(model: Model, process: int, f: str, values: str) -> Call:
    """What `calls_of` makes of such a line, for the values that are drawn here."""
    op, caller = Op[f.upper()], process if model.owners else None
    if values.startswith("token="):
        return Call(op, caller, token=int(values.removeprefix("token=")))
    parsed = json.loads(values.removeprefix("= ") or "[]")
    if op is Op.READ:
        return Call(op, caller, result=frozenset(parsed) if model.many else parsed)
    return Call(op, caller, *(parsed if isinstance(parsed, list) else [parsed]))


def _anywhere(draw: Draw, model: Model) -> str:
    process, f, values = _what(draw, model, None)
    start, length = _below(draw, MOMENTS), _below(draw, MOMENTS // 2)
    return f"{process} {f} {start}-{start + length}{draw(st.sampled_from(OUTCOMES))} {values}"


def _what(draw: Draw, model: Model, state: State) -> tuple[int, str, str]:
    op = draw(st.sampled_from(sorted(model.operations)))
    return _below(draw, PROCESSES), op.name.lower(), _values(draw, model, op, state)


def _values(draw: Draw, model: Model, op: Op, state: State) -> str:
    if op is Op.ACQUIRE:
        last = state.token or 0 if isinstance(state, LockState) else _below(draw, VALUES)
        return f"token={last + _below(draw, 3)}" if model.tokens and _below(draw, 4) else ""
    if op is Op.READ:
        return f"= {_read(draw, model) if state is None else value_words(state)}"
    values = [_below(draw, VALUES) for _ in range(2 if op is Op.CAS else 1)]
    return str(values).replace(" ", "") if op is Op.CAS else str(values[0])


def _read(draw: Draw, model: Model) -> str:
    if model.many:
        return str(draw(st.lists(st.integers(0, VALUES - 1), unique=True)))
    value: str = draw(st.sampled_from(["null", *map(str, range(VALUES))]))
    return value


def _below(draw: Draw, bound: int) -> int:
    number: int = draw(st.integers(0, bound - 1))
    return number
