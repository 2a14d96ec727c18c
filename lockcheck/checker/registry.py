"""`CHECKS`: the checks that `judge` runs, and what `lockcheck explain` knows."""

from __future__ import annotations

from lockcheck.checker.check import Check
from lockcheck.checker.judges import (
    deadlock,
    double_run,
    foreign_release,
    lost_update,
    not_linearizable,
    overlap,
    revived,
    silent_loss,
    stale_write,
    stuck,
    token_regression,
    unfair,
    unlocked_section,
)

CHECKS: dict[str, Check] = {
    check.code.value: check
    for check in (
        overlap.CHECK,
        stale_write.CHECK,
        lost_update.CHECK,
        token_regression.CHECK,
        foreign_release.CHECK,
        unlocked_section.CHECK,
        silent_loss.CHECK,
        revived.CHECK,
        double_run.CHECK,
        stuck.CHECK,
        deadlock.CHECK,
        unfair.CHECK,
        not_linearizable.CHECK,
    )
}
