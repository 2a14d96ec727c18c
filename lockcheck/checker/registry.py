"""`CHECKS`: the checks that `judge` runs, those of installed packages among them."""

from __future__ import annotations

from lockcheck.checker.check import Check
from lockcheck.plugins import Registry

CHECKS = Registry(
    "lockcheck.checks",
    Check,
    "lockcheck.checker.judges",
    {
        "overlap": "overlap:CHECK",
        "stale-write": "stale_write:CHECK",
        "lost-update": "lost_update:CHECK",
        "stale-read": "stale_read:CHECK",
        "token-regression": "token_regression:CHECK",
        "foreign-release": "foreign_release:CHECK",
        "unlocked-section": "unlocked_section:CHECK",
        "silent-loss": "silent_loss:CHECK",
        "revived": "revived:CHECK",
        "double-run": "double_run:CHECK",
        "stuck": "stuck:CHECK",
        "denied": "denied:CHECK",
        "deadlock": "deadlock:CHECK",
        "unfair": "unfair:CHECK",
        "not-linearizable": "not_linearizable:CHECK",
    },
)
