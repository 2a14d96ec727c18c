"""Small files that take much: some of those in `tests.tools.bombs`, which tries all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.bombs import QUICK, check, format_of, write_bomb


@pytest.mark.parametrize("name", QUICK)
def test_neither_memory_nor_time_grows_without_bound(tmp_path: Path, name: str) -> None:
    ended = check(write_bomb(name, tmp_path), format_of(name), "--report", str(tmp_path / "page"))
    assert not ended.wrong, ended
