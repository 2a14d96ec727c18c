"""The vDSO that the kernel gives to every process, and where there is room in it for our code.

All processes of a machine have the same one: a process is changed only if its vDSO is equal to
ours, and is restored to that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock.vdso_code import PROCESSORS, Processor, this_processor

PT_LOAD, PT_DYNAMIC = 1, 2
DT_STRTAB, DT_SYMTAB = 5, 6
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
DYNAMIC = struct.Struct("<QQ")
SYMBOL = struct.Struct("<IBBHQQ")
OTHER_ENGINE = "aim it at a server that libfaketime can be put before, or leave the clock out"


@dataclass(frozen=True, slots=True)
class Image:
    data: bytes
    processor: Processor
    place: int  # of our code
    heads: Mapping[int, bytes]  # what the functions begin with, by their places, to be led to it
    clock: int  # the place of the function that reads any clock

    def head(self, place: int) -> bytes:
        """The kernel's own bytes at that place."""
        return self.data[place : place + len(self.heads[place])]


def segment_of(pid: int | str) -> tuple[int, int]:
    """Where a process has its vDSO, and how many bytes of it."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            return start, end - start
    raise FaultError(f"process {pid} has no vDSO, so its clock cannot be moved")


@cache
def kernels_image() -> Image:
    """Raises a FaultError if this vDSO is unknown to us."""
    start, size = segment_of("self")
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        memory.seek(start)
        return prepared(memory.read(size), this_processor())


def prepared(data: bytes, processor: Processor | None) -> Image:
    """Works out all that will be written, and touches nothing."""
    header = HEADER.unpack_from(data)
    if header[0][:5] != b"\x7fELF\x02" or processor is None or header[2] != processor.machine:
        known = " and ".join(PROCESSORS)
        raise FaultError(f"clocks can be moved only on {known}", cure=OTHER_ENGINE)
    segments = list(_segments(data, header))
    functions = _functions(data, segments)
    places = {
        functions[name]: enter for name, enter in processor.enters.items() if name in functions
    }
    if processor.clock not in functions:
        raise FaultError(f"this kernel's vDSO has no {processor.clock}", cure=OTHER_ENGINE)
    room = _room(data, header, segments, processor.size)
    heads = {place: processor.jump(room + enter - place) for place, enter in places.items()}
    return Image(data, processor, room, heads, functions[processor.clock])


def _segments(data: bytes, header: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    offset, size, number = header[5], header[9], header[10]
    return (SEGMENT.unpack_from(data, offset + n * size) for n in range(number))


def _functions(data: bytes, segments: list[tuple[int, ...]]) -> dict[str, int]:
    """By their names. The table of strings follows that of symbols."""
    [(place, size)] = [(each[2], each[5]) for each in segments if each[0] == PT_DYNAMIC]
    about = dict(DYNAMIC.iter_unpack(data[place : place + size]))
    strings, found = about[DT_STRTAB], {}
    count = (strings - about[DT_SYMTAB]) // SYMBOL.size
    for n in range(count):
        name, *_, value, _size = SYMBOL.unpack_from(data, about[DT_SYMTAB] + n * SYMBOL.size)
        start = strings + name
        found[data[start : data.index(b"\0", start)].decode()] = value
    return found


def _room(data: bytes, header: tuple[int, ...], segments: list[tuple[int, ...]], size: int) -> int:
    """Behind everything in use; the list of sections, which nobody needs, can be overwritten."""
    loaded = max(each[3] + each[6] for each in segments if each[0] == PT_LOAD)
    sections = header[6] + header[11] * header[12]
    for end in (max(loaded, sections), loaded):
        place = -(-end // 16) * 16
        if place + size <= len(data):
            return place
    raise FaultError(
        f"this kernel's vDSO has no room for {size} bytes behind its end", cure=OTHER_ENGINE
    )
