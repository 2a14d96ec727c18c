"""The limit of all searches together, however long reading the history took."""

from __future__ import annotations

import time

import pytest

from lockcheck.check.patience import patient_for


def test_it_begins_with_the_first_search(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    patience = patient_for(2_000)
    now_s = 1_000.0
    assert patience.may_go_on()
    now_s += 1.9
    assert patience.may_go_on()
    now_s += 0.2
    assert not patience.may_go_on()
