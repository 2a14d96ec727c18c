"""Stretches of a key's writes in which one was based on an older value, or may have been stale; and
which therefore are judged event by event, each of them by itself."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from lockcheck.checker.columns.stored import Stored, bases, tuples
from lockcheck.checker.evidence.writes import Stretches
from lockcheck.history.scan import Scan
from lockcheck.history.table import NO_TOKEN, NOTHING, Ints, Mask, Op, Outcome


@dataclass(frozen=True, slots=True)
class Suspected:
    """Places of accepted writes, from the first to the last, that can be judged by themselves: all
    that came later descends from the last of them, or from later ones."""

    accepted: Stored
    stretches: list[tuple[int, int]]
    reads: list[int]  # rows of what writes were based on that were based on an older value

    def groups(self, scan: Scan) -> list[Ints]:
        """Rows of the writes, and of the holds that they belong to."""
        granted, ended = scan.holds.granted, scan.holds.ended
        found = []
        for first, last in self.stretches:
            of = self.accepted.hold[first : last + 1]
            rows = np.concatenate((self.accepted.row[first : last + 1], granted[of], ended[of]))
            found.append(np.unique(rows[rows >= 0]))
        return found

    @property
    def entries(self) -> Ints:
        """Their entries in the storage's ledger."""
        parts = [self.accepted.entry[first : last + 1] for first, last in self.stretches]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def by_key(self, scan: Scan) -> Stretches:
        found: dict[str, list[tuple[int, int]]] = {}
        for first, last in self.stretches:
            key = scan.table.symbols.value(int(self.accepted.key[first]))
            seqs = (int(self.accepted.seq[first]), int(self.accepted.seq[last]))
            found.setdefault(str(key or ""), []).append(seqs)
        return found


def suspected(scan: Scan, accepted: Stored) -> Suspected | None:
    """Stretches that may be wrong. None: a write was based on nothing that is known."""
    first, odd = _first(accepted), _odd(accepted)
    if (accepted.base[odd] == NOTHING).any():
        return None
    parents = _parents(accepted, odd)
    if parents is None:
        return None
    pairs = sorted([*zip(parents, odd.tolist(), strict=True), *_stale(scan, accepted, first)])
    stretches: list[tuple[int, int]] = []
    for begin, end in pairs:
        if stretches and begin <= stretches[-1][1]:
            stretches[-1] = stretches[-1][0], max(end, stretches[-1][1])
        else:
            stretches.append((begin, end))
    return Suspected(accepted, stretches, _reads(scan, accepted, odd))


def _parents(accepted: Stored, odd: Ints) -> list[int] | None:
    """Where what each was based on had been written for the last time before."""
    wanted = np.flatnonzero(np.isin(accepted.value, accepted.base[odd]))
    written: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for key, value, place in tuples(accepted.key[wanted], accepted.value[wanted], wanted):
        written[key, value].append(place)
    parents = []
    for at in odd.tolist():
        places = written[int(accepted.key[at]), int(accepted.base[at])]
        earlier = bisect_left(places, at)
        if not earlier:
            return None
        parents.append(places[earlier - 1])
    return parents


def all_follow(scan: Scan, accepted: Stored) -> bool:
    """Without a ledger: none was based on an older value, or may have been stale."""
    held = accepted.take(accepted.hold >= 0)
    return not _stale(scan, held, _first(held)) and not _any_older_base(scan, accepted)


def _any_older_base(scan: Scan, accepted: Stored) -> bool:
    """A base that no answer confirms as written shows nothing; where a write of it was sent and not
    answered, the base of that write counts instead."""
    table = scan.table
    sent = np.flatnonzero((table.f == Op.WRITE) & (table.outcome == Outcome.INFO))
    values = tuples(table.key[sent], table.argument[sent])
    meant = dict(zip(values, bases(scan, sent).tolist(), strict=True))
    begun = dict(zip(accepted.key[::-1].tolist(), accepted.base[::-1].tolist(), strict=True))
    places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, value in enumerate(tuples(accepted.key, accepted.value)):
        places[value].append(place)
    for at in _odd(accepted).tolist():
        key, base, tried = int(accepted.key[at]), int(accepted.base[at]), set[int]()
        while not (earlier := bisect_left(places[key, base], at)) and base not in tried:
            tried.add(base)
            base = meant.get((key, base), base)
        unknown = NOTHING in (base, begun[key]) or base == begun[key]
        if places[key, base][earlier - 1] < at - 1 if earlier else unknown:
            return True
    return False


def _first(accepted: Stored) -> Mask:
    """Of its key."""
    return np.append(True, accepted.key[1:] != accepted.key[:-1])[: len(accepted)]


def _odd(accepted: Stored) -> Ints:
    """Based on something else than what was written before."""
    before = np.append(NOTHING, accepted.value[:-1])[: len(accepted)]
    other = (accepted.base != before) | (accepted.base == NOTHING)
    return np.flatnonzero(~_first(accepted) & other)


def _stale(scan: Scan, accepted: Stored, first: Mask) -> list[tuple[int, int]]:
    """Writes after one by a client that asked later, or had a higher token; each with that one."""
    granted = scan.holds.granted[accepted.hold]
    asked, token = scan.table.start[granted], scan.table.token[granted]
    began, group = scan.holds.start[accepted.hold], np.cumsum(first, dtype=np.int64)
    latest, highest = _highest_before(asked, group, first), _highest_before(token, group, first)
    later = (latest >= 0) & (asked[latest] > began)
    above = (highest >= 0) & (token != NO_TOKEN) & (token[highest] > token)
    at = np.flatnonzero(later | above)
    tokens = np.where(token[highest[at]] == NO_TOKEN, latest[at], highest[at])
    return list(zip(np.minimum(latest[at], tokens).tolist(), at.tolist(), strict=True))


def _highest_before(value: Ints, group: Ints, first: Mask) -> Ints:
    """The place of the highest of those above in the same group, the last of equal ones; or -1."""
    if len(value) == 0:
        return value
    rank = np.unique(value, return_inverse=True)[1].astype(np.int64)
    word = group * (len(rank) + 1) + rank
    place = np.maximum.accumulate(
        np.where(word == np.maximum.accumulate(word), np.arange(len(word)), -1)
    )
    before = np.append(-1, place[:-1])
    return np.where(first, -1, before)


def _reads(scan: Scan, accepted: Stored, odd: Ints) -> list[int]:
    """The last read of each one's client that returned what it was based on."""
    table = scan.table
    wanted = np.isin(table.result, accepted.base[odd])
    rows = np.flatnonzero(wanted & (table.f == Op.READ) & (table.outcome == Outcome.OK))
    known: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for *what, place in tuples(table.process[rows], table.key[rows], table.result[rows], rows):
        known[tuple(what)].append(place)
    found = []
    for at in odd.tolist():
        row = int(accepted.row[at])
        read = (int(table.process[row]), int(accepted.key[at]), int(accepted.base[at]))
        earlier = bisect_left(known[read], row)
        found += known[read][earlier - 1 : earlier]
    return found
