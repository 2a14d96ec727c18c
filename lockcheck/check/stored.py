"""What was found in a stored run."""

from __future__ import annotations

from pathlib import Path

from lockcheck.check.loading import loaded
from lockcheck.check.minimizing import main_finding
from lockcheck.check.patience import FOR_A_RUN_MS, patient_for
from lockcheck.check.recheck import judged, run_folder
from lockcheck.errors import UserError
from lockcheck.formats import ReadOptions


def violation_of(run: str, out: Path) -> tuple[str, str]:
    """The code and the blame of its worst violation."""
    store = run_folder(run, out)
    source = str(store.history) if store else run
    with loaded(source, ReadOptions()) as found:
        main = main_finding(judged(found.history, patient_for(FOR_A_RUN_MS)))
    if main is None:
        raise UserError(f"{run} has no violation", cure="name a run that broke")
    return str(main.code), str(main.blame.who)
