"""Amounts of memory as people write them."""

from __future__ import annotations

import pytest

from lockcheck.errors import UserError
from lockcheck.sizes import parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1GB", 1 << 30), ("1.5 gb", 3 << 29), ("500MB", 500 << 20), ("8KB", 8 << 10), ("7", 7 << 20)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "0GB", "-1MB", "1TB", "much", "9999999999GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"not an amount|out of range"):
        parse_size(text)
