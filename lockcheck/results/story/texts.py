"""What a step says of one operation, one grant, one fault."""

from __future__ import annotations

from lockcheck.history import F, FaultSpan, Hold, Operation
from lockcheck.results.story.cast import Cast
from lockcheck.results.story.effects import over
from lockcheck.results.story.incidents import Loss, operation_identity
from lockcheck.results.story.words import amount, lock_name, names, numbers, plain


def data(cast: Cast, operation: Operation) -> str:
    answer, key = operation.answer, plain(operation.key)
    number = f" as #{answer.seq}" if answer and answer.seq is not None else ""
    silence = "no answer came" if operation.unknown else "no reason given"
    reason = plain((answer and answer.error) or silence, 120)
    if operation.f == F.READ:
        if operation.ok and answer:
            found = "nothing written yet" if answer.value is None else plain(answer.value)
            return f"read {key}: {found}"
        return f"could not read {key}: {reason}"
    if operation.ok:
        return f"wrote {writing(operation)}; accepted{number}{_why(cast, operation)}"
    if operation.failed:
        return f"tried to write {writing(operation)}; refused: {reason}"
    return f"sent a write of {writing(operation)}; nobody told it the outcome ({reason})"


def writing(write: Operation) -> str:
    base = write.invoke.base
    on_top = "" if base is None else f" on top of {plain(base)}"
    token = write.invoke.token
    shown = "" if token is None else f" with token {token}"
    return f"{plain(write.invoke.value)}{on_top}{shown}"


def _why(cast: Cast, write: Operation) -> str:
    identity = operation_identity(write)
    why = []
    if identity in cast.stale:
        why.append("stale, a later holder had written already")
    if (loss := cast.losses.get(identity)) is not None:
        why.append(f"built on an old value, so {_lost(loss)}")
    return f": {'; '.join(why)}" if why else ""


def _lost(loss: Loss) -> str:
    if not loss.lost:
        return "an update is lost"
    acknowledged = "acknowledged " if loss.acknowledged else ""
    which = numbers(write.answer.seq if write.answer else None for write in loss.lost)
    if len(loss.lost) == 1:
        number = f" {which}" if which else ""
        return f"the {acknowledged}update{number} of {names(w.node for w in loss.lost)} is lost"
    shown = f" ({which})" if which else ""
    return f"{amount(len(loss.lost), f'{acknowledged}update')}{shown} are lost"


def release_outcome(release: Operation | None) -> str:
    if release is None or release.ok:
        return ""
    error = plain((release.answer and release.answer.error) or "no answer")
    if release.failed:
        why = f": {error}" if release.answer and release.answer.error else ""
        return f"; the service refused{why} (it had lost the lock before)"
    return f"; whether it took is unknown: {error}"


def healed(fault: FaultSpan, believed: Hold | None) -> str:
    if believed is None:
        return f"{plain(fault.name)} healed"
    belief = f"still believing that it holds {lock_name(believed.key)}"
    return f"{plain(fault.name)} healed: {over(fault)}, {belief}"
