"""What a step says of one operation, one grant, one fault."""

from __future__ import annotations

from lockcheck.checker.evidence.releases import gave_back
from lockcheck.history import F, FaultSpan, Hold, Operation, Refusal, Terms
from lockcheck.results.story.incidents import Loss, identity
from lockcheck.results.story.steps.cast import Cast
from lockcheck.results.story.wording.acts import lane_of
from lockcheck.results.story.wording.effects import over
from lockcheck.words import amount, fault_kind, lock_name, names, plain


def data(cast: Cast, operation: Operation) -> str:
    answer, key = operation.answer, plain(operation.key)
    number = cast.numbers.of(operation)
    as_which = "" if number is None else f" as write {number:,}"
    silence = "no answer came" if operation.unknown else "no reason given"
    reason = plain((answer and answer.error) or silence, 120)
    if operation.f == F.READ:
        if operation.ok and answer:
            found = "nothing written yet" if answer.value is None else plain(answer.value)
            return f"read {key}: {found}"
        return f"could not read {key}: {reason}"
    if operation.ok:
        return f"wrote {writing(operation)}; accepted{as_which}{_why(cast, operation)}"
    if operation.failed:
        return f"tried to write {writing(operation)}; refused: {reason}"
    return f"sent a write of {writing(operation)}; it never learned the outcome ({reason})"


def writing(write: Operation) -> str:
    base = write.invoke.base
    based = "" if base is None else f", based on {plain(base)}"
    token = write.invoke.token
    shown = "" if token is None else f" with token {token}"
    return f"{plain(write.invoke.value)}{shown}{based}"


def _why(cast: Cast, write: Operation) -> str:
    why = []
    if identity(write) in cast.stale:
        why.append("late, since a later holder had written already")
    if (loss := cast.losses.get(identity(write))) is not None:
        why.append(f"built on an old value, so {_lost(cast, loss)}")
    return f": {'; '.join(why)}" if why else ""


def _lost(cast: Cast, loss: Loss) -> str:
    if not loss.lost:
        return "a write is lost"
    acknowledged = "acknowledged " if loss.acknowledged else ""
    if len(loss.lost) == 1:
        lost, which = loss.lost[0], cast.numbers.write(loss.lost[0]).removeprefix("a ")
        if identity(lost) in cast.stale:
            return f"the late {which} is lost in its turn, and what that overwrote is there again"
        return f"the {acknowledged}{which} is lost"
    which = cast.numbers.range(loss.lost)
    many = amount(len(loss.lost), f"{acknowledged}write")
    return f"{many}{f' ({which})' if which else ''} are lost"


def released(terms: Terms, key: str, release: Operation | None, *, taken_away: bool) -> str:
    if release is None or release.ok:
        unsaid = release is not None and not gave_back(release, terms)
        more = ", whose answer does not tell whether it was still held" if unsaid else ""
        return f"released {key}{', which had been taken from it' if taken_away else more}"
    error = plain((release.answer and release.answer.error) or "no answer")
    if release.failed:
        why = f": {error}" if release.answer and release.answer.error else ""
        if release.refusal is Refusal.UNAVAILABLE:
            return f"could not release {key}{why}"
        server = plain(terms.accused) or "the lock server"
        refused = f"{server} refused{why} (it had lost it before)"
        return f"tried to release {key}; {refused}"
    return f"asked to release {key}; whether it took is unknown: {error}"


def struck(terms: Terms, fault: FaultSpan) -> str:
    """Servers with their role; of a client its name is enough, beside the other steps."""
    nodes = set(fault.nodes)
    if nodes and nodes <= set(terms.lock_nodes):
        return lane_of(terms, fault)
    return names(fault.nodes) or "cluster"


def healed(fault: FaultSpan, believed: Hold | None) -> str:
    if believed is None:
        return f"{fault_kind(fault)} healed"
    belief = f"still believing that it holds {lock_name(believed.key)}"
    return f"{fault_kind(fault)} healed: {over(fault)}, {belief}"
