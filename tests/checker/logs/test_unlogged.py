"""Logs that were cut while they were written: what was under way then is not in them."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Verdict
from lockcheck.checker.doubt import DoubtCode
from tests.checker.dsl import codes, judged
from tests.checker.logs.test_midway import USED

LEASE: dict[str, Any] = {"ttl_ms": 1_000}
LOCK = "1 acquire 10-11 \n 2 acquire 20-21 \n 2 release 22-23"
EXPLAINED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a release": (LOCK, LEASE, "process 1"),
    "a release after its last renewal": (
        LOCK.replace("10-11", "10-11 \n 1 renew 12-13"), LEASE, "process 1"
    ),
    "a release of one of two": ("""
        1 acquire 10-11
        1 acquire:i 12-13
        2 acquire 20-21
        2 release 22-23""", LEASE, "process 1"),
    "a release, token by token": (
        "1 acquire 10-11 token=1 \n 2 acquire 20-21 token=2 \n 2 release 22-23", LEASE, "process 1"
    ),
    "a release of the last one but one": (
        f"{LOCK} \n 3 acquire 30-31 \n 4 acquire 35-36 \n 4 release 37-38 \n 1 acquire:i 40-41"
        .replace("1 acquire 10-11", "1 acquire 10-11 \n 1 release 15-16"), LEASE, "process 3"
    ),
    "a value that was read": ("1 write 10-11 a \n 2 read 20-21 = b", {}, "process 8"),
    "a value that was replaced": ("1 write 10-11 a \n 2 cas 20-21 [b,c]", {}, "process 8"),
    "a level that was left": (
        "1 acquire 10-11 \n 2 acquire 20-21 \n 2 release 22-23",
        {"model": "reentrant", **LEASE},
        "process 1",
    ),
}  # fmt: skip
NOT_EXPLAINED: dict[str, tuple[str, dict[str, Any]]] = {
    "heard of again": (f"{LOCK} \n 1 acquire:i 30-31", LEASE),
    "granted only when the other one had been": (LOCK.replace("10-11", "10-21.5"), LEASE),
    "it renewed after that": (f"{LOCK} \n 9 renew 21.5-21.8 of=1", LEASE),
    "two at once, and one release": (f"{LOCK} \n 3 acquire 21.5-21.8 \n 3 release 25-26", LEASE),
    "a value that its reader cannot have written": (
        "2 read 5-6 = b \n 8 read 30-31 = a \n 9 write 40-41 c \n 2 write 50-51 a",
        {},
    ),
    "a lock that anybody may release": (LOCK, {"model": "mutex", **LEASE}),
}


@pytest.mark.parametrize(("lines", "terms", "client"), EXPLAINED.values(), ids=EXPLAINED)
def test_what_may_be_missing_accuses_nobody(lines: str, terms: dict[str, Any], client: str) -> None:
    judgement = judged(lines, USED, partial=True, **terms)
    assert judgement.verdict is Verdict.UNKNOWN, judgement.findings
    assert [(doubt.code, doubt.node) for doubt in judgement.doubts] == [
        (DoubtCode.MAYBE_UNLOGGED, client)
    ]
    whole = judged(lines, USED, **terms)
    assert whole.verdict is Verdict.VIOLATION, "a history that is no log has everything"


@pytest.mark.parametrize(("lines", "terms"), NOT_EXPLAINED.values(), ids=NOT_EXPLAINED)
def test_what_is_not_missing_is_found(lines: str, terms: dict[str, Any]) -> None:
    judgement = judged(lines, USED, partial=True, **terms)
    assert "not-linearizable" in codes(judgement), judgement.doubts
