"""Amounts of memory as people write them: `500MB`, `1.5GB`; a bare number is megabytes."""

from __future__ import annotations

import re

from lockcheck.errors import UserError

UNITS = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "": 1 << 20}


def parse_size(text: str) -> int:
    """Bytes in a text like `1.5GB`; raises UserError if it is not an amount of memory."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(kb|mb|gb|)", text.strip().lower())
    if match is None:
        raise UserError(f"{text!r} is not an amount of memory", cure="write it like 500MB or 2GB")
    size = round(float(match[1]) * UNITS[match[2]])
    if not 0 < size < 1 << 60:
        raise UserError(f"{text!r} is out of range", cure="give one like 500MB or 2GB")
    return size
