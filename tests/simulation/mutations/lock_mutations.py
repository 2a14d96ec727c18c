"""Ways of spoiling what a lock did in a good history."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec.structs import replace

from lockcheck.checker import Code
from lockcheck.history import EventType, F, History, Hold, Operation
from lockcheck.history.event import NS_PER_MS
from tests.simulation.mutations.tape import (
    JUST_AFTER_NS,
    Mutation,
    Spoil,
    Tape,
    next_event_ns,
    own,
    takeovers,
)


def an_answer_moves_into_another_hold(history: History) -> Iterator[Spoil]:
    """Effective: the acquire was under way during the other hold, which lasted on after it."""
    for earlier, later in takeovers(history):
        since_ns = max(earlier.start_ns, later.acquire.start_ns)
        if since_ns + 1 < earlier.end_ns < later.end_ns:
            yield partial(_granted_at, history, later, since_ns + 1)


def _granted_at(history: History, hold: Hold, at_ns: int) -> History:
    tape, answer = Tape(history), hold.acquire.answer
    assert answer
    queued = [
        e
        for e in history.events
        if e.f == "queued" and e.process == hold.process and at_ns <= e.time <= answer.time
    ]
    for notice in queued:
        tape.put(notice)
    tape.put(answer, replace(answer, time=at_ns))
    return tape.done()


def a_release_moves_into_the_next_hold(history: History) -> Iterator[Spoil]:
    """Effective: the client did nothing else until the next hold had begun."""
    for earlier, later in takeovers(history):
        free_ns = next_event_ns(history, earlier.process, _answered_ns(earlier))
        if later.start_ns + 2 < min(free_ns, later.end_ns):
            yield partial(_released_in, history, earlier, later)


def _released_in(history: History, earlier: Hold, later: Hold) -> History:
    tape = Tape(history)
    assert earlier.release
    tape.move(earlier.release, later.start_ns + 1, later.start_ns + 2)
    return tape.done()


def a_release_is_dropped(history: History) -> Iterator[Spoil]:
    """Effective: the next one was let in well before the lease of this one was over."""
    lease_ns = (history.terms.ttl_ms or 0) * NS_PER_MS
    for earlier, later in takeovers(history):
        renewed_ns = [renewal.start_ns for renewal in earlier.renewals if renewal.ok]
        promised_ns = max(earlier.acquire.start_ns, *renewed_ns, 0) + lease_ns
        if later.start_ns < promised_ns - lease_ns // 10:
            yield partial(_without_release, history, earlier)


def _without_release(history: History, hold: Hold) -> History:
    tape = Tape(history)
    assert hold.release
    tape.drop(hold.release)
    return tape.done()


def a_token_is_repeated(history: History) -> Iterator[Spoil]:
    """Effective: the earlier one was known before the later one was asked for."""
    for n, later in enumerate(history.holds):
        before = [hold for hold in history.holds[:n] if hold.start_ns < later.acquire.start_ns]
        for earlier in before[-1:]:
            yield partial(_with_token, history, later, earlier.token)


def a_token_is_lower(history: History) -> Iterator[Spoil]:
    """Effective: as above; the first token is 1, so this one is below all that there were."""
    for n, later in enumerate(history.holds):
        if any(hold.start_ns < later.acquire.start_ns for hold in history.holds[:n]):
            yield partial(_with_token, history, later, 0)


def two_tokens_are_swapped(history: History) -> Iterator[Spoil]:
    """Effective: the later of the two was asked for when the earlier one had been granted."""
    for n, later in enumerate(history.holds):
        for earlier in history.holds[:n]:
            if earlier.start_ns < later.acquire.start_ns:
                yield partial(_swapped_tokens, history, earlier, later)


def _with_token(history: History, hold: Hold, token: int | None) -> History:
    tape = Tape(history)
    _set_token(tape, hold, token)
    return tape.done()


def _swapped_tokens(history: History, one: Hold, other: Hold) -> History:
    tape = Tape(history)
    _set_token(tape, one, other.token)
    _set_token(tape, other, one.token)
    return tape.done()


def _set_token(tape: Tape, hold: Hold, token: int | None) -> None:
    answer = hold.acquire.answer
    assert answer
    tape.put(answer, replace(answer, token=token))


def a_grant_becomes_a_refusal(history: History) -> Iterator[Spoil]:
    """Effective: its client reads or writes afterwards."""
    for hold in history.holds:
        if own(history, hold, F.READ) or own(history, hold, F.WRITE):
            yield partial(_refused, history, hold)


def _refused(history: History, hold: Hold) -> History:
    tape, answer = Tape(history), hold.acquire.answer
    assert answer
    tape.put(answer, replace(answer, type=EventType.FAIL, token=None, valid_ms=None))
    return tape.done()


def two_answers_are_swapped(history: History) -> Iterator[Spoil]:
    """Effective: whoever was granted it, and is refused now, writes afterwards all the same."""
    for hold in history.holds:
        others = (o for o in refusals(history) if o.process != hold.process)
        if own(history, hold, F.WRITE):
            yield from (partial(_swapped_answers, history, hold, other) for other in others)


def _swapped_answers(history: History, hold: Hold, refused: Operation) -> History:
    """Each is told what the other one was, at its own time."""
    tape, yes, no = Tape(history), hold.acquire.answer, refused.answer
    assert yes
    assert no
    tape.put(yes, replace(no, time=yes.time, process=yes.process, node=yes.node))
    tape.put(no, replace(yes, time=no.time, process=no.process, node=no.node))
    return tape.done()


def a_refusal_becomes_a_grant(history: History) -> Iterator[Spoil]:
    """Effective: somebody else certainly held it then, and still does when this one, which would
    have asked once more, releases it."""
    for refused in refusals(history):
        assert refused.answer
        at_ns = refused.answer.time
        inside = [h for h in history.holds if h.start_ns < at_ns < h.end_ns]
        again_ns = next_event_ns(history, refused.process, at_ns)
        later = [
            o for o in refusals(history) if o.process == refused.process and o.start_ns == again_ns
        ]
        if inside and later and again_ns < inside[0].end_ns:
            yield partial(_granted, history, refused, later[0])


def _granted(history: History, refused: Operation, later: Operation) -> History:
    """With a token of its own, above all others; the next attempt becomes the release."""
    tape, answer = Tape(history), refused.answer
    assert answer
    assert later.answer
    tape.put(answer, replace(answer, type=EventType.OK, error=None, token=len(history.events)))
    tape.put(later.invoke, replace(later.invoke, f=F.RELEASE, ttl_ms=None))
    tape.put(later.answer, replace(later.answer, f=F.RELEASE))
    return tape.done()


def refusals(history: History) -> list[Operation]:
    return [o for o in history.operations if o.f == F.ACQUIRE and o.failed]


def a_renewal_comes_late(history: History) -> Iterator[Spoil]:
    """Effective: the other one asked after this one had been granted it, so it came later for
    certain; and this one did nothing else until then. It renews, is told that it may, and only
    then releases."""
    for earlier, later in takeovers(history):
        free_ns = next_event_ns(history, earlier.process, _answered_ns(earlier))
        came_later = earlier.start_ns < later.acquire.start_ns
        if earlier.renewals and came_later and later.start_ns + 4 * JUST_AFTER_NS < free_ns:
            yield partial(_renewed_in, history, earlier, later)


def _renewed_in(history: History, earlier: Hold, later: Hold) -> History:
    tape, at_ns = Tape(history), later.start_ns
    assert earlier.release
    tape.move(earlier.renewals[-1], at_ns + JUST_AFTER_NS, at_ns + 2 * JUST_AFTER_NS)
    tape.move(earlier.release, at_ns + 3 * JUST_AFTER_NS, at_ns + 4 * JUST_AFTER_NS)
    return tape.done()


def _answered_ns(hold: Hold) -> int:
    assert hold.release
    assert hold.release.answer
    return hold.release.answer.time


LOCK_MUTATIONS: dict[Mutation, Code] = {
    an_answer_moves_into_another_hold: Code.OVERLAP,
    a_release_moves_into_the_next_hold: Code.OVERLAP,
    a_release_is_dropped: Code.NOT_LINEARIZABLE,
    a_token_is_repeated: Code.TOKEN_REGRESSION,
    a_token_is_lower: Code.TOKEN_REGRESSION,
    two_tokens_are_swapped: Code.TOKEN_REGRESSION,
    two_answers_are_swapped: Code.UNLOCKED_SECTION,
    a_refusal_becomes_a_grant: Code.OVERLAP,
    a_grant_becomes_a_refusal: Code.UNLOCKED_SECTION,
    a_renewal_comes_late: Code.REVIVED,
}
