"""Which of a Jepsen history's operations concern the same object.

`:key` names it. Otherwise Jepsen's `independent` puts it into the value, as a pair of the key and
the actual value, which looks like any other vector of two. Values are taken for such pairs only if
all the evidence agrees: the value of every invocation is a vector of two, at least one of them can
be nothing else (a read, acquire or release with `[k nil]`, or a cas with `[k [old new]]`), and no
answer has another key than its invocation.

If the value of every acquire and release is a string or number, that is the name of the lock,
unless each client has its own: then it is the client's name, and the lock has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lockcheck.formats.jepsen.edn import Pair
from lockcheck.formats.jepsen.jepsen_op import JepsenOp, as_text
from lockcheck.formats.names import LOCKING
from lockcheck.formats.tables.cells import is_pair
from lockcheck.history.event import EventType, F

ASKS_NOTHING = LOCKING | {F.READ}


class Scheme(Enum):
    FIELD = "field"  # in `:key`, or there is only one object
    PAIRS = "pairs"
    LOCK_NAMES = "lock-names"


@dataclass(frozen=True, slots=True)
class Keys:
    """How a history names the object of an operation."""

    scheme: Scheme

    def key(self, invoke: JepsenOp) -> str | None:
        if self.scheme is Scheme.PAIRS and is_pair(invoke.value):
            return as_text(invoke.value[0])
        if self.scheme is Scheme.LOCK_NAMES and invoke.f in LOCKING:
            return as_text(invoke.value)
        return invoke.key

    def value(self, op: JepsenOp) -> object:
        if self.scheme is Scheme.PAIRS:
            return op.value[1] if is_pair(op.value) else None
        asks = op.f in LOCKING and op.type is EventType.INVOKE
        return None if asks and self.scheme is Scheme.LOCK_NAMES else op.value


def keys_of(ops: Sequence[JepsenOp], invokes: Sequence[JepsenOp | None]) -> Keys:
    asked = [op for op in ops if op.type is EventType.INVOKE and op.by_client]
    if any(op.key is not None for op in asked):
        return Keys(Scheme.FIELD)
    if _are_pairs(asked) and not _contradicted(ops, invokes):
        return Keys(Scheme.PAIRS)
    return Keys(Scheme.LOCK_NAMES if _are_lock_names(asked) else Scheme.FIELD)


def _are_pairs(asked: Sequence[JepsenOp]) -> bool:
    proven = False
    for op in asked:
        value = op.value
        if not isinstance(value, list) or len(value) != 2:
            return False
        cas = op.f == F.CAS and is_pair(value[1])
        asks = op.f in ASKS_NOTHING and value[1] is None
        proven = proven or cas or asks or isinstance(value, Pair)
    return proven


def _contradicted(ops: Sequence[JepsenOp], invokes: Sequence[JepsenOp | None]) -> bool:
    for op, invoke in zip(ops, invokes, strict=True):
        if op.type is not EventType.OK or invoke is None:
            continue
        if not is_pair(op.value) or not is_pair(invoke.value) or op.value[0] != invoke.value[0]:
            return True
    return False


def _are_lock_names(asked: Sequence[JepsenOp]) -> bool:
    users: defaultdict[str, set[int | str]] = defaultdict(set)
    used: defaultdict[int | str, set[str]] = defaultdict(set)
    for op in asked:
        if op.f not in LOCKING:
            continue
        if type(op.value) not in (str, int):
            return False
        name = as_text(op.value)
        users[name].add(op.process)
        used[op.process].add(name)
    shared = any(len(clients) > 1 for clients in users.values())
    return shared or any(len(names) > 1 for names in used.values())
