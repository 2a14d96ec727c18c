"""Why a verdict is `unknown`, as data; `results/story/wording/doubts.py` has the words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from lockcheck.history import FaultSpan


class DoubtCode(StrEnum):
    """verdict.json has them under `doubt_codes`, and docs/verdicts.md explains each."""

    RUN_UNFINISHED = "run-unfinished"  # `reason`
    CHECK_CRASHED = "check-crashed"  # `check`, `reason`
    # The history is short:
    NO_OPERATIONS = "no-operations"
    NO_ANSWERS = "no-answers"
    FEW_KNOWN_OPERATIONS = "few-known-operations"  # `number`; `of`, where there are others
    ONE_CLIENT = "one-client"
    FEW_GRANTS = "few-grants"  # `number`, `of`
    FEW_HOLDERS = "few-holders"  # `number`
    NO_KEY_SHARED = "no-key-shared"  # by two clients, at whatever times
    FEW_WRITES = "few-writes"  # `number`, `of`
    # What the lock is for was not seen:
    PERMITS_UNUSED = "permits-unused"  # `number`, `of`
    NEVER_SHARED = "never-shared"
    NEVER_REENTERED = "never-reentered"
    # `key`, `length_ns`, `number`, `reason`:
    NOT_GRANTED_AFTER_HEALING = "not-granted-after-healing"
    # Faults:
    FAULT_UNPROVEN = "fault-unproven"  # `fault`
    FAULT_UNHEALED = "fault-unhealed"  # `fault`
    FAULT_NOT_INJECTED = "fault-not-injected"  # `asked`
    NO_HOLDER_STRUCK = "no-holder-struck"  # `asked`
    # The machine explains a finding:
    MACHINE_STALLED = "machine-stalled"  # `check`, `key`, `length_ns`; `node`, where one held it
    CLOCK_JUMPED = "clock-jumped"  # `check`, `key`, `node`
    # The difference of two clocks does:
    CLOCKS_APART = "clocks-apart"  # `clocks`
    CLOCKS_DRIFT = "clocks-drift"  # `check`, `key`, `node` that was let in, `length_ns`
    # The storage's ledger:
    LEDGER_MISSING = "ledger-missing"
    WRITE_NOT_REMEMBERED = "write-not-remembered"  # `node`, `key`, `seq`
    WRITE_NEVER_SENT = "write-never-sent"  # `process`, `seq`
    WRITE_CONTRADICTED = "write-contradicted"  # `node`, `key`, `seq`
    # Linearizability:
    MODEL_MISFIT = "model-misfit"  # `reason`
    UNDECIDED = "undecided"  # `key`, `model`, `reason`
    MAYBE_REENTRANT = "maybe-reentrant"  # `key`, `model`, `instead`
    MAYBE_LEASED = "maybe-leased"  # `key`; or held before the history began
    MAYBE_RELEASED = "maybe-released"  # `key`; by a release that was refused
    MAYBE_UNSEEN = "maybe-unseen"  # `key`, `length_ns`: a client that is missing in the log held it
    MAYBE_UNLOGGED = "maybe-unlogged"  # `key`, `node`: what was under way when the log was cut


TOO_SHORT = frozenset(
    {DoubtCode.FEW_GRANTS, DoubtCode.FEW_HOLDERS, DoubtCode.NO_KEY_SHARED, DoubtCode.FEW_WRITES}
)


@dataclass(frozen=True, slots=True)
class Ahead:
    """By how much the clock of a host is ahead of others, or behind them if negative."""

    node: str
    least_ns: int
    most_ns: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """What constant differences between the clocks of hosts explain."""

    apart_ns: int | None  # that everything fits with; None: no constants below a second do,
    ahead: tuple[Ahead, ...] = ()  # of the others, for certain; judged is with these clocks set
    decided: bool = True  # or none were found in the steps that a search may take


@dataclass(frozen=True, slots=True, repr=False)
class Doubt:
    """A reason for `unknown`. The comment beside each code names the fields that it uses."""

    code: DoubtCode
    key: str | None = None  # None: the only object of the history, which has no name
    node: str = ""
    process: int | str | None = None
    seq: int | None = None  # the storage's number of a write
    fault: FaultSpan | None = None
    clocks: Clocks | None = None
    asked: str = ""  # a fault, as it was asked for
    check: str = ""
    model: str = ""
    instead: str = ""  # another model, which fits
    number: int = 0
    of: int = 0  # how many it would take, or how many there are
    length_ns: int = 0
    reason: str = ""  # in the words of an engine, a server or an exception; nothing reads them

    def __repr__(self) -> str:
        used = ((f.name, getattr(self, f.name)) for f in fields(self)[1:])
        about = (f"{name}={value!r}" for name, value in used if value not in ("", None, 0))
        return f"Doubt({', '.join((self.code.value, *about))})"
