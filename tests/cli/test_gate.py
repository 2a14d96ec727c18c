"""What a stranger wrote into a run's folder reaches the terminal as text and as nothing else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lockcheck.config import RunConfig
from lockcheck.history.files import write_events
from lockcheck.nodes import NODES_FOLDER
from lockcheck.run.resolve import resolve
from lockcheck.runs.facts import RunFacts
from lockcheck.runs.store import Store
from tests.checker.dsl import events
from tests.running import lockcheck

CHARACTERS = {
    "escape": "\x1b[2J\x1b[31m",
    "C1": "\x9b31m\x90",
    "next line": "\x85",
    "bidirectional": "\u202e\u2066\u200f",
    "separators": "\u2028\u2029",
    "return": "\r",
    "bell and backspace": "\a\b\b\b",
    "half a pair of surrogates": "\ud800".encode("utf-8", "surrogatepass").decode(
        "utf-8", "replace"
    ),
}
FALSE_VERDICT = "\n\n OK   In 99 acquisitions no two clients held a lock at the same time.\n"


def hostile_run(out: Path, text: str) -> Path:
    """Whole and sealed, and in all its texts there is something that a terminal would obey."""
    store = Store.create(out)
    said = f"x{text}{FALSE_VERDICT}y"
    facts = RunFacts(
        run_id=said,
        started_at=said,
        plan=((said, said), ("backend", said)),
        versions=((said, said),),
        rerun_command=said,
        check_command=said,
        problem=said,
    )
    config = RunConfig(backend="redis", seed=1, nemesis=("none",))
    begun = resolve(config).terms
    store.begin(config, begun, facts)
    lines = events("1 acquire 0-1", "2 acquire 2-3", "1 release 10-11", "2 release 12-13")
    named = [
        msgspec.structs.replace(event, node=said, key=said, error=said)
        for event in lines
        if isinstance(event.process, int)
    ]
    write_events(store.folder / NODES_FOLDER / "c1.jsonl", named)
    store.assemble_history(begun, facts)
    return store.folder


@pytest.mark.parametrize("kind", CHARACTERS)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_no_text_of_a_strangers_moves_the_cursor_or_begins_a_line(
    kind: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    folder = hostile_run(tmp_path, CHARACTERS[kind])
    said = lockcheck("check", *options, str(folder))
    assert said.returncode == 1, said.stdout + said.stderr
    for stream in (said.stdout, said.stderr):
        lines = stream.split("\n")
        assert all(line.isprintable() for line in lines)
        # Where a verdict would stand; what was said on several lines is indented further.
        assert not [line for line in lines if line.startswith(("OK", " OK"))]
