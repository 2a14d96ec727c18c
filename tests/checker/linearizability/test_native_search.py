"""The search in C does what the one in Python does, step by step."""

from __future__ import annotations

import ctypes
import os
import random
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lockcheck.native
from lockcheck.checker.linearizability.answer import GIGABYTE, Patience, endless
from lockcheck.checker.linearizability.calls import Calls, calls_of
from lockcheck.checker.linearizability.leases import leased
from lockcheck.checker.linearizability.models import (
    COUNTER,
    MODELS,
    OWNER_MUTEX,
    STORING,
    Call,
    Model,
    State,
    register,
)
from lockcheck.checker.linearizability.search.native import native_search
from lockcheck.checker.linearizability.search.plan import Found, Transitions, plan_of
from lockcheck.checker.linearizability.search.python import MANY, Search
from lockcheck.checker.linearizability.search.search import search
from lockcheck.history.table import Table
from tests.checker.dsl import table
from tests.checker.linearizability.agreement import LOCKS
from tests.checker.linearizability.brute import brute
from tests.checker.linearizability.generated import histories
from tests.checker.linearizability.locks import small
from tests.often import often

FLAGS = ("-std=c11", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror")
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=lambda model: model.name)


@pytest.fixture(autouse=True, scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """From the sources as they are now, without a warning."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if shutil.which(compiler[0]) is None:
        pytest.skip("there is no C compiler")
    path = tmp_path_factory.mktemp("native") / "_core.so"
    sources = sorted(lockcheck.native.FOLDER.glob("*.c"))
    subprocess.run([*compiler, *FLAGS, "-o", path, *sources], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(lockcheck.native.PURE, raising=False)
        patch.setattr(lockcheck.native, "LIBRARY", path)
        yield


def library() -> ctypes.CDLL:
    found = lockcheck.native.core()
    assert found is not None
    return found


def in_c(calls: Calls, model: Model, many: int = MANY, most_bytes: int = GIGABYTE) -> Found:
    patience = Patience(most_bytes=most_bytes)
    return native_search(library(), plan_of(calls), Transitions(model, calls), patience, many)


def result_in_c(calls: Calls, model: Model, many: int) -> tuple[Found, list[State]]:
    plan, transitions = plan_of(calls), Transitions(model, calls)
    found = native_search(library(), plan, transitions, endless, many)
    return _with_states(found, transitions)


def result_in_python(calls: Calls, model: Model, many: int) -> tuple[Found, list[State]]:
    transitions = Transitions(model, calls)
    return _with_states(Search(plan_of(calls), transitions, many).run(endless), transitions)


def _with_states(found: Found, transitions: Transitions) -> tuple[Found, list[State]]:
    """With the states instead of their numbers: for locks, C has its own numbers."""
    states = [transitions.states[number] for number in found.states]
    return replace(found, states=()), states


@each_model
@often
@given(data=st.data())
def test_it_finds_the_same_as_python(model: Model, data: st.DataObject) -> None:
    history, many = data.draw(histories(model)), data.draw(st.integers(0, 20))
    calls = calls_of(history, model)
    assert result_in_c(calls, model, many) == result_in_python(calls, model, many)
    assert in_c(calls, model, many).linearizable == brute(history, model)


@pytest.mark.parametrize("model", LOCKS.values(), ids=LOCKS)
@often
@given(data=st.data())
def test_it_finds_the_same_of_leases(model: Model, data: st.DataObject) -> None:
    (history, until), many = data.draw(small(leases=True)), data.draw(st.integers(0, 20))
    calls = calls_of(history, leased(model), until)
    assert result_in_c(calls, leased(model), many) == result_in_python(calls, leased(model), many)


def busy(seed: int, clients: int, operations: int, model: Model) -> Table:
    """Clients that always have an operation under way; a wrong answer now and then."""
    chance = random.Random(seed)
    lines = []
    free = [0] * clients
    for _ in range(operations):
        client = min(range(clients), key=free.__getitem__)
        start, length = free[client] + chance.randrange(3), chance.randrange(20)
        free[client] = start + length + 1
        mark = "?" if chance.random() < 0.02 else ""
        lines.append(f"{client} {_what(chance, model, start, length, mark)}")
    return table(*lines)


def _what(chance: random.Random, model: Model, start: int, length: int, mark: str) -> str:
    span = f"{start}-{start + length}{mark}"
    value = chance.randrange(2)
    if model.operations == STORING:
        words = (f"read {span} = {value}", f"write {span} {value}", f"cas {span} [{value},1]")
        return chance.choice(words)
    return chance.choice((f"acquire {span}", f"release {span}"))


@pytest.mark.parametrize("clients", [3, 12, 70, 140])
@pytest.mark.parametrize("model", [register(), OWNER_MUTEX], ids=lambda model: model.name)
def test_it_finds_the_same_where_masks_are_wide(model: Model, clients: int) -> None:
    for seed, many in enumerate((0, 30, 300, MANY)):
        calls = calls_of(busy(seed, clients, clients * 2, model), model)
        if not in_c(calls, model, many, most_bytes=1 << 25).exhausted:
            assert result_in_c(calls, model, many) == result_in_python(calls, model, many)


def test_without_memory_it_reports_that() -> None:
    writes = [f"{i} write 10-99 {i}" for i in range(20)]
    calls = calls_of(table(*writes, "99 read 11-50 = 99"), register())
    found = in_c(calls, register(), most_bytes=1 << 18)
    assert found == Found(linearizable=None, place=0, exhausted=True)


def test_states_that_python_keeps_count_as_memory() -> None:
    adds = [f"{i} add 10-99 {1 << i}" for i in range(16)]
    calls = calls_of(table(*adds, "99 read 11-50 = -1"), COUNTER)
    found = in_c(calls, COUNTER, most_bytes=1 << 20)
    assert (found.linearizable, found.exhausted) == (None, True)


def test_what_the_model_raises_is_raised() -> None:
    def step(_state: State, call: Call) -> State:
        raise LookupError(call.argument)

    model = Model("broken", "", None, step, STORING)
    with pytest.raises(LookupError, match="5"):
        search(table("0 write 0-1 5"), model)


def test_what_interrupts_the_patience_is_raised() -> None:
    def patience() -> bool:
        raise KeyboardInterrupt

    adds = [f"{i} add 10-99 {1 << i}" for i in range(16)]
    with pytest.raises(KeyboardInterrupt):
        search(table(*adds, "99 read 11-50 = -1"), COUNTER, Patience(patience))


def test_it_can_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(lockcheck.native.PURE, "1")
    assert lockcheck.native.core() is None
    monkeypatch.setenv(lockcheck.native.PURE, "0")
    assert lockcheck.native.core() is not None


def test_a_library_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockcheck.native, "ABI", lockcheck.native.ABI + 1)
    lockcheck.native.library_at.cache_clear()
    assert lockcheck.native.core() is None
    monkeypatch.undo()
    lockcheck.native.library_at.cache_clear()
    assert lockcheck.native.core() is not None


@pytest.mark.parametrize("content", [b"", b"no library", b"\x7fELF\x02\x01\x01"])
def test_what_cannot_be_loaded_is_not_used(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "_core.so"
    path.write_bytes(content)
    assert lockcheck.native.library_at(path) is None


def test_where_there_is_none_python_does_it(tmp_path: Path) -> None:
    assert lockcheck.native.library_at(tmp_path / "_core.so") is None


def test_another_library_is_not_used(tmp_path: Path) -> None:
    source, path = tmp_path / "other.c", tmp_path / "other.so"
    source.write_text("int other(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    assert lockcheck.native.library_at(path) is None
