"""Whether a run saw its locks granted again once all its faults were healed."""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.case import Case
from lockcheck.checker.finding import Code, Finding
from lockcheck.history import F, Operation
from lockcheck.words import span

FEWEST_REFUSED = 5


def doubts(case: Case, findings: list[Finding]) -> Iterator[str]:
    """Of locks that are not known to be stuck, and were not granted in the quiet time either."""
    since_ns = case.history.quiet_ns
    if since_ns is None:
        return
    stuck = {finding.key for finding in findings if finding.code is Code.STUCK}
    asked: dict[str, list[Operation]] = {}
    for operation in case.operations:
        if operation.f == F.ACQUIRE and operation.key not in stuck:
            asked.setdefault(operation.key, []).append(operation)
    for key, acquires in asked.items():
        ended = [acquire for acquire in acquires if _last_ns(acquire) >= since_ns]
        if len(ended) >= FEWEST_REFUSED and not any(acquire.ok for acquire in ended):
            long_ns = max(map(_last_ns, ended)) - since_ns
            why = next((o.answer.error for o in ended if o.answer and o.answer.error), "")
            said = f", for example with {why!r}" if why else ""
            yield (
                f"every fault was healed, and in the {span(long_ns)} that were left nobody was"
                f" granted {key!r}: {len(ended)} attempts failed{said}"
            )


def _last_ns(acquire: Operation) -> int:
    return acquire.start_ns if acquire.answer is None else acquire.answer.time
