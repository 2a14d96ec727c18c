"""Entering and making Linux namespaces from Python 3.11 on (the os module learnt it in 3.12)."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND = 2, 4, 4096
PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)


def _call(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def own_network() -> int:
    """A handle of the network namespace that this thread is in."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter_network(handle: int) -> None:
    _call(_libc.setns(handle, CLONE_NEWNET))


def new_network() -> int:
    """Makes a network namespace and returns its handle; this thread stays where it was."""
    home = own_network()
    try:
        _call(_libc.unshare(CLONE_NEWNET))
        try:
            return own_network()
        finally:
            enter_network(home)
    finally:
        os.close(home)


def die_with_parent() -> None:
    _call(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


@contextmanager
def inside(handle: int) -> Iterator[None]:
    """A socket belongs for ever to the network in which it was made, so this is all it takes."""
    home = own_network()
    try:
        enter_network(handle)
        yield
    finally:
        enter_network(home)
        os.close(home)


def network_of(pid: int | str) -> int:
    """A handle of a process's network namespace: it keeps the namespace, whoever ends in it."""
    return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def mount(source: str, target: Path, kind: str = "", *, flags: int = 0, options: str = "") -> None:
    """In this process's own mount namespace: nobody outside of it sees that."""
    words = (os.fsencode(word) for word in (source, target, kind))
    _call(_libc.mount(*words, ctypes.c_ulong(flags), options.encode()))
