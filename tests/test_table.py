"""The promises, a few seeds of each; `make table` runs as many as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running import need
from tests.table import ROWS, Row, acquires_often, blames_the_paused_holder, finds, try_row


def _cases() -> list[object]:
    local = [
        pytest.param(row, "local", seed, marks=pytest.mark.cluster, id=f"{row.name}-local-{seed}")
        for row in ROWS
        for seed in (1, 2)
    ]
    docker = [
        pytest.param(
            row,
            "docker",
            1,
            marks=[pytest.mark.cluster, pytest.mark.docker],
            id=f"{row.name}-docker-1",
        )
        for row in ROWS
    ]
    return [*local, *docker]


@pytest.mark.parametrize(("row", "runtime", "seed"), _cases())
def test_it_is_as_promised(row: Row, runtime: str, seed: int, tmp_path: Path) -> None:
    need(runtime)
    assert try_row(row, runtime, seed, tmp_path) == []


def test_the_demands_can_fail() -> None:
    ends_badly = {"findings": [], "counts": {"acquisitions": 199}}
    assert finds("overlap")(ends_badly) == "not found: overlap"
    assert acquires_often(ends_badly) == "only 199 acquisitions"
    blamed = {"findings": [{"blame": "service", "fault": None}]}
    assert "service" in blames_the_paused_holder(blamed)
