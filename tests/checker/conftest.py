"""Hypothesis on a busy machine: slow is no failure, and `tmp_path` may be used again."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "lockcheck",
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("lockcheck")
