"""Cuts and mends links between nodes, and knows which faults cut which.

A link has a direction: from its sender to its receiver. An entry in the sender's neighbour table
cuts it (see docs/design/decisions.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from lockcheck.errors import FaultError
from lockcheck.nemesis.network.neighbours import Neighbours
from lockcheck.nodes.node import Node


@dataclass(frozen=True, slots=True, order=True)
class Link:
    sender: str
    receiver: str


class Links:
    """A link that several faults cut is whole again when the last of them is healed."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self._nodes = nodes
        self._owners: dict[Link, set[object]] = {}
        self._cut: set[Link] = set()  # in the kernel
        self.slow: set[str] = set()  # senders whose packets are late or partly lost

    def is_cut(self, link: Link, *, but_by: object = None) -> bool:
        """Whether a fault other than `but_by` cuts it."""
        return bool(self._owners.get(link, set()) - {but_by})

    def cut(self, links: Iterable[Link], owner: object) -> None:
        for link in links:
            self._owners.setdefault(link, set()).add(owner)
        self._apply()

    def mend(self, owner: object, links: Iterable[Link] | None = None) -> None:
        """Mends these links of the owner's, or all, unless another fault cuts them. Repeatable."""
        for link in list(self._owners) if links is None else links:
            self._owners.get(link, set()).discard(owner)
        self._apply()

    def _apply(self) -> None:
        """Changes the kernel's tables; a network that fails does not keep others from that."""
        self._owners = {link: owners for link, owners in self._owners.items() if owners}
        changed = self._cut ^ self._owners.keys()
        failed: list[str] = []
        for sender in dict.fromkeys(link.sender for link in sorted(changed)):
            try:
                self._change(sender, [link for link in changed if link.sender == sender])
            except OSError as error:
                failed.append(f"{sender}: {error}")
        if failed:
            raise FaultError(f"the links could not be changed: {'; '.join(failed)}")

    def _change(self, sender: str, changed: list[Link]) -> None:
        node = self._nodes[sender]
        with node.inside_network():
            neighbours = Neighbours(node.address)
        with neighbours:
            for link in changed:
                receiver = self._nodes[link.receiver].address
                if link in self._owners:
                    neighbours.misdirect(receiver)
                    self._cut.add(link)
                else:
                    with suppress(FileNotFoundError):  # removed already
                        neighbours.forget(receiver)
                    self._cut.discard(link)
