"""The locks under test, by name: what `--backend` takes and `lockcheck list` shows."""

from __future__ import annotations

from lockcheck.backends import redis_naive, redis_single, redlock
from lockcheck.backends.base import Backend

BACKENDS: dict[str, Backend] = {
    backend.name: backend
    for backend in (
        redis_naive.BACKEND,
        redis_single.REDIS,
        redis_single.REDIS_FENCED,
        redlock.BACKEND,
    )
}

__all__ = ["BACKENDS", "Backend"]
