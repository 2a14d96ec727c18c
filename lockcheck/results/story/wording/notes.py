"""What the numbers of a finding do not say, in a sentence or two; and how it is explained in full.

`codes` says which of these functions is asked for which kind of finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from lockcheck.checker.evidence.order import concurrent
from lockcheck.checker.finding import Culprit, Finding, Reason, Rule
from lockcheck.checker.judges.not_linearizable import MOST_STEPS
from lockcheck.history import Ending
from lockcheck.words import at, by_node, exactly, full_stop, operation_words, span

Sentences = Iterator[str]
RULES = {
    Rule.NEVER_ASKED: "It never asked for it.",
    Rule.HELD_BY_ANOTHER: "{hold.node} certainly held it at that moment.",
    Rule.WHOSE_IS_UNCERTAIN: (
        "What it removed was certainly not its own; whose it was, is not certain."
    ),
    Rule.LET_IN: "So {hold.node} was let in while {holds[1].node} still held it.",
    Rule.UNCONFIRMED: (
        "Its client never learned that it was accepted; another was based on the same value."
    ),
    Rule.WRITTEN_WITHOUT_LOCK: "It was written without the lock.",
    Rule.OVERWROTE_ITS_OWN: "One holder overwrote its own update.",
    Rule.RAN_WITHOUT_LOCK: "It ran without the lock.",
    Rule.RAN_AGAIN: "One holder ran it twice.",
    Rule.RAN_ON_ONE_CLIENT: "The same client ran it twice.",
    Rule.NOT_EXCLUSIVE: "The lock lets both in at once.",
    Rule.DONE_BEFORE: "It had been done {at}, before {holds[1].node} was granted the lock.",
    Rule.REFUSED: (
        "By then every hold had been released, or its lease had run out, and every fault was"
        " healed. {number} requests were refused from then on, for {long}, up to the end."
    ),
    Rule.QUEUED: (
        "{operations[0].node} had its place {at}, {before} before {operations[1].node} asked."
    ),
}


def ruled(finding: Finding, reason: Reason) -> str:
    asked_ns = max((operation.start_ns for operation in finding.operations), default=0)
    return RULES[reason.rule].format(
        hold=reason.hold,
        holds=finding.holds,
        operations=finding.operations,
        number=reason.number,
        at=at(reason.number),
        before=span(asked_ns - reason.number),
        long=span(finding.length_ns),
    )


def overlap(finding: Finding) -> Sentences:
    blame = finding.blame
    earlier, later, *others = finding.holds
    if others:
        yield f"There are {len(others) + 1} permits, and {len(others) + 2} held one."
    if earlier.shared or later.shared:
        sharing, alone = (earlier, later) if earlier.shared else (later, earlier)
        yield f"{sharing.node} shared it with others, {alone.node} was to have it alone."
    if concurrent(earlier, later):
        yield "Both asked for it at the same time, so which of them was let in first is a guess."
        if earlier.start_ns > later.start_ns:
            yield "The first one's answer came last: it stood still before it read it."
    if blame.who is Culprit.CLIENT and blame.release is not None and blame.released_by is not None:
        certain = blame.release.ok and blame.release.start_ns > earlier.start_ns
        verb = "took it away" if certain else "may have taken it away"
        yield f"A blind release by {blame.released_by.node} {verb}."


def stale_write(finding: Finding) -> Sentences:
    earlier, write, blame = finding.holds[0], finding.operations[-1], finding.blame
    promised_ns = blame.promised_until_ns
    if blame.who in (Culprit.HOLDER, Culprit.MACHINE) and (
        promised_ns is None or write.start_ns <= promised_ns
    ):
        yield "It was begun within the lease and was in flight when the lease ran out."
    if write.unknown:
        yield "Its client never learned that it was accepted."
    if write.start_ns > earlier.end_ns and earlier.ending is not Ending.LAST_SEEN:
        yield f"The client wrote although its hold had ended ({earlier.ending})."


def token_regression(finding: Finding) -> Sentences:
    earlier, later = finding.holds
    if earlier.token == later.token:
        yield "Two grants have one token."


def silent_loss(finding: Finding) -> Sentences:
    if finding.holds[0].ending is Ending.LOST:
        yield "It was told so in the end."


def revived(finding: Finding) -> Sentences:
    (hold, other), [renewal] = finding.holds, finding.operations
    if other.end_ns > (renewal.end_ns or renewal.start_ns):
        yield f"{other.node} still held it then."
    else:
        yield f"{other.node} had let go by then; {hold.node} was never granted it again."


# --- of what takes more than a note --------------------------------------------------------------


def deadlock(finding: Finding) -> Sentences:
    yield f"They all waited for {span(finding.length_ns)}."


def deadlock_in_full(finding: Finding) -> Sentences:
    for hold, acquire in zip(finding.holds, finding.operations, strict=True):
        until = (
            f"was answered {at(acquire.answer.time)}" if acquire.answer else "was never answered"
        )
        yield (
            f"{acquire.node} held {hold.key!r} since {exactly(hold.start_ns)} and asked for"
            f" {acquire.key!r} {at(acquire.start_ns)}, and {until}."
        )


def no_order(finding: Finding) -> Sentences:
    if (proof := finding.proof) is not None:
        named = (proof.operations[row] for row in proof.answer.named)
        yield full_stop(by_node(proof.answer.reason, named))


def no_order_in_full(finding: Finding) -> Sentences:
    if (proof := finding.proof) is None:
        return
    answer, of = proof.answer, proof.operations
    if not (answer.circle or answer.prefix):
        return
    yield f"Judged by the model {proof.model.name}: {proof.model.meaning}."
    if answer.circle:
        for link in answer.circle[:MOST_STEPS]:
            before, after = of[link.before], of[link.after]
            why = by_node(link.reason, (before, after))
            yield f"{operation_words(before)} has to come before {operation_words(after)}: {why}."
        yield "That is a circle, so no order can be right."
    elif answer.prefix:
        yield f"The longest order that is right has {len(answer.prefix)} operations; it ends with:"
        yield from (operation_words(of[row]) for row in answer.prefix[-MOST_STEPS:])
        if answer.stuck_on is not None:
            yield f"No order can go on past {operation_words(of[answer.stuck_on])}."
