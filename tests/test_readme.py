"""The tables of README and docs/faults.md say of each lock what stands beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lockcheck.backends import BACKENDS
from lockcheck.backends.expected import GOES_ON, Expected, without_limit

README = Path(__file__).parents[1] / "README.md"
FAULTS = README.parent / "docs" / "faults.md"
# How a column is headed, and what it is of: the fault, and the guard.
COLUMNS = {
    "no fault": ("none", "none"),
    "`pause`": ("pause", "none"),
    "`pause` with `--guard fence`": ("pause", "fence"),
    "`partition:holder`": ("partition:holder", "none"),
    "`kill:holder`": ("kill:holder", "none"),
    "`kill:server`": ("kill:server", "none"),
}


def table(page: Path, begins: str) -> dict[str, dict[str, str]]:
    lines = page.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"| `{begins}`"))
    head = cells(lines[start])
    rows = (cells(line) for line in lines[start + 2 :])
    found = {}
    for row in rows:
        if not row:
            break
        found[row[0].strip("`")] = dict(zip(head, row, strict=True))
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]


TABLE = table(README, "--backend")


def test_it_has_a_row_for_each_lock() -> None:
    assert list(TABLE) == list(BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_it_says_what_is_expected(name: str) -> None:
    backend, row = BACKENDS[name], TABLE[name]
    assert bool(row["token"]) == backend.promises.fencing
    for column, (fault, guard) in COLUMNS.items():
        said = row[column].replace("**", "").partition(" ")[0]
        assert said in verdicts(backend.expected, fault, guard), column


def verdicts(expected: tuple[Expected, ...], fault: str, guard: str) -> set[str]:
    """Several where it depends on more than that; a note of the table says on what."""
    found = {each.verdict for each in expected if column(each) == (fault, guard)}
    return found or {""}


def column(expected: Expected) -> tuple[str, str]:
    """With more time between two of them it is the same fault."""
    return re.sub(r",gap=\w+$", "", expected.nemesis), expected.guard


def test_the_rows_of_other_faults_are_those_that_are_expected() -> None:
    said = {
        (fault, verdict): set(row[verdict].split(", ")) - {""}
        for fault, row in table(FAULTS, "--nemesis ...").items()
        for verdict in ("violates", "holds")
    }
    assert {key: locks for key, locks in said.items() if locks} == of_other_faults()


def of_other_faults() -> dict[tuple[str, str], set[str]]:
    """By the words of a command and its verdict: the locks, and whose fault it is."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, backend in BACKENDS.items():
        for each in backend.expected:
            if column(each) not in COLUMNS.values():
                verdict = "violates" if each.verdict == "violation" else "holds"
                blamed = f" ({each.blame})" if each.blame else ""
                found.setdefault((command(each), verdict), set()).add(f"`{name}`{blamed}")
    return found


def command(expected: Expected) -> str:
    guard = () if expected.guard == "none" else ("--guard", expected.guard)
    options = (word for word in without_limit(expected.options) if word != GOES_ON)
    return " ".join((expected.nemesis, *guard, *options))
