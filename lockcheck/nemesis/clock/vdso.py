"""Moves the clocks of a running process by rewriting its own copy of the vDSO: without a restart,
without anything preloaded, and no other process is affected.

Forks inherit it; programs that it executes do not. A clock that is read by a system call is right:
so the clock of a JVM, which waits until moments of the kernel's monotonic clock, must not be moved
like this (see `faketime.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import CLOCKS, ClockLine, Skew
from lockcheck.nemesis.clock.vdso_code import LINE, LINES
from lockcheck.nemesis.clock.vdso_copy import read_through
from lockcheck.nemesis.clock.vdso_image import kernels_image, segment_of
from lockcheck.servers.base import Clock

NOT_ALLOWED = "run it as the user whose processes they are, or as root, with ptrace allowed"


class Vdso:
    """Of one process. Its threads have to be stopped for `lead` and `restore` only."""

    def __init__(self, pid: int) -> None:
        """Raises a FaultError, before anything is touched, if it cannot be done."""
        self.pid = pid
        self._kernels = kernels_image()
        try:
            self._start, size = segment_of(pid)
            self._memory = os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except PermissionError as error:
            raise self._refused(error) from error
        if size != len(self._kernels.data) or not self._is_as_it_should_be():
            self.close()
            raise FaultError(f"the vDSO of process {pid} is not this kernel's: somebody changed it")

    def close(self) -> None:
        os.close(self._memory)

    def _refused(self, error: OSError) -> FaultError:
        return FaultError(
            f"the memory of process {self.pid} cannot be written: {error.strerror}",
            cure=NOT_ALLOWED,
        )

    # --- leading it to our code, and back ----------------------------------------------------

    @property
    def is_led(self) -> bool:
        return all(
            self._at(place, len(head)) == head for place, head in self._kernels.heads.items()
        )

    def can_be_written(self) -> None:
        """Tries it, with the bytes that are there already."""
        self._write(self._kernels.place, self._at(self._kernels.place, 1))

    def is_in_the_way(self) -> bool:
        """A thread is within the code to be overwritten: it would execute half of each."""
        places = {self._start + place: len(head) for place, head in self._kernels.heads.items()}
        return any(
            place < counter < place + length
            for counter in _program_counters(self.pid)
            for place, length in places.items()
        )

    def lead(self) -> None:
        processor = self._kernels.processor
        tables = b"".join(LINE.pack(*_numbers(ClockLine())) for _ in range(LINES))
        self._write(self._kernels.place, processor.code + bytes(8) + tables + tables)
        for place, head in self._kernels.heads.items():
            self._write(place, head)

    def restore(self) -> None:
        """Restores the functions. Our code stays behind their end: a thread may still be in it."""
        for place in self._kernels.heads:
            self._write(place, self._kernels.head(place))

    def _is_as_it_should_be(self) -> bool:
        """Before our code it is the kernel's, or the kernel's with jumps to our code."""
        seen, led = self._at(0, self._kernels.place), bytearray(self._kernels.data)
        for place, head in self._kernels.heads.items():
            led[place : place + len(head)] = head
        place = self._kernels.place
        return seen == self._kernels.data[:place] or (
            seen == led[:place] and self._at(place, len(self._code)) == self._code
        )

    @property
    def _code(self) -> bytes:
        return self._kernels.processor.code

    # --- what its clocks tell ----------------------------------------------------------------

    def tell(self, skew: Skew) -> None:
        """At once, for all threads, whether they run or not."""
        processor, place = self._kernels.processor, self._kernels.place
        turn = self._at(place + processor.turn, 1)[0] + 1 & 0xFF
        lines = b"".join(LINE.pack(*_numbers(skew.line(clock))) for clock in CLOCKS)
        self._write(place + processor.tables + (turn & 1) * len(lines), lines)
        self._write(place + processor.turn, bytes([turn]))

    def told(self) -> Skew:
        """How it was set."""
        processor, place, size = self._kernels.processor, self._kernels.place, LINES * LINE.size
        while True:
            turn = self._at(place + processor.turn, 1)
            lines = self._at(place + processor.tables + (turn[0] & 1) * size, size)
            if self._at(place + processor.turn, 1) == turn:
                return Skew(*(ClockLine(*numbers) for numbers in LINE.iter_unpack(lines)))

    def read_ns(self, clock: Clock) -> int:
        """What the process itself would read now: a copy of its vDSO is run."""
        if not self.is_led:
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


def _numbers(line: ClockLine) -> tuple[int, int, int]:
    return line.real_from, line.told_from, line.rate


def _program_counters(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            words = (task / "syscall").read_text().split()
            if words[0] == "running":
                raise FaultError(f"thread {task.name} of process {pid} did not stay stopped")
            yield int(words[-1], 16)
