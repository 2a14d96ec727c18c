"""A search that was not waited for accuses nobody and clears nobody, however a history was read."""

from __future__ import annotations

import io
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockcheck.checker import Judgement, Patience, Verdict, judge, judge_scan
from lockcheck.errors import HistoryError
from lockcheck.history import Event, History, Terms
from lockcheck.history.event import encode_event, terms_event
from lockcheck.history.scan import scan
from tests.checker.columns.test_screens import Chaos

LINEARIZABILITY = "lockcheck.checker.linearizability"


@pytest.fixture(autouse=True, scope="module")
def asked_at_each_step() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(f"{LINEARIZABILITY}.search.search.core", lambda: None)
        patched.setattr(f"{LINEARIZABILITY}.search.python.PATIENCE_EVERY", 1)
        yield


def patient_for(steps: int) -> Patience:
    left = iter(range(steps))
    return Patience(lambda: next(left, None) is not None)


def under_few_names(chaos: Chaos, steps: int, tick_ns: int, *, partial: bool) -> list[Event]:
    """Clients go on under their names after what nobody answered, by a clock that is coarse."""
    terms = Terms(ttl_ms=1 if chaos.leases else None, partial=partial)
    told = [event for event in chaos.history(steps) if event.f != "terms"]
    return [terms_event(terms), *(_renamed(event, tick_ns) for event in told)]


def _renamed(event: Event, tick_ns: int) -> Event:
    time_ns, process = event.time - event.time % tick_ns, event.process
    if isinstance(process, int) and process < 1_000:
        process %= 4
    return msgspec.structs.replace(event, time=time_ns, process=process)


chaos = st.builds(
    Chaos,
    seed=st.integers(0, 2**32),
    keys=st.integers(1, 2),
    leases=st.booleans(),
    tokens=st.booleans(),
    wrong=st.sampled_from([0.03, 0.1, 0.4]),
)
SAME_OR_UNKNOWN = {verdict: {verdict, Verdict.UNKNOWN} for verdict in Verdict}


@given(chaos, st.integers(0, 40), st.sampled_from([1, 100_000]), st.booleans(), st.integers(0, 40))
def test_without_patience_it_is_the_same_or_unknown(
    chaos: Chaos, steps: int, tick_ns: int, partial: bool, patience: int
) -> None:
    events = under_few_names(chaos, steps, tick_ns, partial=partial)
    try:
        told = History.of(events)
    except HistoryError:
        return
    expected = SAME_OR_UNKNOWN[judge(told).verdict]
    assert judge(told, patient_for(patience)).verdict in expected
    assert by_columns(events, patience).verdict in expected


def by_columns(events: list[Event], patience: int) -> Judgement:
    text = b"".join(encode_event(event) + b"\n" for event in events)
    found = scan(lambda: io.BytesIO(text), "h")
    if found is None:  # there is no compiled reader, or it was not sure of something
        return judge(History.of(events), patient_for(patience))
    return judge_scan(found, patient_for(patience))
