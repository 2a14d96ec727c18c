"""What judging returns: findings with evidence and blame, doubts, and the verdict of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from lockcheck.checker.doubt import Clocks, Doubt
from lockcheck.history import Effect, FaultSpan, Hold, Operation, Stall

if TYPE_CHECKING:  # engines take numpy, which clients of a run do without
    from lockcheck.checker.case import Case
    from lockcheck.checker.linearizability import Answer, Model
    from lockcheck.history.scan import Scan


class Verdict(StrEnum):
    OK = "ok"
    UNKNOWN = "unknown"
    VIOLATION = "violation"

    @staticmethod
    def merge(verdicts: Iterable[Verdict]) -> Verdict:
        """Violation beats unknown beats ok."""
        rank = list(Verdict)
        return max(verdicts, key=rank.index, default=Verdict.OK)

    @property
    def exit_code(self) -> int:
        return {Verdict.OK: 0, Verdict.VIOLATION: 1, Verdict.UNKNOWN: 3}[self]


class Code(StrEnum):
    """The codes that others ask for by name. A check may have any other text as its code."""

    OVERLAP = "overlap"
    STALE_WRITE = "stale-write"
    LOST_UPDATE = "lost-update"
    STALE_READ = "stale-read"
    TOKEN_REGRESSION = "token-regression"  # noqa: S105 - a fencing token is no password
    FOREIGN_RELEASE = "foreign-release"
    UNLOCKED_SECTION = "unlocked-section"
    SILENT_LOSS = "silent-loss"
    REVIVED = "revived"
    DOUBLE_RUN = "double-run"
    STUCK = "stuck"
    DENIED = "denied"
    DEADLOCK = "deadlock"
    UNFAIR = "unfair"
    NOT_LINEARIZABLE = "not-linearizable"


class Culprit(StrEnum):
    SERVICE = "service"  # it broke the promise of the lease
    HOLDER = "holder"  # it outlived its lease
    MACHINE = "machine"  # it stalled, or its clock stepped: no injected fault, and not the lock's
    CLIENT = "client"  # it took away, or overwrote, what was not its own
    STORAGE = "storage"  # it served an older value than it had accepted
    CLOCKS = "clocks"  # two clocks that differ a little explain it
    UNKNOWN = "unknown"  # from when the promise counted is not known, so neither who broke it


@dataclass(frozen=True, slots=True)
class Blame:
    """Who is at fault; of two holders, why the later one was let in while the other believed."""

    who: Culprit
    by_ns: int = 0  # service: let in this much too early; holder: believed this much too long
    promised_until_ns: int | None = None  # None: a lock without a lease promises until its release
    fault: FaultSpan | None = None  # the injected fault that explains it
    stalls: tuple[Stall, ...] = ()  # the machine's own hiccups that explain it
    release: Operation | None = None  # of another client's lock
    released_by: Hold | None = None
    ended_by: FaultSpan | None = None  # the end of the server, with which the session ended


@dataclass(frozen=True, slots=True)
class Reason:
    """What holds and operations do not show: one of the sentences in the check's file.

    The sentence may name `{hold}`, the finding's `{holds}`, `{operations}` and its length `{long}`,
    and `{number}`: as it is, as a time `{at}`, or as the time from then to the last request,
    `{before}`.
    """

    sentence: str
    hold: Hold | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Proof:
    """That no order of the operations explains the answers."""

    model: Model
    answer: Answer
    operations: dict[int, Operation]  # that the answer is about, by their rows


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly with its evidence."""

    code: str
    key: str
    time_ns: int  # the moment at which it became certain
    effect: Verdict  # on the verdict of the run
    holds: tuple[Hold, ...]  # those concerned, the earlier holder first
    operations: tuple[Operation, ...]  # reads, writes and releases at fault, in order
    length_ns: int  # how long two held it; how late the stale write or release came
    blame: Blame
    reasons: tuple[Reason, ...] = ()
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    operations: int
    acquisitions: int
    holders: int  # different nodes that were granted the lock
    faults: int  # proven ones
    writes_accepted: int
    writes_refused: int
    stale_writes_refused: int
    jobs_run: int = 0
    # Updates are accepted writes that were acknowledged to their clients; lost ones are those from
    # which the final state was not computed, directly or through other writes.
    updates_acknowledged: int = 0
    updates_lost: int = 0
    # The maximum for any one lock; a lower bound, where only places were looked at:
    held_together: int = 0  # clients that certainly held it at once, rightly or not
    shared_together: int = 0  # of those that share it
    entered_deepest: int = 0  # levels on which one client held it


@dataclass(frozen=True, slots=True)
class Definition:
    """What the two definitions of a violation find for one object: they do not always agree."""

    key: str
    model: str
    engine: str  # which of them decided: "sweep", "zones", "search"
    linearizable: Verdict  # unknown: it could not be decided
    overlaps: int | None  # of certain holds; None: the object is no lock
    reason: str = ""  # the engine's: why there is no order, or why it could not be decided


@dataclass(frozen=True, slots=True)
class Freed:
    """A hold whose client was ended or cut off, and when another client was granted the lock."""

    key: str
    node: str  # that held it
    effect: Effect  # ends or cuts
    ended_ns: int  # when that worked
    granted_ns: int | None  # None: not in this history

    @property
    def after_ns(self) -> int | None:
        return None if self.granted_ns is None else self.granted_ns - self.ended_ns


@dataclass(frozen=True, slots=True)
class Ungranted:
    """A time in which clients asked for a lock and none was granted it."""

    key: str
    since_ns: int
    length_ns: int


@dataclass(frozen=True)
class Judgement:
    verdict: Verdict
    findings: tuple[Finding, ...]  # in the order of their times
    doubts: tuple[Doubt, ...]  # why it could not be decided
    counts: Counts
    definitions: tuple[Definition, ...] = ()  # one for each object, side by side
    cut: str = ""  # why there is more to find than is reported here; empty: there is not
    began_ns: int = 0  # the time 0 by the log's own clock; 0: it is not known
    freed: tuple[Freed, ...] = ()  # holds whose clients were ended or cut off
    ungranted: Ungranted | None = None  # the longest; None: no client asked for a lock
    not_exercised: tuple[FaultSpan, ...] = ()  # proven, but without effect on any client
    clocks: Clocks | None = None  # None: the hosts share one, or nothing had to be explained
    # The history that was judged, or the part of it that was examined:
    case: Case = field(kw_only=True, compare=False, repr=False)
    # The whole of it, as columns; None: the case has all.
    scan: Scan | None = field(default=None, kw_only=True, compare=False, repr=False)

    def doubting(self, doubt: Doubt) -> Judgement:
        """The same judgement with one more doubt."""
        return replace(
            self,
            verdict=Verdict.merge([self.verdict, Verdict.UNKNOWN]),
            doubts=(*self.doubts, doubt),
        )

    def of(self, code: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.code == code)
