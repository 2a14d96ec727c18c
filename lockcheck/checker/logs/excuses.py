"""What may explain a mistake in the answers of an object, so that it proves nothing.

- What was under way when a production log was cut is missing in it (`unlogged`).
- A refused release shows that the lock was gone by then: perhaps by the same release, sent twice.
- Where a production log mentions no lease, a holder may have had one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lockcheck.checker.doubt import DoubtCode
from lockcheck.checker.evidence.promise import lease_ns
from lockcheck.checker.linearizability import Model, Patience, decide
from lockcheck.checker.logs.beforehand import explained
from lockcheck.checker.logs.releases import unconfirmed
from lockcheck.checker.logs.unlogged import Unlogged, unlogged, with_unlogged
from lockcheck.history import Terms
from lockcheck.history.table import NEVER, Codes, Ints, Mask, Op, Outcome, Table, among
from lockcheck.words import natural

Reading: TypeAlias = tuple[Table, Ints | None]  # operations, and until when each was promised


@dataclass(frozen=True, slots=True)
class Excuse:
    code: DoubtCode
    clients: tuple[int, ...] = ()  # symbols of those of which an operation may be missing


@dataclass(frozen=True, slots=True)
class Excuses:
    table: Table
    until: Ints | None
    model: Model
    terms: Terms
    patience: Patience
    last: dict[int, int]  # when the last row of each process was done
    may_be_done: Callable[[Ints], Mask]  # of rows of refused releases

    def of(self, keys: list[int]) -> dict[int, tuple[Excuse, ...]]:
        """The keys whose mistakes something explains, and what: the first that does."""
        rows = np.flatnonzero(np.isin(self.table.key, keys))
        read = self.table.take(rows), None if self.until is None else self.until[rows]
        found: dict[int, tuple[Excuse, ...]] = {}
        # A promise that ended otherwise mentions no lease.
        leased = np.unique(read[0].key[lease_ns(read[0], self.terms.ttl_ms) > 0])
        leased_keys = frozenset(leased.tolist())
        excuse = {
            key: Excuse(DoubtCode.MAYBE_RELEASED if key in leased_keys else DoubtCode.MAYBE_LEASED)
            for key in keys
        }
        lenient = self._leniently(read, rows, leased)
        if lenient is not None:
            found = {key: (excuse[key],) for key in self._explained(lenient, keys)}
        found |= self._unlogged(read, [key for key in keys if key not in found])
        left = [key for key in keys if key not in found]
        both = {} if lenient is None else self._unlogged(lenient, left)
        return found | {key: (excuse[key], *each) for key, each in both.items()}

    def _leniently(self, read: Reading, rows: Ints, leased: Codes) -> Reading | None:
        """None: no other reading is known."""
        table, until = read
        if not self.model.owners:
            return None
        refused = (table.f == Op.RELEASE) & (table.outcome == Outcome.FAIL)
        refused[refused] = self.may_be_done(rows[refused])
        endless = among(table.f, (Op.ACQUIRE, Op.RENEW)) & (table.outcome == Outcome.OK)
        endless &= ~np.isin(table.key, leased)
        endless &= self.terms.partial
        if not (refused.any() or endless.any()):
            return None
        promised = np.full(len(table), NEVER) if until is None else until
        if endless.any():
            until = np.where(endless, table.end, promised)
        return unconfirmed(table, refused), until

    def _unlogged(self, reading: Reading, keys: list[int]) -> dict[int, tuple[Excuse, ...]]:
        """What operations explain that may be missing."""
        if not self.terms.partial or not keys:
            return {}
        table, until = reading
        missing = unlogged(table, self.model, self.last)
        if not len(missing):
            return {}
        explained = self._explained(with_unlogged(table, until, missing, self.model), keys)
        code = DoubtCode.MAYBE_UNLOGGED
        return {key: (Excuse(code, self._clients(reading, missing, key)),) for key in explained}

    def _clients(self, reading: Reading, missing: Unlogged, key: int) -> tuple[int, ...]:
        """Of which of them an operation has to be missing: of one alone, if that suffices."""
        table, until = reading
        places = sorted(
            (place for place, on in enumerate(missing.key) if on == key),
            key=lambda place: natural(str(table.symbols.value(missing.process[place]))),
        )
        for place in places:
            one = with_unlogged(table, until, missing.take([place]), self.model)
            if self._explained(one, [key]):
                return (missing.process[place],)
        return tuple(missing.process[place] for place in places)

    def _explained(self, reading: Reading, keys: list[int]) -> list[int]:
        """What cannot be decided may be explained, too."""
        table, until = reading
        rows = np.flatnonzero(np.isin(table.key, keys))
        promised = None if until is None else until[rows]
        part = table.take(rows)
        decision = decide(part, self.model, promised, self.patience)
        if self.terms.partial:
            decision = explained(decision, part, self.model, promised, self.patience)
        answers = decision.answers
        wrong = {key for key, answer in answers.items() if answer.linearizable is False}
        return [key for key in keys if key not in wrong]
