"""The vDSO that the kernel maps, the same into every process, and the room in it for our code."""

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
OTHER_ENGINE = "aim it at a server that can run under libfaketime, or leave the clock out"


@dataclass(frozen=True, slots=True)
class Image:
    """Places are offsets into `data`."""

    data: bytes
    processor: Processor
    place: int  # of our code
    jumps: Mapping[int, bytes]  # to our code, by the places of the functions that they redirect
    clock: int  # the place of the function that reads any clock

    def original(self, place: int) -> bytes:
        """The kernel's own bytes where a jump is written."""
        return self.data[place : place + len(self.jumps[place])]


def segment_of(pid: int | str) -> tuple[int, int]:
    """The address and the size of a process's vDSO."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    if not lines:
        raise ProcessLookupError(f"process {pid} is ending: it has no memory any more")
    for line in lines:
        if line.endswith("[vdso]"):
            start, end = (int(word, 16) for word in line.split()[0].split("-"))
            return start, end - start
    raise FaultError(f"process {pid} has no vDSO, so its clock cannot be moved")


@cache
def kernels_image() -> Image:
    """The vDSO of this process; raises FaultError if our code does not fit it."""
    start, size = segment_of("self")
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        memory.seek(start)
        return prepared(memory.read(size), this_processor())


def prepared(data: bytes, processor: Processor | None) -> Image:
    """Computes the jumps and the place of our code; raises FaultError if it does not fit."""
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
    jumps = {place: processor.jump(room + enter - place) for place, enter in places.items()}
    return Image(data, processor, room, jumps, functions[processor.clock])


def _segments(data: bytes, header: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    offset, size, number = header[5], header[9], header[10]
    return (SEGMENT.unpack_from(data, offset + n * size) for n in range(number))


def _functions(data: bytes, segments: list[tuple[int, ...]]) -> dict[str, int]:
    """The offset of each function, by name; the string table follows the symbol table."""
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
    """A place after all that is in use; if need be, over the section headers, which are not."""
    loaded = max(each[3] + each[6] for each in segments if each[0] == PT_LOAD)
    sections = header[6] + header[11] * header[12]
    for end in (max(loaded, sections), loaded):
        place = -(-end // 16) * 16
        if place + size <= len(data):
            return place
    raise FaultError(
        f"this kernel's vDSO has no room for {size} bytes after its end", cure=OTHER_ENGINE
    )
