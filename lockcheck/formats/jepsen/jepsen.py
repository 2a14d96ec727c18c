"""What all of Jepsen's formats share: lines that begin and end operations become our events.

- A process that is a number or a string (`0`, `"worker-3"`) is a client. A keyword is not:
  `:nemesis`, or an unknown one, which the user is warned of. What it did is kept as a notice of the
  nemesis that neither blames nor excuses: there is no proof that its faults took effect. Any other
  process (`true`, `nil`, a number beyond 64 bits) is refused.
- Without `:time` only the order in the file counts. It is correct, but has no milliseconds, so no
  lease can be judged by it.
- Older Jepsens stamp each thread by itself, so times may go back between threads (never within
  one): then the events are sorted by their times. Both orders are correct.
- The value of an answer counts for a read; all other operations are what was invoked. The value of
  an `:info` or a `:fail` (`:timed-out`) is its error.
- The token of a granted acquire is its `:token` or `:fence`, or that in the map that is its value,
  or a number that is its value if the invocation had none. Numbers that never change for a client
  and differ between clients are the clients' names instead. The fence 0 means none in Hazelcast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from lockcheck.errors import HistoryError
from lockcheck.formats.jepsen.jepsen_keys import ASKS_NOTHING, Keys, keys_of
from lockcheck.formats.jepsen.jepsen_op import NEMESIS_PROCESS, JepsenOp, error_text, token_in
from lockcheck.formats.names import LOCKING
from lockcheck.formats.tables.cells import LARGEST_NUMBER, NO_PAIR, is_pair
from lockcheck.history.event import NEMESIS, Event, EventType, F

ECHOED = LOCKING | {F.WRITE, F.CAS, F.ADD}  # the answer repeats the argument
INVOKE, OK, INFO = EventType.INVOKE, EventType.OK, EventType.INFO


class Translated(NamedTuple):
    events: list[Event]
    timed: bool  # False: the times are only numbers of lines
    strangers: Counter[str]  # operations by process that is neither client nor nemesis


def events_of_ops(ops: Iterable[JepsenOp], source: str) -> Translated:
    """Translates all operations of a history."""
    pairing = _Pairing(source)
    for op in ops:
        pairing.add(op)
    if not pairing.ops:
        raise HistoryError("it contains no operations", source=source)
    keys = keys_of(pairing.ops, pairing.invokes)
    translate = _Translation(source, keys, _numbers_are_tokens(pairing, keys)).event
    events = [
        translate(op, invoke, time_ns)
        for op, invoke, time_ns in zip(pairing.ops, pairing.invokes, pairing.times, strict=True)
    ]
    if not pairing.in_order:
        events.sort(key=attrgetter("time"))
    return Translated(events, bool(pairing.timed), _strangers(pairing.ops))


def _strangers(ops: Iterable[JepsenOp]) -> Counter[str]:
    processes = (str(op.process) for op in ops if not op.by_client)
    return Counter(process for process in processes if process != NEMESIS_PROCESS)


@dataclass(slots=True)
class _Pairing:
    """Finds the invocation of each answer, and refuses what a client cannot have done."""

    source: str
    ops: list[JepsenOp] = field(default_factory=list)
    invokes: list[JepsenOp | None] = field(default_factory=list)  # parallel to `ops`
    times: list[int] = field(default_factory=list)
    timed: bool | None = None
    in_order: bool = True
    _open: dict[int | str, JepsenOp] = field(default_factory=dict)
    _last_ns: dict[int | str, int] = field(default_factory=dict)

    def add(self, op: JepsenOp) -> None:
        time_ns = self._time(op)
        invoke = self._paired(op, time_ns) if op.by_client else None
        if self.times and time_ns < self.times[-1]:
            self.in_order = False
        self.ops.append(op)
        self.invokes.append(invoke)
        self.times.append(time_ns)

    def _time(self, op: JepsenOp) -> int:
        if self.timed is None:
            self.timed = op.time_ns is not None
        if self.timed != (op.time_ns is not None):
            raise self._error(op, "some operations have a time and some have none")
        return len(self.times) if op.time_ns is None else op.time_ns

    def _paired(self, op: JepsenOp, time_ns: int) -> JepsenOp | None:
        process = op.process
        if time_ns < self._last_ns.get(process, time_ns):
            raise self._error(op, f"its time is before that of process {process}'s line above")
        self._last_ns[process] = time_ns
        if op.type is INVOKE:
            if process in self._open:
                raise self._error(op, f"process {process} has an open operation already")
            self._open[process] = op
            return op
        invoke = self._open.get(process)
        if invoke is not None and invoke.f == op.f:
            return self._open.pop(process)
        if op.type is not INFO:
            raise self._error(
                op, f"process {process} has an answer to a {op.f} that it never invoked"
            )
        return None

    def _error(self, op: JepsenOp, reason: str) -> HistoryError:
        return HistoryError(reason, source=self.source, line=op.line, column=op.column)


@dataclass(frozen=True, slots=True)
class _Translation:
    """Turns lines into our events, once it is known what their values mean."""

    source: str
    keys: Keys
    numbers_are_tokens: bool

    def event(self, op: JepsenOp, invoke: JepsenOp | None, time_ns: int) -> Event:
        if not op.by_client:
            return Event(time_ns, NEMESIS, INFO, op.f, value=op.value, error=op.error)
        return Event(
            time_ns,
            op.process,
            op.type,
            op.f,
            self.keys.key(invoke or op),
            self._value(op, invoke),
            op.node,
            self._token(op, invoke),
            op.error if op.error is not None else _error_in_value(op, invoke),
            of=op.of if op.f == F.RENEW else None,
            shared=op.shared and op.f == F.ACQUIRE and op.type is INVOKE,
            unsaid=op.unsaid and op.f == F.RELEASE and op.type is OK,
        )

    def _value(self, op: JepsenOp, invoke: JepsenOp | None) -> object:
        if op.type is INVOKE:
            value = self.keys.value(op)
            if op.f == F.CAS:
                return self._cas(op, value)
            return None if op.f in ASKS_NOTHING else value
        if op.type is OK and invoke is not None and op.f not in ECHOED:
            return self.keys.value(op)
        return None

    def _cas(self, op: JepsenOp, value: object) -> object:
        if is_pair(value):
            return value
        if isinstance(value, dict):
            for old, new in (("old", "new"), (":old", ":new")):
                if old in value and new in value:
                    return [value[old], value[new]]
        raise self._error(op, NO_PAIR)

    def _token(self, op: JepsenOp, invoke: JepsenOp | None) -> int | None:
        if op.type is not OK or op.f != F.ACQUIRE or invoke is None:
            return None
        token = op.token if op.token is not None else token_in(self.keys.value(op))
        if token is None and self.numbers_are_tokens:
            token = _number_in_answer(op, invoke, self.keys)
        if token is not None and abs(token) > LARGEST_NUMBER:
            raise self._error(op, f"a token beyond 64 bits: {str(token)[:40]}")
        return token

    def _error(self, op: JepsenOp, reason: str) -> HistoryError:
        return HistoryError(reason, source=self.source, line=op.line, column=op.column)


def _error_in_value(op: JepsenOp, invoke: JepsenOp | None) -> str | None:
    """The error that older Jepsens put where the value was, as `:timed-out`."""
    if op.type is INVOKE or op.type is OK or op.value is None:
        return None
    return None if invoke is not None and op.value == invoke.value else error_text(op.value)


# --- tokens ----------------------------------------------------------------------------------


def _number_in_answer(op: JepsenOp, invoke: JepsenOp, keys: Keys) -> int | None:
    number = keys.value(op)
    if type(number) is not int or op.value == invoke.value:
        return None
    return number if keys.value(invoke) is None else None


def _numbers_are_tokens(pairing: _Pairing, keys: Keys) -> bool:
    """Whether numbers in answers are tokens; they are not if they look like the clients' names."""
    answered: defaultdict[int | str, list[int]] = defaultdict(list)
    for op, invoke in zip(pairing.ops, pairing.invokes, strict=True):
        if op.type is OK and op.f == F.ACQUIRE and invoke is not None:
            number = _number_in_answer(op, invoke, keys)
            if number is not None:
                answered[op.process].append(number)
    if all(len(numbers) == 1 for numbers in answered.values()):
        return True
    names = [set(numbers) for numbers in answered.values()]
    constant = all(len(numbers) == 1 for numbers in names)
    return not (constant and len(set().union(*names)) == len(names))
