"""Histories that are small as files, or easily made, and take much to read and judge.

Each is given to `lockcheck check`, which must end in a verdict or in an error of its own, within
the memory that it is allowed and soon after its patience. `python -m tests.tools.bombs` tries all.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import NamedTuple

import zstandard

from tests.running import LOCKCHECK

MEMORY_MB, MORE_MB = 256, 300
PATIENCE_S, MORE_S = 5, 5
ENDINGS = {0: " OK ", 1: " VIOLATION ", 2: "lockcheck: ", 3: " UNKNOWN ", 4: "cure: "}
UNEXPECTED = ("Traceback", "this is a bug")
US, MS = 1_000, 1_000_000
# A small process of its own: what is started by a large one counts as large as that.
MEASURED = """
import os, sys
output = [(os.POSIX_SPAWN_DUP2, 1, 2)]
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=output)
status, used = os.wait4(pid, 0)[1:]
seconds = used.ru_utime + used.ru_stime
print(os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024, seconds, file=sys.stderr)
"""


class Op(NamedTuple):
    """One operation of a lock; without an end it was never answered."""

    client: int
    key: str
    f: str
    start: int
    end: int | None
    value: str = "null"  # JSON, which EDN reads, too


# --- what happened --------------------------------------------------------------------------


def in_turn(number: int, clients: int = 5, keys: int = 1, value: str = "null") -> Iterator[Op]:
    """A lock that works: each client acquires and releases it before the next one."""
    for turn in range(number):
        client, key, at = turn % clients, f"k{turn % keys}", 4 * US * turn
        yield Op(client, key, "acquire", at, at + US, value)
        yield Op(client, key, "release", at + 2 * US, at + 3 * US, value)


def at_once(number: int) -> Iterator[Op]:
    """All are let in one after the other, before any leaves; the last one leaves first."""
    for turn in range(number):
        yield Op(turn, "k", "acquire", MS + 2 * US * turn, MS + 2 * US * turn + US)
    left = MS + 2 * US * number
    for turn in range(number):
        yield Op(number - 1 - turn, "k", "release", left + 2 * US * turn, left + 2 * US * turn + US)


def unanswered(number: int) -> Iterator[Op]:
    for turn in range(number):
        yield Op(turn, "k", "acquire", US * turn, None)


def writes(number: int) -> Iterator[Op]:
    """All at the same time, and a read of what none of them wrote: every order has to be tried."""
    for turn in range(number):
        yield Op(turn, "k", "add", 0, MS, str(1 << turn % 60))
    yield Op(number, "k", "read", 0, MS, "-1")


# --- in each format ---------------------------------------------------------------------------


def _events(ops: Iterator[Op]) -> Iterator[tuple[int, str, Op]]:
    """Invocations and answers by their times."""
    both: list[tuple[int, str, Op]] = []
    for op in ops:
        both.append((op.start, "invoke", op))
        both += [] if op.end is None else [(op.end, "ok", op)]
    return iter(sorted(both, key=lambda each: each[0]))


def jsonl(ops: Iterator[Op]) -> Iterator[str]:
    for time, kind, op in _events(ops):
        yield (
            f'{{"time":{time},"process":{op.client},"type":"{kind}","f":"{op.f}",'
            f'"key":"{op.key}","value":{op.value}}}\n'
        )


def jepsen(ops: Iterator[Op]) -> Iterator[str]:
    for index, line in enumerate(jsonl(ops)):
        yield f'{{"index":{index},{line[1:]}'


def jepsen_array(ops: Iterator[Op]) -> Iterator[str]:
    yield "["
    for number, line in enumerate(jepsen(ops)):
        yield f"{',' * bool(number)}{line}"
    yield "]"


def edn(ops: Iterator[Op]) -> Iterator[str]:
    for time, kind, op in _events(ops):
        yield (
            f"{{:process {op.client}, :type :{kind}, :f :{op.f}, :time {time}, "
            f':key "{op.key}", :value {"nil" if op.value == "null" else op.value}}}\n'
        )


def txt(ops: Iterator[Op], before: str = "") -> Iterator[str]:
    for _, kind, op in _events(ops):
        value = f'"{op.key}"' if op.value == "null" else op.value
        yield f"{before}{op.client}\t:{kind}\t:{op.f}\t{value}\n"


def csv(ops: Iterator[Op]) -> Iterator[str]:
    yield "client,key,op,start_ns,end_ns,outcome,value\n"
    for op in ops:
        ended = ",," if op.end is None else f",{op.end},ok"
        value = op.value.replace('"', '""')
        value = "" if value == "null" else f'"{value}"'
        yield f"{op.client},{op.key},{op.f},{op.start}{ended},{value}\n"


def span(op: Op) -> str:
    told = {"lock.client": str(op.client), "lock.key": op.key, "lock.op": op.f}
    told |= {} if op.value == "null" else {"lock.value": op.value}
    attributes = [{"key": name, "value": {"stringValue": text}} for name, text in told.items()]
    times = {"startTimeUnixNano": str(op.start + 1), "endTimeUnixNano": str(1 + (op.end or -1))}
    return json.dumps({"name": op.f, **times, "attributes": attributes})


def spans(ops: Iterator[Op]) -> Iterator[str]:
    for op in ops:
        yield f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span(op)}]}}]}}]}}\n'


def spans_at_once(ops: Iterator[Op]) -> Iterator[str]:
    return _export(map(span, ops))


def _export(those: Iterable[str], often: int = 1) -> Iterator[str]:
    """One document with these spans, so many times."""
    inside = ",".join(those)
    yield '{"resourceSpans":['
    for number in range(often):
        yield f'{"," * bool(number)}{{"scopeSpans":[{{"spans":[{inside}]}}]}}'
    yield "]}\n"


WRITERS: dict[str, Callable[[Iterator[Op]], Iterator[str]]] = {
    "jsonl": jsonl,
    "json": jepsen,
    "array": jepsen_array,
    "edn": edn,
    "txt": txt,
    "log": partial(txt, before="INFO  jepsen.util - "),
    "csv": csv,
    "otlp": spans,
    "export": spans_at_once,  # one document of all
}
FORMATS = {"json": "jepsen-json", "array": "jepsen-json", "export": "otlp"}  # others: as they end
CASES: dict[str, Callable[[], Iterator[Op]]] = {
    "long": lambda: in_turn(100_000),
    "clients": lambda: in_turn(60_000, clients=60_000),
    "keys": lambda: in_turn(60_000, keys=60_000),
    "at once": lambda: at_once(10_000),
    "unanswered": lambda: unanswered(60_000),
    "any order": lambda: writes(60),
    "empty lists": lambda: in_turn(50, value=_nested("[]", 250_000)),
    "many values": lambda: in_turn(50, value=_nested("1", 500_000)),
    "deep": lambda: in_turn(50, value="[" * 400_000 + "]" * 400_000),
    "digits": lambda: in_turn(50, value="7" * 1_000_000),
    "a long text": lambda: in_turn(50, value=f'"{"x" * 1_000_000}"'),
    "longer than a line": lambda: in_turn(5, value=_nested("[]", 10_000_000)),
    "longer text": lambda: in_turn(1, value=f'"{"x" * 60_000_000}"'),
    "longer number": lambda: in_turn(1, value="7" * 60_000_000),
    "deeper": lambda: in_turn(1, value="[" * 60_000_000),
}


def _nested(element: str, number: int) -> str:
    return f"[{','.join(repeat(element, number))}]"


# --- what only one format has -----------------------------------------------------------------

EMPTY = ("{}",) * 300_000
RIGHT = {name: "".join(write(in_turn(3))) for name, write in WRITERS.items()}
FOREIGN = '{"name":"GET /","startTimeUnixNano":"1","endTimeUnixNano":"2","kind":3}'
ALONE: dict[str, Callable[[], Iterator[str]]] = {
    "empty spans.otlp": lambda: _export(EMPTY, 45),
    "foreign spans.otlp": lambda: _export(repeat(FOREIGN, 100_000), 8),
    "empty resources.otlp": lambda: chain(
        ['{"resourceSpans":['], repeat("{},", 9_999_999), ["{}]}"]
    ),
    "empty exports.otlp": lambda: chain([RIGHT["otlp"]], repeat("{}\n", 5_000_000)),
    "empty attributes.otlp": lambda: _export([_with_attributes(repeat("{}", 10_000_000))]),
    "strange attributes.otlp": lambda: _export([_with_attributes(_strange(1_000_000))]),
    "half an export.otlp": lambda: iter(['{"resourceSpans":[', "[" * 50_000_000]),
    "empty maps.edn": lambda: chain(["["], repeat("{} ", 20_000_000), ["]"]),
    "discarded.edn": lambda: chain([RIGHT["edn"]], repeat("#_", 20_000_000)),
    "tags.edn": lambda: chain([RIGHT["edn"]], repeat("#a ", 20_000_000)),
    "a set.edn": lambda: iter([RIGHT["edn"], "{:x #{", " ".join(map(str, range(5_000_000))), "}}"]),
    "a map.edn": lambda: iter(
        [RIGHT["edn"], "{", " ".join(f"{n} 1" for n in range(4_000_000)), "}"]
    ),
    "keywords.edn": lambda: iter(["[", " ".join(f":k{n}" for n in range(5_000_000)), "]"]),
    "comments.edn": lambda: chain([RIGHT["edn"]], repeat(";\n", 20_000_000)),
    "fields.array": lambda: iter(["[{", ",".join(f'"f{n}":1' for n in range(4_000_000)), "}]"]),
    "empty objects.array": lambda: chain(["["], repeat("{},", 20_000_000), ["{}]"]),
    "blank lines.jsonl": lambda: chain([RIGHT["jsonl"]], repeat("\n", 20_000_000)),
    "blank lines.csv": lambda: chain([RIGHT["csv"]], repeat("\n", 20_000_000)),
    "columns.csv": lambda: iter([RIGHT["csv"].splitlines()[0], ",x" * 500_000, "\n"]),
    "cells.csv": lambda: chain([RIGHT["csv"]], repeat("," * 1_000_000 + "\n", 50)),
    "a cell without an end.csv": lambda: iter([RIGHT["csv"], '"', "x,\n" * 20_000_000]),
    "one line.txt": lambda: iter([RIGHT["txt"], "x" * 60_000_000]),
    "strangers.log": lambda: chain([RIGHT["log"]], repeat("INFO hello\n", 5_000_000)),
    "zeros.jsonl": lambda: iter([RIGHT["jsonl"], "\0" * 60_000_000]),
}


def _with_attributes(attributes: Iterator[str]) -> str:
    times = '"startTimeUnixNano":"1","endTimeUnixNano":"2"'
    return f'{{"name":"lock",{times},"attributes":[{",".join(attributes)}]}}'


def _strange(number: int) -> Iterator[str]:
    yield '{"key":"lock.op","value":{"stringValue":"acquire"}}'
    yield '{"key":"lock.client","value":{"stringValue":"c"}}'
    for each in range(number):
        yield f'{{"key":"lock.x{each}","value":{{"intValue":1}}}}'


def _written(
    ops: Callable[[], Iterator[Op]], write: Callable[[Iterator[Op]], Iterator[str]]
) -> Iterator[str]:
    return write(ops())


BOMBS: dict[str, Callable[[], Iterator[str]]] = {
    **{
        f"{case}.{name}": partial(_written, ops, write)
        for case, ops in CASES.items()
        for name, write in WRITERS.items()
    },
    **ALONE,
}
PACKED: dict[str, Callable[[], Iterator[str]]] = {
    "packed spans.otlp": lambda: _export(EMPTY, 450),
    "packed blanks.jsonl": lambda: iter([RIGHT["jsonl"], "\n" * 400_000_000]),
    "packed text.array": lambda: iter(['[{"process":"', "x" * 400_000_000]),
    "packed values.edn": lambda: iter([RIGHT["edn"], "[", "[]" * 200_000_000]),
    "packed cells.csv": lambda: iter([RIGHT["csv"], "," * 400_000_000]),
}
QUICK = (
    *("empty spans.otlp", "empty resources.otlp", "longer than a line.array"),
    *("longer than a line.edn", "many values.jsonl", "at once.csv", "packed spans.otlp.gz"),
    "packed spans.otlp.zst",
)


# --- how it ends ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    mb: float
    seconds: float  # of a processor: however busy the machine is
    output: str

    @property
    def wrong(self) -> str:
        """What should not have been; empty if nothing."""
        found = [word for word in UNEXPECTED if word in self.output]
        if ENDINGS.get(self.code, "?") not in self.output:
            found.append(f"exit {self.code} without {ENDINGS.get(self.code)!r}")
        if self.mb > MEMORY_MB + MORE_MB:
            found.append("too much memory")
        if self.seconds > PATIENCE_S + MORE_S:
            found.append("too long")
        return ", ".join(found)


def format_of(name: str) -> str:
    ending = name.removesuffix(".gz").removesuffix(".zst").rpartition(".")[2]
    return FORMATS.get(ending, ending)


def write_bomb(name: str, folder: Path) -> Path:
    """Writes it, packed if its name ends so."""
    path = folder / name.replace(" ", "-")
    kind, _, packing = name.rpartition(".") if name.endswith((".gz", ".zst")) else (name, "", "")
    pieces = (piece.encode() for piece in (PACKED if packing else BOMBS)[kind]())
    if packing == "gz":
        with gzip.open(path, "wb", compresslevel=6) as packed:
            packed.writelines(pieces)
    elif packing == "zst":
        with zstandard.open(path, "wb") as stream:
            for piece in pieces:
                stream.write(piece)
    else:
        with path.open("wb") as out:
            out.writelines(pieces)
    return path


def check(path: Path, form: str, *more: str) -> Ended:
    """Has it checked, and measures the whole command: the process that judges is a child of it."""
    options = ("--memory", f"{MEMORY_MB}MB", "--patience", f"{PATIENCE_S}s", "--format", form)
    command = [sys.executable, "-c", MEASURED, *LOCKCHECK, "check", str(path), *options, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    code, mb, seconds = done.stderr.splitlines()[-1].split()
    return Ended(int(code), float(mb), float(seconds), done.stdout)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", default="", help="those that have this in their names")
    given = arguments.parse_args()
    names = [*BOMBS, *(f"{name}.{packing}" for name in PACKED for packing in ("gz", "zst"))]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="lockcheck-bombs-") as folder:
        for name in (name for name in names if given.only in name):
            path = write_bomb(name, Path(folder))
            size = path.stat().st_size / 1e6
            ended = check(path, format_of(name))
            path.unlink()
            wrong += bool(ended.wrong)
            print(
                f"{name:<40}{size:6.1f} MB file {ended.mb:6.0f} MB {ended.seconds:6.1f} s "
                f"exit {ended.code} {ended.wrong and 'WRONG: ' + ended.wrong} "
                f"{' '.join(ended.output.split())[:110]}",
                flush=True,
            )
    sys.exit(f"{wrong} are wrong" if wrong else 0)


if __name__ == "__main__":
    main()
