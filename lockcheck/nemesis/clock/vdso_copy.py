"""Reads a clock as another process reads it: runs a copy of the code and the tables in its vDSO."""

from __future__ import annotations

import ctypes
import mmap
from functools import cache

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.skew import CLOCK_IDS, NS_PER_S
from lockcheck.nemesis.clock.vdso_image import Image
from lockcheck.servers.base import Clock


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_int64), ("nanoseconds", ctypes.c_int64))


_GETTIME = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(_Timespec))


def read_through(kernels: Image, copied: bytes, clock: Clock) -> int:
    """The clock in ns. Runs only our own jump and code; raises FaultError if they are missing."""
    jump, code = kernels.jumps[kernels.clock], kernels.processor.code
    jumps = copied[kernels.clock :].startswith(jump)
    if not (jumps and copied[kernels.place :].startswith(code)):
        raise FaultError("its clock is not read by our code")
    memory = _memory(len(copied))
    memory[:] = copied
    shown = _Timespec()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    failed = _GETTIME(address + kernels.clock)(CLOCK_IDS[clock], ctypes.byref(shown))
    if failed:
        raise FaultError(f"its vDSO cannot read the {clock} clock: error {failed}")
    return int(shown.seconds * NS_PER_S + shown.nanoseconds)


@cache
def _memory(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError as error:
        raise FaultError(f"no clock can be read back here: {error.strerror}") from error
