"""Moves the clocks of a running process by rewriting its own copy of the vDSO.

Forks inherit it; programs that the process executes do not. A clock read by a system call stays
right: see docs/design/faults.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import CLOCKS, ClockLine, Skew
from lockcheck.nemesis.clock.vdso_code import LINE, LINES
from lockcheck.nemesis.clock.vdso_copy import read_through
from lockcheck.nemesis.clock.vdso_image import kernels_image, segment_of
from lockcheck.servers.base import Clock

NOT_ALLOWED = "run it as the user whose processes they are, or as root, with ptrace allowed"


class Vdso:
    """The vDSO of one process. The threads must be stopped for `redirect` and `restore` only."""

    def __init__(self, pid: int) -> None:
        """Changes nothing; raises FaultError if this vDSO cannot be changed."""
        self.pid = pid
        self._kernels = kernels_image()
        try:
            self._start, size = segment_of(pid)
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except PermissionError as error:
            raise self._refused(error) from error
        if size != len(self._kernels.data) or not self._is_known():
            self.close()
            raise FaultError(f"the vDSO of process {pid} is not this kernel's: it has been changed")

    def close(self) -> None:
        os.close(self._memory)

    def _refused(self, error: OSError) -> FaultError:
        return FaultError(
            f"the memory of process {self.pid} cannot be written: {error.strerror}",
            cure=NOT_ALLOWED,
        )

    # --- redirecting its functions -----------------------------------------------------------

    @property
    def is_redirected(self) -> bool:
        return all(
            self._at(place, len(jump)) == jump for place, jump in self._kernels.jumps.items()
        )

    def check_writable(self) -> None:
        """Raises FaultError unless a byte can be overwritten, by itself."""
        self._write(self._kernels.place, self._at(self._kernels.place, 1))

    def has_thread_in_jumps(self) -> bool:
        """Whether a thread is inside the bytes to overwrite: it would execute half of each."""
        places = {self._start + place: len(jump) for place, jump in self._kernels.jumps.items()}
        return any(
            place < counter < place + length
            for counter in _program_counters(self.pid)
            for place, length in places.items()
        )

    def redirect(self) -> None:
        """Writes our code and the jumps to it; the clocks stay right until `apply`."""
        processor = self._kernels.processor
        tables = b"".join(LINE.pack(*astuple(ClockLine())) for _ in range(LINES))
        self._write(self._kernels.place, processor.code + bytes(8) + tables + tables)
        for place, jump in self._kernels.jumps.items():
            self._write(place, jump)

    def restore(self) -> None:
        """Restores the functions. Our code stays in memory: a thread may still execute it."""
        for place in self._kernels.jumps:
            self._write(place, self._kernels.original(place))

    def _is_known(self) -> bool:
        """Whether it is the kernel's own, unchanged or redirected to our code."""
        seen, redirected = self._at(0, self._kernels.place), bytearray(self._kernels.data)
        for place, jump in self._kernels.jumps.items():
            redirected[place : place + len(jump)] = jump
        place, code = self._kernels.place, self._kernels.processor.code
        return seen == self._kernels.data[:place] or (
            seen == redirected[:place] and self._at(place, len(code)) == code
        )

    # --- setting its clocks ------------------------------------------------------------------

    def apply(self, skew: Skew) -> None:
        """Takes effect at once for all threads, stopped or not."""
        processor, place = self._kernels.processor, self._kernels.place
        turn = self._at(place + processor.turn, 1)[0] + 1 & 0xFF
        lines = b"".join(LINE.pack(*astuple(skew.line(clock))) for clock in CLOCKS)
        self._write(place + processor.tables + (turn & 1) * len(lines), lines)
        self._write(place + processor.turn, bytes([turn]))

    def skew(self) -> Skew:
        """The skew in effect."""
        processor, place, size = self._kernels.processor, self._kernels.place, LINES * LINE.size
        while True:
            turn = self._at(place + processor.turn, 1)
            lines = self._at(place + processor.tables + (turn[0] & 1) * size, size)
            if self._at(place + processor.turn, 1) == turn:
                return Skew(*(ClockLine(*numbers) for numbers in LINE.iter_unpack(lines)))

    def read_ns(self, clock: Clock) -> int:
        """What the process itself would read now, by running a copy of its vDSO."""
        if not self.is_redirected:
            raise FaultError(f"process {self.pid} reads the kernel's clocks")
        return read_through(self._kernels, self._at(0, len(self._kernels.data)), clock)

    # --- its memory --------------------------------------------------------------------------

    def _at(self, place: int, size: int) -> bytes:
        try:
            read = os.pread(self._memory, size, self._start + place)
        except OSError as error:
            raise FaultError(f"process {self.pid} cannot be read: {error.strerror}") from error
        if len(read) != size:
            raise ProcessLookupError(f"process {self.pid} has ended")
        return read

    def _write(self, place: int, data: bytes) -> None:
        try:
            written = os.pwrite(self._memory, data, self._start + place)
        except OSError as error:
            raise self._refused(error) from error
        if written != len(data):
            raise ProcessLookupError(f"process {self.pid} has ended")


def _program_counters(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            words = (task / "syscall").read_text().split()
            if words[0] == "running":
                raise FaultError(f"thread {task.name} of process {pid} did not stay stopped")
            yield int(words[-1], 16)
