"""The code that is written into a vDSO, for each processor: vdso_*.S as bytes, and its entries."""

from __future__ import annotations

import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LINE = struct.Struct("=qqq")  # real_from, shown_from, rate
LINES = 2  # one for the wall clock, one for the monotonic clock
TABLES = 2


@dataclass(frozen=True, slots=True)
class Processor:
    machine: int  # its number in ELF
    code: bytes
    enters: Mapping[str, int]  # functions of the vDSO, and the offsets of ours in the code
    clock: str  # the function that reads any clock
    jump: Callable[[int], bytes]  # the instructions that jump so many bytes ahead

    @property
    def turn(self) -> int:
        """The offset of the number that selects the table in effect; the tables follow it."""
        return len(self.code)

    @property
    def tables(self) -> int:
        return self.turn + 8

    @property
    def size(self) -> int:
        return self.tables + TABLES * LINES * LINE.size


def _jump_x86_64(distance: int) -> bytes:
    return b"\xe9" + struct.pack("<i", distance - 5)


def _jump_aarch64(distance: int) -> bytes:
    """After a landing pad (BTI), which some processors demand."""
    landing_pad = 0xD503245F
    return struct.pack("<II", landing_pad, 0x14000000 | ((distance - 4) // 4 & 0x3FFFFFF))


PROCESSORS = {
    "x86_64": Processor(
        machine=62,
        code=bytes.fromhex(
            "b8e40000000f0585c00f859500000083ff0b0f878c0000004531c0b9210800000fa3f9721041b818000000b9"
            "d20000000fa3f9736f4c8d0dfc000000440fb615ec0000004489d183e1016bc9304c01c14c01c9488b01488b"
            "51084c8b5910443a15cb00000075d54989d048690e00ca9a3b48034e084829c14889c849f7eb480facd0204c"
            "01c04899b900ca9a3b48f7f94885d279064801ca48ffc84889064889560831c0c366662e0f1f840000000000"
            "57564883ec184885ff742931ff4889e6e83bffffff488b7c2420488b0424488907488b44240831d2b9e80300"
            "0048f7f148894708488b7424184885f6740748c7060000000031c04883c428c30f1f4000574883ec1031ff48"
            "89e6e8f1feffff488b04244883c4105f4885ff7403488907c366662e0f1f8400000000000f1f4000"
        ),
        enters={"__vdso_clock_gettime": 0x00, "__vdso_gettimeofday": 0xB0, "__vdso_time": 0x100},
        clock="__vdso_clock_gettime",
        jump=_jump_x86_64,
    ),
    "aarch64": Processor(
        machine=183,
        code=bytes.fromhex(
            "280e80d2e903002aea0301aa010000d4400500b53f2d0071080500542b0080526b21c91a0d0080d22c048152"
            "7f010c6aa10000540d0380d24c1a80527f010c6ac00300546e0600108f060010100680d2ccfddf088b014092"
            "6b35109b6b010f8b620d40a9640940f9bf3903d5c80140391f010c6be1feff54451940a9074099d24773a7f2"
            "a518079ba50002cba67c449ba57c049bc580c593a500038ba60cc79ac894079b6800f8b60801078bc60400d1"
            "462100a9000080d2c0035fd61f2003d5fd7bbda9e00701a9200100b4000080d2e1830091cbffff97e20f42a9"
            "047d80d26308c49ae00b40f9020c00a9e10f40f9410000b43f0000f9000080d2fd7bc3a8c0035fd61f2003d5"
            "1f2003d51f2003d5"
        ),
        enters={"__kernel_clock_gettime": 0x00, "__kernel_gettimeofday": 0xC0},
        clock="__kernel_clock_gettime",
        jump=_jump_aarch64,
    ),
}


def this_processor() -> Processor | None:
    """The processor of this machine; None if there is no code for it."""
    return PROCESSORS.get(platform.machine())
