"""A package brings a workload, and a check of what has to hold for it: a sum."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import pytest

from lockcheck.history.event import encode_event
from tests.checker.dsl import history
from tests.running import lockcheck, need
from tests.test_plugins import install

WORKLOAD = '''
"""Read a total, think, add something to it."""

from lockcheck.workloads.base import EXCLUSION, Workload


def total_in(text):
    return int(text.partition(";")[0]) if text else 0


def section(session, held):
    before = session.read(held)
    session.think()
    total = total_in(before) + session.settings.choices.randint(1, 9)
    session.write_mark(held, before, f"{total};")


WORKLOAD = Workload(
    name="tally",
    summary="read a total, think, add something to it",
    run=lambda session: session.take_turns(section),
    stores=True,
    needs=EXCLUSION,
)
'''

CHECK = '''
"""What was put into a total, and accepted, is what is in it."""

from lockcheck.checker.check import Check
from lockcheck.checker.finding import Blame, Culprit, Finding, Reason
from lockcheck.checker.wording import Words
from lockcheck.words import lock_name
from tallying.workload import total_in


def find(case):
    for writes in case.ledger.accepted():
        known = tuple(write.operation for write in writes if write.operation)
        if len(known) == len(writes) and put_into(known) != total_in(writes[-1].value):
            yield finding(case, writes[-1], known)


def put_into(writes):
    return sum(total_in(w.invoke.value) - total_in(w.invoke.base) for w in writes)


def finding(case, last, writes):
    blame = Blame(Culprit.CLIENT)
    return Finding(
        code="wrong-sum",
        key=last.key,
        time_ns=writes[-1].last_ns,
        effect=CHECK.effect(case.terms, blame),
        holds=(),
        operations=writes,
        length_ns=0,
        blame=blame,
        reasons=(Reason("{number} is missing.", number=put_into(writes) - total_in(last.value)),),
    )


def title(f):
    total = total_in(f.operations[-1].invoke.value)
    return f"{put_into(f.operations)} was put into {lock_name(f.key)}, and it holds {total}"


CHECK = Check(
    code="wrong-sum",
    meaning="a total is not the sum of what was put into it",
    explanation="Each client adds something to what it has read.",
    find=find,
    workload="tally",
    words=Words(
        one="wrong sum",
        many="wrong sums",
        title=title,
        did=lambda f: "it overwrote what another one had put in",
        cure="Add in the storage, not in the client.",
    ),
    kept_out_by=frozenset({"fence", "cas"}),
    damages_data=True,
)
'''
ENTRY_POINTS = """
[lockcheck.workloads]
tally = tallying.workload:WORKLOAD
[lockcheck.checks]
wrong-sum = tallying.check:CHECK
"""
FILES = {"__init__": "", "workload": WORKLOAD, "check": CHECK}
RUN = ("run", "--workload", "tally", "--runtime", "local", "--json", "--seed", "1")


def installed(folder: Path) -> dict[str, str]:
    return install(folder, ENTRY_POINTS, files=FILES, name="tallying")


@pytest.mark.cluster
def test_it_holds_under_a_right_lock_and_a_lock_that_fails_breaks_it(tmp_path: Path) -> None:
    need("local")
    variables, out = installed(tmp_path), ("--out", str(tmp_path / "results"))
    words = ("--backend", "redis", "--nemesis", "none", "--time-limit", "4s", *out)
    right = lockcheck(*RUN, *words, variables=variables)
    assert right.returncode == 0, right.stderr + right.stdout
    assert json.loads(right.stdout)["counts"]["writes_accepted"] > 10
    words = ("--backend", "redis", "--nemesis", "pause", "--time-limit", "8s", *out)
    wrong = lockcheck(*RUN, *words, "--no-stop-on-violation", variables=variables)
    assert wrong.returncode == 1, wrong.stderr + wrong.stdout
    result = json.loads(wrong.stdout)
    found = [each for each in result["findings"] if each["code"] == "wrong-sum"]
    assert found
    assert "wrong-sum" in {code for each in result["incidents"] for code in each["codes"]}
    page = unescape(Path(result["report"]).read_text())
    assert "wrong sum" in page
    assert "is missing." in page
    checked = lockcheck("check", result["run"], "--json", variables=variables)
    again = [f for f in json.loads(checked.stdout)["findings"] if f["code"] == "wrong-sum"]
    assert [each["key"] for each in again] == [each["key"] for each in found]


STORED = """
    1 acquire 0-1
    1 write 2-3 5;v1 seq=1
    1 release 4-5
    2 acquire 6-7
    2 write 8-9 3;v2 seq=2
    2 release 10-11"""


@pytest.mark.parametrize(("workload", "found"), [("tally", ["wrong-sum"]), ("register", [])])
def test_it_is_judged_of_its_own_workload_alone(
    tmp_path: Path, workload: str, found: list[str]
) -> None:
    log = tmp_path / "h.jsonl"
    told = history(STORED, workload=workload)
    log.write_bytes(b"\n".join(map(encode_event, told.events)) + b"\n")
    page, variables = tmp_path / "page.html", installed(tmp_path)
    done = lockcheck("check", str(log), "--json", "--report", str(page), variables=variables)
    findings = json.loads(done.stdout)["findings"]
    assert [each["code"] for each in findings if each["code"] == "wrong-sum"] == found
    text = unescape(page.read_text())
    assert ("8 was put into k, and it holds 3" in text) is bool(found)
    assert ("Add in the storage, not in the client." in text) is bool(found)


def test_the_list_says_whose_it_is(tmp_path: Path) -> None:
    listed = lockcheck("list", "checks", "workloads", variables=installed(tmp_path))
    assert "a total is not the sum of what was put into it (workload tally)" in listed.stdout
    assert "  tally " in listed.stdout
