"""Runs a program in a running container of any image, as the engine would: in its namespaces, as
its user, with its environment, folder and rights. Nothing in the image is needed for that."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from lockcheck.nodes.namespaces import enter_namespace
from lockcheck.signals import end_with

PR_SET_PDEATHSIG, PR_CAPBSET_DROP = 1, 24
OTHERS = ("ipc", "uts", "net", "mnt")  # `mnt` last: with it /proc is another one
LAST_CAPABILITY = Path("/proc/sys/kernel/cap_last_cap")
FIRST_DESCRIPTOR = 0

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Container:
    """By its first process, whose place the program shares."""

    first: int

    def _environment(self) -> dict[str, str]:
        words = Path(f"/proc/{self.first}/environ").read_bytes().decode(errors="surrogateescape")
        return dict(word.split("=", 1) for word in words.split("\0") if "=" in word)

    def has(self, pid: int) -> bool:
        """Whether that process runs in it."""
        try:
            return Path(f"/proc/{pid}/ns/pid").samefile(f"/proc/{self.first}/ns/pid")
        except OSError:  # one that has ended
            return False

    def spawn(
        self, command: Sequence[str], streams: Sequence[int], more: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Starts a program with these streams, and `more` in its environment. Raises OSError if it
        cannot be started."""
        stdin, stdout, stderr = streams
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**self._environment(), **more},
            start_new_session=True,
            preexec_fn=partial(self._enter, os.getpid()),  # noqa: PLW1509 - the agent has one thread
        )

    def _enter(self, agent: int) -> None:
        """Called by a new child of the agent, before it executes the program. It becomes two: one
        stays outside, and ends as the program does; the other is the program."""
        status = self._status()
        folder = os.open(f"/proc/{self.first}/cwd", os.O_PATH)
        spaces = [os.open(f"/proc/{self.first}/ns/{name}", os.O_RDONLY) for name in OTHERS]
        dropped = _without(int(status["CapBnd"][0], 16))
        enter_namespace(os.open(f"/proc/{self.first}/ns/pid", os.O_RDONLY))  # of its children
        if child := os.fork():
            _stay_outside(child, agent)
        for space in spaces:
            enter_namespace(space)
        os.fchdir(folder)
        for capability in dropped:
            _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        os.setgroups([int(group) for group in status["Groups"]])
        os.setgid(int(status["Gid"][0]))
        os.setuid(int(status["Uid"][0]))
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def _status(self) -> dict[str, list[str]]:
        lines = Path(f"/proc/{self.first}/status").read_text().splitlines()
        return {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}


def _without(allowed: int) -> list[int]:
    """The capabilities that are not among those."""
    last = int(LAST_CAPABILITY.read_text())
    return [number for number in range(last + 1) if not allowed >> number & 1]


def _stay_outside(child: int, agent: int) -> None:
    """Not in the node's network, so no fault strikes it."""
    os.closerange(FIRST_DESCRIPTOR, os.sysconf("SC_OPEN_MAX"))  # else the agent would wait for it
    end_with(agent)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)  # not of SIGKILL
        os.kill(os.getpid(), -code)
    os._exit(code)
