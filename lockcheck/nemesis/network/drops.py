"""Packet loss: a rule of nf_tables in a node's network drops packets from an address at random."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

from lockcheck.nodes.netlink import ACKNOWLEDGE, CREATE, Kernel, NetlinkMessage, attribute, text
from lockcheck.nodes.node import Node

NETFILTER = 12  # NETLINK_NETFILTER
TABLES = 10  # NFNL_SUBSYS_NFTABLES
BEGIN, END = 0x10, 0x11  # of a batch
NEW_TABLE, DELETE_TABLE, NEW_CHAIN, NEW_RULE = 0, 2, 3, 6
IPV4 = 2
ARRIVING, PRIORITY = 1, -300  # NF_INET_LOCAL_IN, before all others
NESTED = 0x8000
VERDICT, FIRST = 0, 1  # registers
SOURCE_OFFSET, ADDRESS_BYTES, NETWORK_HEADER = 12, 4, 1
EQUAL, LESS = 0, 2
RANDOM, TO_NETWORK_ORDER = 1, 1
DROP = 0
PARTS = 1000


def lose(node: Node, sender: str, percent: float, table: str) -> None:
    """Makes the node drop that share of the packets from the address `sender`."""
    with node.inside_network():
        _ask_here(_table_of(sender, percent, table))


def stop_losing(node: Node, table: str) -> None:
    """Removes the table with the rule; harmless if there is none."""
    with node.inside_network(), suppress(FileNotFoundError):
        _ask_here([_message(DELETE_TABLE, 0, text(1, table))])


def try_here() -> None:
    """Raises OSError if this kernel cannot."""
    _ask_here(_table_of("127.0.0.1", 1, "lockcheck"))


def _table_of(sender: str, percent: float, table: str) -> list[NetlinkMessage]:
    return [
        _message(NEW_TABLE, CREATE, text(1, table)),
        _message(NEW_CHAIN, CREATE, _chain(table)),
        _message(NEW_RULE, CREATE, _rule(table, sender, percent)),
    ]


def _ask_here(messages: list[NetlinkMessage]) -> None:
    """Sends the messages as a batch, which takes effect as a whole or not at all."""
    batch = [
        NetlinkMessage(BEGIN, 0, _family(0, TABLES)),
        *messages,
        NetlinkMessage(END, 0, _family(0, TABLES)),
    ]
    with Kernel(NETFILTER) as kernel:
        kernel.ask_batch(batch)


def _message(what: int, flags: int, body: bytes) -> NetlinkMessage:
    return NetlinkMessage(TABLES << 8 | what, flags | ACKNOWLEDGE, _family(IPV4, 0) + body)


def _family(family: int, resource: int) -> bytes:
    return struct.pack(">BBH", family, 0, resource)


def _chain(table: str) -> bytes:
    hook = _number(1, ARRIVING) + attribute(2, struct.pack(">i", PRIORITY))
    return text(1, table) + text(3, "loss") + _nested(4, hook) + text(7, "filter")


def _rule(table: str, sender: str, percent: float) -> bytes:
    below = round(percent / 100 * PARTS)
    expressions = (
        _expression("payload", _numbers(FIRST, NETWORK_HEADER, SOURCE_OFFSET, ADDRESS_BYTES)),
        _compare(EQUAL, socket.inet_aton(sender)),
        _expression("numgen", _number(1, FIRST) + _number(2, PARTS) + _number(3, RANDOM)),
        _expression("byteorder", _numbers(FIRST, FIRST, TO_NETWORK_ORDER, 4, 4)),
        _compare(LESS, struct.pack(">I", below)),
        _expression("immediate", _number(1, VERDICT) + _nested(2, _nested(2, _number(1, DROP)))),
    )
    return text(1, table) + text(2, "loss") + _nested(4, b"".join(expressions))


def _compare(how: int, with_what: bytes) -> bytes:
    value = _nested(3, attribute(1, with_what))
    return _expression("cmp", _number(1, FIRST) + _number(2, how) + value)


def _expression(name: str, data: bytes) -> bytes:
    return _nested(1, text(1, name) + _nested(2, data))


def _numbers(*values: int) -> bytes:
    return b"".join(_number(kind, value) for kind, value in enumerate(values, 1))


def _number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value))


def _nested(kind: int, data: bytes) -> bytes:
    return attribute(kind | NESTED, data)
