"""What the findings that are told by their evidence are called, and the moment they became certain.

Each title stands on what the evidence names; where it names nobody, on the meaning of the code.
"""

from __future__ import annotations

from collections.abc import Callable

from lockcheck.checker.finding import Code, Finding
from lockcheck.history import F, Operation
from lockcheck.results.story.objects import LOCKING
from lockcheck.results.story.words import listed, lock_name, names, node_of, plain, span

NAMED_AT_MOST = 4


def anomaly_title(finding: Finding) -> str:
    return _TITLES[finding.code](finding)


def anomalies(code: Code, number: int) -> str:
    """How many there were of a kind: 1 deadlock, 3 silent losses."""
    return f"{number:,} {_NOUNS[code][number != 1]}"


def the_anomalies(code: Code, number: int) -> str:
    return f"the {_NOUNS[code][number != 1]}"


def conclusion(finding: Finding) -> tuple[str, str]:
    """Who it befell, and what, in the story's last step about it."""
    return _CONCLUSIONS[finding.code](finding)


def about_a_lock(finding: Finding) -> bool:
    """A register is no lock: then nothing may be said of one."""
    if finding.code is not Code.NOT_LINEARIZABLE or finding.holds:
        return True
    locking = any(operation.f in LOCKING for operation in finding.operations)
    return locking or not finding.operations


def guilty(finding: Finding, otherwise: str = "a client") -> str:
    """Whom it is about: the first holder, or else the first whose operation is in evidence."""
    nodes = [hold.node for hold in finding.holds[:1]] or [o.node for o in finding.operations[:1]]
    return plain(nodes[0]) if nodes else otherwise


def everybody(finding: Finding) -> str:
    nodes = [hold.node for hold in finding.holds] + [o.node for o in finding.operations]
    return names(nodes, NAMED_AT_MOST)


def job(finding: Finding) -> str:
    values = (o.invoke.value for o in finding.operations if o.f == F.RUN)
    named = next((plain(value) for value in values if value is not None), plain(finding.key))
    return f"the job {named}" if named else "a job"


# --- titles ------------------------------------------------------------------------------------


def _token_regression(finding: Finding) -> str:
    tokens, key = _tokens(finding), lock_name(finding.key)
    if tokens is None:
        return f"A fencing token of {key} was not greater than one issued before it"
    (before, older), (token, node) = tokens
    if token == before:
        return f"{node} was given the token {token} of {key}, the same as {older} before it"
    return f"{node} was given the token {token} of {key} after {older} had been given {before}"


def _tokens(finding: Finding) -> tuple[tuple[int, str], tuple[int, str]] | None:
    """The greater token and whose it was, then the later one that was not greater."""
    told = [(h.token, plain(h.node)) for h in finding.holds] or [
        (o.answer.token, plain(o.node)) for o in finding.operations if o.answer
    ]
    known = [(token, node) for token, node in told if token is not None]
    if len(known) < 2 or known[-1][0] > known[0][0]:
        return None
    return known[0], known[-1]


def _unlocked_section(finding: Finding) -> str:
    who, key = guilty(finding), lock_name(finding.key)
    return f"{who} went into the critical section of {key} without having been granted it"


def _silent_loss(finding: Finding) -> str:
    long = f" for {span(finding.length_ns)}" if finding.length_ns else ""
    return f"{guilty(finding)} had lost {lock_name(finding.key)} and was not told{long}"


def _revived(finding: Finding) -> str:
    who, key = guilty(finding), lock_name(finding.key)
    other = node_of(finding.holds, 1, "somebody else")
    return f"{who} renewed its lease on {key} after {other} had held it"


def _double_run(finding: Finding) -> str:
    runs = [plain(o.node) for o in finding.operations if o.f == F.RUN]
    where = f": {listed((f'on {node}' for node in runs), NAMED_AT_MOST)}" if len(runs) > 1 else ""
    often = f"{len(runs):,} times" if len(runs) > 2 else "twice"
    named = job(finding)
    return f"{named[:1].upper()}{named[1:]} ran {often}{where}"


def _stuck(finding: Finding) -> str:
    tried = {o.node for o in finding.operations if o.f == F.ACQUIRE and not o.ok}
    by = f" by {names(sorted(tried), NAMED_AT_MOST)}" if tried else ""
    return f"{_upper(lock_name(finding.key))} could not be acquired any more{by}"


def _deadlock(finding: Finding) -> str:
    nodes = dict.fromkeys([h.node for h in finding.holds] + [o.node for o in finding.operations])
    if len(nodes) < 2:
        return f"A circle of clients wait for each other on {lock_name(finding.key)}"
    circle = "" if len(nodes) == 2 else " in a circle"
    return f"{names(nodes, NAMED_AT_MOST)} wait for each other{circle}: nobody can go on"


def _unfair(finding: Finding) -> str:
    key, nodes = lock_name(finding.key), _passed_and_passing(finding)
    if nodes is None:
        return f"A later request for {key} was granted before an earlier one"
    return f"{nodes[1]} was granted {key} before {nodes[0]}, which had asked earlier"


def _passed_and_passing(finding: Finding) -> tuple[str, str] | None:
    """By when they asked: the earlier request is the one that was passed."""
    asked = [o for o in finding.operations if o.f == F.ACQUIRE]
    asked = asked if len(asked) > 1 else [hold.acquire for hold in finding.holds]
    if len(asked) < 2:
        return None
    in_order = sorted(asked, key=lambda o: o.start_ns)
    return plain(in_order[0].node), plain(in_order[-1].node)


def _not_linearizable(finding: Finding) -> str:
    on = f" on {plain(finding.key)}" if finding.key else ""
    return f"No order of the operations{on} explains the answers"


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" if text == "the lock" else text


# --- the moment it became certain --------------------------------------------------------------


def _token_conclusion(finding: Finding) -> tuple[str, str]:
    tokens = _tokens(finding)
    if tokens is None:
        return "service", "gave out a token that was not greater than one before it"
    (before, older), (token, node) = tokens
    return node, f"its token {token} is not greater than {before}, which {older} had been given"


def _late(finding: Finding) -> Operation | None:
    return finding.operations[-1] if finding.operations else None


def _again(finding: Finding) -> tuple[str, str]:
    last = _late(finding)
    return (plain(last.node) if last else "clients"), f"{job(finding)} ran once more"


def _passed(finding: Finding) -> tuple[str, str]:
    nodes = _passed_and_passing(finding)
    if nodes is None:
        return "service", "a later request was granted before an earlier one"
    return nodes[0], f"had asked earlier and was passed by {nodes[1]}"


_TITLES: dict[Code, Callable[[Finding], str]] = {
    Code.TOKEN_REGRESSION: _token_regression,
    Code.UNLOCKED_SECTION: _unlocked_section,
    Code.SILENT_LOSS: _silent_loss,
    Code.REVIVED: _revived,
    Code.DOUBLE_RUN: _double_run,
    Code.STUCK: _stuck,
    Code.DEADLOCK: _deadlock,
    Code.UNFAIR: _unfair,
    Code.NOT_LINEARIZABLE: _not_linearizable,
}

_NOUNS = {
    Code.TOKEN_REGRESSION: ("token regression", "token regressions"),
    Code.UNLOCKED_SECTION: ("unlocked section", "unlocked sections"),
    Code.SILENT_LOSS: ("silent loss", "silent losses"),
    Code.REVIVED: ("revived lease", "revived leases"),
    Code.DOUBLE_RUN: ("double run", "double runs"),
    Code.STUCK: ("stuck lock", "stuck locks"),
    Code.DEADLOCK: ("deadlock", "deadlocks"),
    Code.UNFAIR: ("unfair grant", "unfair grants"),
    Code.NOT_LINEARIZABLE: ("answer that fits no order", "answers that fit no order"),
}

_CONCLUSIONS: dict[Code, Callable[[Finding], tuple[str, str]]] = {
    Code.TOKEN_REGRESSION: _token_conclusion,
    Code.UNLOCKED_SECTION: lambda f: (guilty(f), "worked on without having been granted the lock"),
    Code.SILENT_LOSS: lambda f: (guilty(f), "had lost the lock by now, and nobody had told it"),
    Code.REVIVED: lambda f: (
        guilty(f),
        f"its renewal was granted, and {node_of(f.holds, 1, 'somebody else')} had held the lock",
    ),
    Code.DOUBLE_RUN: _again,
    Code.STUCK: lambda f: ("service", f"granted {lock_name(f.key)} to nobody from here on"),
    Code.DEADLOCK: lambda _: ("clients", "from here on each waits for the next one in the circle"),
    Code.UNFAIR: _passed,
    Code.NOT_LINEARIZABLE: lambda _: ("lockcheck", "no order of the operations explains this"),
}
