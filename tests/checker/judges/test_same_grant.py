"""One token granted twice to one client: two checks say the same of it."""

from __future__ import annotations

from typing import Any

import pytest

from lockcheck.checker import Code, judge
from tests.checker.dsl import history

CHECKED = (Code.TOKEN_REGRESSION, Code.NOT_LINEARIZABLE)
REST = "1 release 40-41\n3 acquire 50-51 token=9\n3 release 52-53"
FENCED = {"model": "fenced"}
ONE_GRANT = {
    "asked again": ("1 acquire 0-1 token=4\n1 acquire 2-3 token=4", {}),
    "asked again and again": (
        "1 acquire 0-1 token=4\n1 acquire 2-3 token=4\n1 acquire 5-6 token=4",
        {},
    ),
    "a first answer that is lost": ("1 acquire 0-1?\n1 acquire 2-3 token=4", {}),
    "a release that was refused": (
        "1 acquire 0-1 token=4\n1 release 2-3!\n1 acquire 5-6 token=4",
        {},
    ),
    "a release that was not answered": (
        "1 acquire 0-1 token=4\n1 release 2-3?\n1 acquire 5-6 token=4",
        {},
    ),
    "with a lease, after which it is still there": (
        "1 acquire 0-1 token=4\n1 acquire 30-31 token=4",
        {"ttl_ms": 20},
    ),
    "in a log": ("1 acquire 0-1 token=4\n1 acquire 2-3 token=4", {"partial": True, **FENCED}),
}
TWO_GRANTS = {
    "after a release": ("1 acquire 0-1 token=4\n1 release 2-3\n1 acquire 5-6 token=4", {}),
    "after a release, in a log": (
        "1 acquire 0-1 token=4\n1 release 2-3\n1 acquire 5-6 token=4",
        {"partial": True, **FENCED},
    ),
    "after another client's": (
        "1 acquire 0-1 token=4\n2 acquire 2-3 token=5\n2 release 4-5\n1 acquire 6-7 token=4",
        {},
    ),
    "after another client's, with a lease": (
        "1 acquire 0-1 token=4\n2 acquire 12-13 token=5\n2 release 14-15\n1 acquire 16-17 token=4",
        {"ttl_ms": 10},
    ),
    "another client's": (
        "1 acquire 0-1 token=4\n1 release 2-3\n2 acquire 5-6 token=4\n2 release 7-8",
        {},
    ),
}


def accusing(lines: str, terms: dict[str, Any]) -> list[bool]:
    found = judge(history(lines, REST, **terms))
    return [bool(found.of(code)) for code in CHECKED]


@pytest.mark.parametrize(("lines", "terms"), ONE_GRANT.values(), ids=ONE_GRANT)
def test_one_grant(lines: str, terms: dict[str, Any]) -> None:
    assert accusing(lines, terms) == [False, False]


@pytest.mark.parametrize(("lines", "terms"), TWO_GRANTS.values(), ids=TWO_GRANTS)
def test_two_grants(lines: str, terms: dict[str, Any]) -> None:
    assert accusing(lines, terms) == [True, True]
