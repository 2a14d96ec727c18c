"""The museum: its exhibits can be run, a run that shows nothing is noticed, and one is run."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import msgspec
import pytest

from lockcheck.backends import BACKENDS
from lockcheck.backends.program.environment import environment
from lockcheck.checker.finding import Counts, Culprit, Verdict
from lockcheck.errors import UserError
from lockcheck.run.resolve import resolve
from lockcheck.runs.record import Record, Tally
from lockcheck.servers import SERVERS
from lockcheck.yours.museum.exhibit import Exhibit
from lockcheck.yours.museum.exhibits import EXHIBITS
from lockcheck.yours.museum.page import under, write
from lockcheck.yours.museum.programs import CLIENTS
from lockcheck.yours.museum.visit import Visit
from tests.running import LOCKCHECK, lockcheck, need
from tests.waiting import wait_for

PAGE = Path(__file__).parents[2] / "docs" / "museum.md"
SHORT = "sherlock-forever"  # what `make test` runs


@pytest.fixture(params=EXHIBITS.values(), ids=list(EXHIBITS))
def exhibit(request: pytest.FixtureRequest) -> Exhibit:
    each: Exhibit = request.param
    return each


@pytest.mark.parametrize("control", [False, True])
def test_it_can_be_run(exhibit: Exhibit, control: bool) -> None:
    config = exhibit.config(control=control, seed=1, out="results")
    plan = resolve(config)
    assert plan.lock.accused == config.backend
    assert config.backend not in {*BACKENDS, *SERVERS}  # a finding accuses the library by its name
    settings = {**exhibit.settings, **(exhibit.control if control else {})}
    file, _, name = str(settings["client"]).partition(":")
    if exhibit.program(control=control):
        assert config.client.endswith(f" {name}")
    else:
        found = ast.walk(ast.parse((CLIENTS / file).read_text()))
        assert name in {node.name for node in found if isinstance(node, ast.ClassDef)}
    assert all("==" in each for each in config.requirements)  # or it is another one next year


def test_its_control_is_another_run(exhibit: Exhibit) -> None:
    runs = [exhibit.config(control=control, seed=1, out="results") for control in (False, True)]
    assert runs[0] != runs[1]
    assert exhibit.findings


def test_the_page_has_all_of_them() -> None:
    written = PAGE.read_text()
    assert [line[3:] for line in written.splitlines() if line.startswith("## ")] == [*EXHIBITS]
    for each in EXHIBITS.values():
        assert f"| {each.library} | {each.shows} | {under(each)} | {each.whose} |" in written
        assert f"Control: {each.controls}: `ok` in " in written
    for text in (PAGE.parent / "museum").iterdir():
        assert text.stem in EXHIBITS
        assert f"(museum/{text.name})" in written
        assert len(text.read_text().splitlines()) <= 40
    for line in written.splitlines():
        for found in ("Found in ", "`ok` in "):
            if found in line:
                number, total = line.partition(found)[2].split()[:3:2]
                assert int(number) == int(total) >= 3, line  # of as many runs


# --- whether a run shows it ----------------------------------------------------------------------

RENEW = EXHIBITS["sherlock-renew"]
FOUND = Tally(code="overlap", effect=Verdict.VIOLATION, blame=Culprit.SERVICE, number=2)
BLAMED = msgspec.structs.replace(FOUND, blame=Culprit.HOLDER)
UNKNOWN = msgspec.structs.replace(FOUND, blame=Culprit.UNKNOWN)
STORED = msgspec.structs.replace(FOUND, blame=Culprit.STORAGE)
COUNTS = Counts(
    operations=100,
    acquisitions=10,
    holders=3,
    faults=0,
    writes_accepted=10,
    writes_refused=0,
    stale_writes_refused=0,
)


def visit(*found: Tally, control: bool = False, nemesis: str = "none", acquired: int = 10) -> Visit:
    config = RENEW.config(control=control, seed=1, out="results")
    record = Record(
        run_id="1",
        verdict=Verdict.VIOLATION if found else Verdict.OK,
        findings=found,
        counts=Counts(**{**_fields(COUNTS), "acquisitions": acquired}),
        config=msgspec.structs.replace(config, nemesis=(nemesis,)),
        versions={},
        started=None,
        took_ms=1000,
        exit_code=1 if found else 0,
    )
    return Visit(RENEW, control, record, "report.html")


def _fields(counts: Counts) -> dict[str, int]:
    return {name: getattr(counts, name) for name in Counts.__dataclass_fields__}


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (visit(FOUND), ""),
        (visit(), "overlap is not found"),
        (visit(BLAMED), "overlap is blamed on: holder"),
        (visit(FOUND, BLAMED, UNKNOWN), ""),
        (visit(UNKNOWN), "overlap is blamed on: unknown"),
        (visit(FOUND, STORED), "overlap is blamed on: service, storage"),
        (visit(FOUND, nemesis="pause"), "no fault was proven"),
        (visit(control=True), ""),
        (visit(FOUND, control=True), "the control is violation: overlap (2)"),
        (visit(control=True, acquired=9), "the control has only 9 acquisitions"),
    ],
)
def test_a_run_that_does_not_show_it_is_noticed(seen: Visit, wrong: str) -> None:
    assert seen.wrong() == ([f"{wrong} (report.html)"] if wrong else [])


# --- the line that is the cause ------------------------------------------------------------------


def test_the_cause_is_looked_up_in_the_installed_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    packages = environment(RENEW.settings["requirements"]) / "lib" / "python3" / "site-packages"
    source = packages / RENEW.file
    with pytest.raises(UserError, match="does not have this once"):
        RENEW.place()
    source.parent.mkdir(parents=True)
    source.write_text(f"def _renew():\n    {RENEW.line}\n")
    assert RENEW.place() == "sherlock/lock.py:2"
    written = tmp_path / "museum.md"
    for visits in ([visit(FOUND)], [visit(FOUND), visit(), visit(control=True)]):
        write(written, "sherlock-renew", visits)
    text = written.read_text()
    assert text.count("sherlock-renew](#") == text.count("\n## ") == 1  # the latest
    assert "Found in 1 of 2 runs: overlap (2); to blame: the lock." in text
    assert "Cause: `sherlock/lock.py:2`: `self._release_func(" in text
    assert "`ok` in 1 of 1 run, 10 acquisitions." in text
    source.write_text(f"{RENEW.line}\n{RENEW.line}\n")
    with pytest.raises(UserError, match="does not have this once"):
        RENEW.place()


# --- one of them, as a user runs it --------------------------------------------------------------


@cache
def why_no_index() -> str:
    wanted = EXHIBITS[SHORT].settings["requirements"]
    asked = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", *wanted]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)
    return said.stderr.strip()[-300:] if said.returncode else ""


@pytest.mark.cluster
@pytest.mark.long
def test_an_exhibit_breaks_and_its_control_does_not(tmp_path: Path) -> None:
    need("local")
    if reason := why_no_index():
        pytest.skip(f"no package index answers: {reason}")
    shown = lockcheck("museum", SHORT, "--out", str(tmp_path))
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert "sherlock/lock.py:416: in Lua" in shown.stdout
    control = lockcheck("museum", SHORT, "--control", "--out", str(tmp_path))
    assert control.returncode == 0, control.stdout + control.stderr
    options = ("--backend", f"museum:{SHORT}", "--clients", "3", "--nemesis", "pause", "--json")
    named = lockcheck("run", *options, "--out", str(tmp_path / "named"))
    assert named.returncode == 1, named.stdout + named.stderr
    rerun = json.loads(named.stdout)["rerun"]
    assert "--backend sherlock --client" in rerun
    assert "--nemesis" not in rerun  # it is the usual one
    assert "--clients 3 --time-limit 6s" in rerun
    again = lockcheck(
        "run", "--again", "latest", cwd=tmp_path, variables={"LOCKCHECK_RUN_OUT": "."}
    )
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.cluster
def test_ctrl_c_ends_it_and_not_only_the_run_under_way(tmp_path: Path) -> None:
    need("local")
    if reason := why_no_index():
        pytest.skip(f"no package index answers: {reason}")
    command = [*LOCKCHECK, "museum", SHORT, "--seeds", "5", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as museum:
        wait_for(lambda: any(tmp_path.glob("2*/record.json")), "the first run is under way")
        museum.send_signal(signal.SIGINT)
        museum.communicate()
    assert museum.returncode == 130
    assert len(list(tmp_path.glob("2*/record.json"))) == 1


@pytest.mark.parametrize(
    "arguments",
    [["no-such"], ["--all", SHORT], ["--control"], ["--page", "x"], [SHORT, SHORT]],
)
def test_what_makes_no_sense_is_refused(arguments: list[str]) -> None:
    said = lockcheck("museum", *arguments)
    assert said.returncode == 2, said.stdout
    assert "museum" in said.stderr


def test_it_lists_all_of_them() -> None:
    said = lockcheck("museum")
    assert said.returncode == 0
    assert all(f"  {name} " in said.stdout for name in EXHIBITS)
