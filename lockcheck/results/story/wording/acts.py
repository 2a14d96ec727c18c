"""A fault as an act: what befell the nodes, and what lockcheck did to them."""

from __future__ import annotations

import re

from lockcheck.history import Effect, FaultSpan, History, Terms
from lockcheck.words import in_letters, listed, names, plain, span

FAILOVER = "failover"
USUAL_JUMP = "+30s"
_JUMP = re.compile(r"jump=([+-]?)([^,@\s]+)")
_BEFELL = {
    Effect.STOPS: "{who} {was} paused",
    Effect.ENDS: "{who} {was} killed",
    Effect.CUTS: "{who} {was} cut off",
    Effect.SLOWS: "{who} {was} slowed down",
    Effect.STARVES: "{who} ran out of disk",
}
_DID = {
    Effect.STOPS: "paused {who}{long}",
    Effect.ENDS: "killed {who}",
    Effect.CUTS: "cut {who} off{long}",
    Effect.SLOWS: "slowed {who} down{long}",
    Effect.STARVES: "took the disk away from {who}{long}",
}


def befell(terms: Terms, fault: FaultSpan) -> str:
    """What a reader should know of it first: "Redis r1 restarted"."""
    who, several = struck(terms, fault), len(fault.nodes) > 1
    if fault.name == FAILOVER:
        return f"{plain(terms.server) or 'the server'} failed over"
    if fault.effect is Effect.SKEWS:
        return f"the clock{'s' if several else ''} of {who} {_clock(fault)}"
    if fault.effect is Effect.ENDS and fault.healed_ns is not None:
        return f"{who} restarted"
    words = _BEFELL.get(fault.effect) if fault.effect else None
    was = "were" if several else "was"
    return words.format(who=who, was=was) if words else f"{plain(fault.name)} struck {who}"


def did(terms: Terms, fault: FaultSpan) -> str:
    """What was done, as a sentence: by lockcheck, or by the test that the history is of."""
    who, long = struck(terms, fault, of=True), ""
    if fault.healed_ns is not None:
        long = f" for {span(fault.healed_ns - fault.worked_from_ns)}"
    if fault.name == FAILOVER:
        act = f"killed the primary, {who}, and promoted a replica"
    elif fault.effect is Effect.SKEWS:
        act = _moved(fault, f"the clock{'s' if len(fault.nodes) > 1 else ''} of {who}") + long
    else:
        words = _DID.get(fault.effect) if fault.effect else None
        act = (words or "injected {what} into {who}{long}").format(
            who=who, long=long, what=plain(fault.name)
        )
    proven = "" if fault.proven_ns is not None else ", but that was not confirmed"
    return f"{'lockcheck' if terms.backend else 'The test'} {act}{proven}."


def nothing_done(history: History) -> str:
    """Of a run in which nothing was injected; of others it goes without saying."""
    proven = any(fault.proven_ns is not None for fault in history.faults)
    return "" if proven or not history.terms.backend else "lockcheck injected no fault."


def upon(fault: FaultSpan) -> str:
    """What it does to a node, in a word or two."""
    if fault.effect is Effect.SKEWS:
        return f"clock {_clock(fault)}"
    words = {Effect.STOPS: "paused", Effect.CUTS: "cut off", Effect.SLOWS: "slowed down"}
    return (words.get(fault.effect) if fault.effect else None) or plain(fault.name)


def lane_of(terms: Terms, fault: FaultSpan) -> str:
    """The nodes themselves, for the margin of a picture."""
    nodes = " ".join(map(plain, fault.nodes))
    return f"{plain(terms.server)} {nodes}" if set(fault.nodes) <= set(terms.lock_nodes) else nodes


def struck(terms: Terms, fault: FaultSpan, *, of: bool = False) -> str:
    """With their role, the nodes; or their number, `of` how many."""
    nodes, servers = fault.nodes, set(terms.lock_nodes)
    if not nodes:
        return "the servers"
    of_servers = servers.issuperset(nodes) and bool(terms.server)
    if len(nodes) > 2:
        kind = f"{plain(terms.server)} server" if of_servers else "node"
        out_of = f" of {in_letters(len(servers))}" if of and of_servers else ""
        return f"{in_letters(len(nodes))}{out_of} {kind}s"
    return f"{plain(terms.server)} {listed(map(plain, nodes))}" if of_servers else names(nodes)


def _clock(fault: FaultSpan) -> str:
    if "drift=" in fault.asked:
        return "drifted"
    if "strobe=" in fault.asked:
        return "jumped to and fro"
    number, back = _jump(fault)
    return f"jumped {'back ' if back else ''}{number}"


def _moved(fault: FaultSpan, clocks: str) -> str:
    if "drift=" in fault.asked:
        return f"let {clocks} drift"
    if "strobe=" in fault.asked:
        return f"moved {clocks} to and fro"
    number, back = _jump(fault)
    return f"set {clocks} {number} {'back' if back else 'ahead'}"


def _jump(fault: FaultSpan) -> tuple[str, bool]:
    """By how much, and whether back."""
    asked = fault.asked if _JUMP.search(fault.asked) else f"jump={USUAL_JUMP}"
    [(sign, length)] = _JUMP.findall(asked)[:1]
    return re.sub(r"(\d)([a-z]+)$", r"\1 \2", plain(length)), sign == "-"
