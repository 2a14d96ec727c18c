"""Who was cut off from whom, in words."""

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
    said = [*_grouped(_each_once(both, fault.nodes), "from"), *_grouped(one_way, "to")]
    return "; ".join(said)


def _each_once(links: list[tuple[str, str]], struck: Peers) -> list[tuple[str, str]]:
    """Told of whoever was struck, and where both were, of the first of them."""
    place = {node: number for number, node in enumerate(struck)}
    order = sorted(links, key=lambda link: [(place.get(n, len(place)), natural(n)) for n in link])
    told: dict[frozenset[str], tuple[str, str]] = {}
    for link in order:
        told.setdefault(frozenset(link), link)
    return list(told.values())


def _grouped(links: list[tuple[str, str]], word: str) -> list[str]:
    """Those who lost the same links are told together."""
    peers: defaultdict[str, list[str]] = defaultdict(list)
    for node, peer in links:
        peers[node].append(peer)
    alike: defaultdict[Peers, list[str]] = defaultdict(list)
    for node, lost in peers.items():
        alike[tuple(sorted(lost, key=natural))].append(node)
    return [f"{names(nodes)} {word} {names(lost)}" for lost, nodes in alike.items()]
