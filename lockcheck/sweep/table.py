"""The surface as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.sweep.surface import Crash, Field, Surface, written

WIDTH = 15
LEASE = 8


def table(surface: Surface) -> Iterator[str]:
    yield f"{'':<{LEASE}}a holder stands still for"
    pauses = "".join(f"{written(ms):<{WIDTH}}" for ms in surface.pauses)
    yield f"{'TTL':<{LEASE}}{pauses}gone after a crash"
    for ttl_ms in surface.ttls:
        fields = (surface.field(ttl_ms, ms) for ms in surface.pauses)
        row = "".join(f"{share(field):<{WIDTH}}" for field in fields)
        yield f"{written(ttl_ms):<{LEASE}}{row}{gone(surface.crash(ttl_ms))}"


def share(field: Field | None) -> str:
    """As in "1/3 6-79 %": so many of the runs broke, with the 95 % interval of their share."""
    if field is None:
        return "not possible"
    if not field.answers:
        return "no answer" if field.outcome.results else "-"
    return f"{field.broke}/{field.answers} {field.range.replace(' to ', '-')}"


def gone(crash: Crash | None) -> str:
    """As in "3.9 s, at most 4.1 s": the median and the longest; once, if they read the same."""
    if crash is None or crash.median_ms is None or crash.longest_ms is None:
        return "not known"
    usual, longest = written(crash.median_ms), written(crash.longest_ms)
    return usual if usual == longest else f"{usual}, at most {longest}"
