"""Which nodes were cut off from which, in words."""

from __future__ import annotations

from collections import defaultdict

from lockcheck.history import FaultSpan
from lockcheck.words import names, natural

Peers = tuple[str, ...]


def cut_apart(fault: FaultSpan) -> str:
    """As in "r1 and c1 from r2 and r3"; in one direction, "c1 to r1". Empty: no link is known."""
    links = dict.fromkeys(fault.links)
    both = [link for link in links if link[::-1] in links]
    one_way = [link for link in links if link[::-1] not in links]
    parts = [*_grouped(_each_once(both, fault.nodes), "from"), *_grouped(one_way, "to")]
    return "; ".join(parts)


def _each_once(links: list[tuple[str, str]], struck: Peers) -> list[tuple[str, str]]:
    """From the side of the node that was struck; where both were, of the first of them."""
    place = {node: number for number, node in enumerate(struck)}
    order = sorted(links, key=lambda link: [(place.get(n, len(place)), natural(n)) for n in link])
    once: dict[frozenset[str], tuple[str, str]] = {}
    for link in order:
        once.setdefault(frozenset(link), link)
    return list(once.values())


def _grouped(links: list[tuple[str, str]], word: str) -> list[str]:
    """Nodes that lost the same links are one group."""
    peers: defaultdict[str, list[str]] = defaultdict(list)
    for node, peer in links:
        peers[node].append(peer)
    alike: defaultdict[Peers, list[str]] = defaultdict(list)
    for node, lost in peers.items():
        alike[tuple(sorted(lost, key=natural))].append(node)
    return [f"{names(nodes)} {word} {names(lost)}" for lost, nodes in alike.items()]
