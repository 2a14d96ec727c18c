"""To tell of twice as many findings takes twice the work: nothing is asked of all for each."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import pytest

from lockcheck.checker import judge
from lockcheck.cli.terminal import print_verdict
from lockcheck.results.report import render
from lockcheck.results.story.narrative import Narrative
from tests.checker.dsl import history
from tests.results.browser import PHONE
from tests.results.conftest import Opened
from tests.results.test_last_words import facts

FEW = 100
AT_MOST = 2.6  # times the work for twice as many: what is done once makes it less


def work(done: Callable[[], object]) -> int:
    """Calls of Python's own functions: the same on any machine, however busy it is."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        done()
    finally:
        sys.setprofile(None)
    return calls


def reset_counter(often: int) -> Iterator[str]:
    """All tokens of the second half lie below those of the first."""
    for turn in range(2 * often):
        token = turn + (10 * often if turn < often else 0)
        yield f"{turn % 5} acquire {9 * turn}-{9 * turn + 1} token={token}"
        yield f"{turn % 5} release {9 * turn + 2}-{9 * turn + 3}"


def rivals(often: int) -> Iterator[str]:
    """One holds it all the while, and others come and go."""
    yield "9 acquire 0-1"
    for turn in range(1, often + 1):
        yield f"{turn % 5} acquire {9 * turn}-{9 * turn + 1}"
        yield f"{turn % 5} release {9 * turn + 2}-{9 * turn + 3}"
    yield f"9 release {9 * often + 10}-{9 * often + 11}"


def chain(often: int) -> Iterator[str]:
    """Each is let in while the one before it still holds it."""
    for turn in range(often):
        yield f"{turn % 5} acquire {9 * turn}-{9 * turn + 1}"
        yield f"{turn % 5} release {9 * turn + 12}-{9 * turn + 13}"


def stale_writes(often: int) -> Iterator[str]:
    """A former holder writes again and again, and overwrites what others wrote meanwhile."""
    yield "9 acquire 0-1 token=1"
    for turn in range(1, often + 1):
        begin = 9 * turn
        yield f"{turn % 5} acquire {begin}-{begin + 1} token={turn + 1}"
        yield f"{turn % 5} write {begin + 2}-{begin + 3} w{turn} base=w{turn - 1} seq={2 * turn}"
        yield f"9 write {begin + 3}-{begin + 4} s{turn} base=w0 seq={2 * turn + 1}"
        yield f"{turn % 5} release {begin + 5}-{begin + 6}"


def blind_releases(often: int) -> Iterator[str]:
    """Each release takes away the lock of whoever was let in last."""
    for turn in range(often):
        yield f"{turn % 5} acquire {9 * turn}-{9 * turn + 1}"
        removed = '{"removed": 1, "blind": true}'
        yield f"{turn % 5} release {9 * turn + 12}-{9 * turn + 13} = {removed}"


@pytest.mark.parametrize("told", [reset_counter, rivals, chain, stale_writes, blind_releases])
def test_it_is_told_and_drawn_in_linear_time(told: Callable[[int], Iterator[str]]) -> None:
    few, many = (_work_of(list(told(often))) for often in (FEW, 2 * FEW))
    for name, calls in few.items():
        assert many[name] < AT_MOST * calls, name


def _work_of(lines: list[str]) -> dict[str, int]:
    of = history(*lines)
    narrative = Narrative(judge(of))
    assert len(narrative.judgement.findings) >= FEW - 1

    def tell() -> None:
        with redirect_stdout(io.StringIO()):
            print_verdict(narrative, None, facts())

    def draw() -> None:
        render(narrative, facts())

    draw()  # what is made once in a process is made by now
    narrative = Narrative(judge(of))
    return {"judged": work(lambda: judge(history(*lines))), "told": work(tell), "drawn": work(draw)}


MANY = 8_000
PAINTED = """(async () => {
  const names = ['fillRect', 'fill', 'stroke', 'strokeRect', 'fillText', 'measureText'];
  const paper = CanvasRenderingContext2D.prototype;
  let calls = 0;
  for (const name of names) {
    const own = paper[name];
    paper[name] = function (...given) { calls += 1; return own.apply(this, given); };
  }
  document.querySelector('#whole').click();
  while (!calls) await new Promise(requestAnimationFrame);
  return calls;
})()"""


@pytest.mark.parametrize("told", [reset_counter, rivals, chain])
def test_what_shares_a_pixel_is_painted_once(
    opened: Opened, told: Callable[[int], Iterator[str]]
) -> None:
    """The whole run is painted with about as many strokes, however much happened in it."""
    few, many = (
        opened(render(Narrative(judge(history(*told(often)))), facts()), size=PHONE).js(PAINTED)
        for often in (MANY // 2, MANY)
    )
    assert many < 1.4 * few
