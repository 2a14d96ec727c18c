"""Enters and creates Linux namespaces: the os module has this from Python 3.12 on only."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND = 2, 4, 4096

_libc = ctypes.CDLL(None, use_errno=True)


def _call(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def own_network() -> int:
    """A file descriptor of this thread's network namespace."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter_network(handle: int) -> None:
    _call(_libc.setns(handle, CLONE_NEWNET))


def enter_namespace(handle: int) -> None:
    """Of whatever kind it is."""
    _call(_libc.setns(handle, 0))


@contextmanager
def _coming_home() -> Iterator[None]:
    """After a `with` block this thread is in its own network again."""
    home = own_network()
    try:
        yield
    finally:
        enter_network(home)
        os.close(home)


def new_network() -> int:
    """Creates a network namespace and returns its file descriptor; this thread stays in its own."""
    with _coming_home():
        _call(_libc.unshare(CLONE_NEWNET))
        return own_network()


@contextmanager
def inside(handle: int) -> Iterator[None]:
    """Enters the network for a `with` block: sockets created in it stay in that network."""
    with _coming_home():
        enter_network(handle)
        yield


def network_of(pid: int | str) -> int:
    """A file descriptor of a process's network namespace, which keeps the namespace alive."""
    return os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def mount(source: str, target: Path, kind: str = "", *, flags: int = 0, options: str = "") -> None:
    """mount(2) in this process's mount namespace, invisible outside of it."""
    words = (os.fsencode(word) for word in (source, target, kind))
    _call(_libc.mount(*words, ctypes.c_ulong(flags), options.encode()))
