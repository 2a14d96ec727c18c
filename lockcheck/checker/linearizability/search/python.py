"""The general search in plain Python: just-in-time linearization (G. Lowe, 2017).

Returns are processed in their order. A configuration is a state, the set of the running operations
that have taken effect already (a mask), and the unconfirmed ones that have. An operation that
returns has to have taken effect: if it has not yet, operations take effect one after another until
it has, in all possible ways. Nothing takes effect earlier than that, except:

* An operation that only looks takes effect as soon as it is legal, and all that its client did
  before has. In any order, it can be moved to there: the state is the same with it and without.

What need not be tried, and why:

* Of equal operations that run at once, the one that returns first goes first. In an order where
  it does not, the two can change places: both ran at the earlier place, and the later place is
  before the earlier return. But not where their clients' own order says more than the times.
* An unconfirmed operation never takes effect where it would not change the state: leaving it out is
  as good. Of equal ones, the one that was called first goes first, as above.
* A configuration with the same mask as another one that used the same or fewer unconfirmed
  operations, and whose state is the same or allows more (`Rank`): what can follow here can follow
  there.

A lease that ends by itself is one more way to go on, like an operation that was called when the
promise was over.

The furthest configurations go on first, so that an order is found early if there are many. If too
many configurations wait, the earliest go on first, so that earlier places can be forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from lockcheck.checker.linearizability.answer import Patience
from lockcheck.checker.linearizability.search.plan import (
    ILLEGAL,
    LAPSE,
    NONE,
    Found,
    SearchPlan,
    Transitions,
)
from lockcheck.checker.linearizability.search.running import Running

MANY = 1_000_000  # configurations at once, above which the earliest go on first
BYTES = 350  # of each configuration, about
PATIENCE_EVERY = 4096


@dataclass(eq=False, slots=True)
class Configuration:
    place: int  # the next return, whose operation has not taken effect
    state: int
    mask: int
    used: int  # a bit for each unconfirmed operation, in the order of their calls
    parent: Configuration | None
    last: int  # what took effect last
    tried: int = 0  # how many ways to go on
    dominated: bool = False


@dataclass(slots=True)
class Frontier:
    """The configurations whose next return is the same."""

    seen: dict[tuple[int, int], list[Configuration]] = field(default_factory=dict)
    waiting: list[Configuration] = field(default_factory=list)
    first: int = 0  # the first one waiting that has ways left to try

    def next(self) -> Configuration | None:
        while self.first < len(self.waiting) and self.waiting[self.first].dominated:
            self.first += 1
        return self.waiting[self.first] if self.first < len(self.waiting) else None


class Search:
    def __init__(self, plan: SearchPlan, transitions: Transitions, many: int = MANY) -> None:
        self._kind = plan.kind.tolist()
        self._bit = [1 << slot for slot in plan.slot.tolist()]
        self._twin = plan.twin.tolist()
        self._called = plan.called.tolist()
        self._time = plan.time.tolist()
        self._looks = plan.looks.tolist()
        first, earlier = plan.first.tolist(), plan.earlier.tolist()
        self._earlier = [earlier[since:until] for since, until in pairwise(first)]
        self._transitions = transitions
        self._known: list[dict[int, int]] = [{} for _ in (*self._looks, LAPSE)]
        self._lapsed = NONE - 1 - len(plan.maybe)
        self._running = Running(plan)
        self._places: list[Frontier | None] = [None] * len(self._kind)
        self._calls = plan.calls.tolist()
        self._lowest = self._deepest = self._furthest = 0
        self._size = 0
        self._many = many
        self._shallow = self._done = False

    def run(self, patience: Patience) -> Found:
        self._dive(self._enter(None, 0, 0, 0, NONE))
        steps = 0
        while not self._done:
            steps += 1
            if self._size * BYTES > patience.most_bytes:
                return Found(linearizable=None, place=self._furthest, exhausted=True)
            if steps % PATIENCE_EVERY == 0 and not patience.may_go_on():
                return Found(linearizable=None, place=self._furthest)
            following = self._following()
            if following is None:
                return self._stuck()
            self._dive(self._try(following))
        return Found(linearizable=True, place=len(self._kind))

    def _stuck(self) -> Found:
        place = self._places[self._furthest]
        assert place is not None  # noqa: S101 - it is forgotten only when there is a further one
        best = max(place.waiting, key=lambda each: (each.mask.bit_count(), -each.used.bit_count()))
        states = {each.state: None for each in place.waiting if not each.dominated}
        return Found(
            linearizable=False, place=self._furthest, path=tuple(_path(best)), states=tuple(states)
        )

    def _following(self) -> Configuration | None:
        """The configuration that goes on next; None if there is none."""
        while self._lowest < self._furthest and not self._waiting(self._lowest):
            self._forget(self._lowest)
            self._lowest += 1
        self._shallow = self._size > (self._many // 2 if self._shallow else self._many)
        if self._shallow:
            return self._waiting(self._lowest)
        self._deepest = max(self._deepest, self._lowest)
        while self._deepest > self._lowest and not self._waiting(self._deepest):
            self._deepest -= 1
        return self._waiting(self._deepest)

    def _waiting(self, number: int) -> Configuration | None:
        place = self._places[number]
        return place.next() if place else None

    def _forget(self, number: int) -> None:
        place = self._places[number]
        if place is not None:
            self._size -= len(place.waiting)
            self._places[number] = None

    def _try(self, configuration: Configuration) -> Configuration | None:
        """Tries the next way to go on from a configuration."""
        self._running.move(configuration.place)
        writers, maybes = self._running.writers, self._running.maybes
        tried = configuration.tried
        configuration.tried += 1
        if tried < len(writers):
            return self._let(configuration, writers[tried])
        if tried < len(writers) + len(maybes):
            return self._let_maybe(configuration, maybes[tried - len(writers)])
        if tried == len(writers) + len(maybes):
            return self._let_lapse(configuration)
        place = self._places[configuration.place]
        assert place is not None  # noqa: S101 - it holds this very configuration
        place.first += 1
        return None

    def _dive(self, configuration: Configuration | None) -> None:
        """Lets what returns next take effect at once while it can: other ways are tried later."""
        while configuration is not None and not self._looks[self._kind[configuration.place]]:
            self._running.move(configuration.place)
            configuration.tried = 1
            configuration = self._let(configuration, configuration.place)

    def _let(self, before: Configuration, name: int) -> Configuration | None:
        """Lets an operation take effect, if it may."""
        if before.mask & self._bit[name] or self._is_behind(self._twin[name], before):
            return None
        if not self._may_begin(name, before.place, before.mask):
            return None
        after = self._step(self._kind[name], before.state)
        if after == ILLEGAL:
            return None
        return self._enter(before, after, before.mask | self._bit[name], before.used, name)

    def _is_behind(self, twin: int, before: Configuration) -> bool:
        """Whether an equal operation that returns earlier runs, too, and has not taken effect."""
        runs = twin >= before.place and self._running.is_called(twin)
        return runs and not before.mask & self._bit[twin]

    def _may_begin(self, name: int, place: int, mask: int) -> bool:
        """Whether all that its client did before has taken effect."""
        return all(each < place or mask & self._bit[each] for each in self._earlier[name])

    def _let_maybe(self, before: Configuration, number: int) -> Configuration | None:
        used = self._running.use_one_more(number, before.used)
        later = len(self._kind) + number
        if used is None or not self._may_begin(later, before.place, before.mask):
            return None
        after = self._step(self._running.maybe_kind[number], before.state)
        if after in (ILLEGAL, before.state):
            return None
        return self._enter(before, after, before.mask, used, NONE - 1 - number)

    def _let_lapse(self, before: Configuration) -> Configuration | None:
        _, _, promised = self._transitions.ranks[before.state]
        if promised > self._time[before.place]:
            return None
        after = self._step(LAPSE, before.state)
        return self._enter(before, after, before.mask, before.used, self._lapsed)

    def _enter(
        self, before: Configuration | None, state: int, mask: int, used: int, last: int
    ) -> Configuration | None:
        """The configuration that follows; None if it was seen before."""
        place = called = 0
        if before is not None:
            place, called = before.place, self._called[before.place]
            mask = self._with_looks(self._running.lookers, place, state, mask)
        place, mask = self._settle(place, state, mask, called)
        if place == len(self._kind):
            self._done = True
            return None
        return self._add(Configuration(place, state, mask, used, before, last))

    def _settle(self, place: int, state: int, mask: int, called: int) -> tuple[int, int]:
        """Goes past the returns of operations that have taken effect, up to one that has not."""
        while place < len(self._kind):
            until = self._called[place]
            mask = self._with_looks(self._calls[called:until], place, state, mask)
            if not mask & self._bit[place]:
                break
            mask ^= self._bit[place]
            called = until
            place += 1
        return place, mask

    def _with_looks(self, names: list[int], place: int, state: int, mask: int) -> int:
        for name in names:
            kind = self._kind[name] if name >= 0 else NONE
            if kind == NONE or not self._looks[kind] or not self._may_begin(name, place, mask):
                continue
            if self._step(kind, state) != ILLEGAL:
                mask |= self._bit[name]
        return mask

    def _step(self, kind: int, state: int) -> int:
        known = self._known[kind]
        after = known.get(state)
        if after is None:
            after = known[state] = self._transitions.step(kind, state)
        return after

    def _add(self, new: Configuration) -> Configuration | None:
        """Adds a configuration, unless one as good was seen (`_covers`)."""
        place = self._places[new.place]
        if place is None:
            place = self._places[new.place] = Frontier()
        number, *_ = self._transitions.ranks[new.state]
        alike = place.seen.setdefault((number, new.mask), [])
        if any(self._covers(other, new) for other in alike):
            return None
        for other in alike:
            other.dominated = other.dominated or self._covers(new, other)
        alike.append(new)
        place.waiting.append(new)
        self._size += 1
        self._deepest = max(self._deepest, new.place)
        self._furthest = max(self._furthest, new.place)
        return new

    def _covers(self, one: Configuration, other: Configuration) -> bool:
        """Whether `one` is as good as `other`; they are alike."""
        if one.used & ~other.used:
            return False
        _, token, promised = self._transitions.ranks[one.state]
        _, others_token, others_promise = self._transitions.ranks[other.state]
        return token <= others_token and promised <= others_promise


def _path(end: Configuration) -> list[tuple[int, int]]:
    """What took effect, and at which return."""
    path = []
    while end.parent is not None:
        path.append((end.last, end.parent.place))
        end = end.parent
    return path[::-1]
