"""Long histories of objects that work, written to files: what `make bench` reads and judges."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

CLIENTS = 20
INDETERMINATE = 0.01
PIECE = 50_000  # lines between two writes


class Clients:
    """Who takes part. One whose operation was not answered goes on under another number."""

    def __init__(self, count: int = CLIENTS) -> None:
        self.processes = list(range(count))
        self._next = count

    def retire(self, client: int) -> None:
        self.processes[client] = self._next
        self._next += 1


def lock(operations: int, seed: int = 1) -> Iterator[str]:
    """One lock, whose other clients wait while one has it; its tokens grow."""
    choices, clients, time = random.Random(seed), Clients(), 0
    waiting = list(range(CLIENTS))
    for client in waiting:
        time += 1_000
        yield _line(time, clients.processes[client], "invoke", "acquire")
    for turn in range(operations // 2):
        at = choices.randrange(len(waiting))
        waiting[at], waiting[-1] = waiting[-1], waiting[at]
        client = waiting[-1]
        process = clients.processes[client]
        time += choices.randint(1_000, 3_000)
        yield _line(time, process, "ok", "acquire", f',"token":{turn + 1}')
        time += choices.randint(1_000, 3_000)
        yield _line(time, process, "invoke", "release")
        time += choices.randint(1_000, 3_000)
        lost = choices.random() < 2 * INDETERMINATE  # of the releases, so 1 % of all
        yield _line(time, process, "info" if lost else "ok", "release")
        if lost:
            clients.retire(client)
        time += 500
        yield _line(time, clients.processes[client], "invoke", "acquire")


def register(
    operations: int, seed: int = 1, *, cas: bool = False, values: int = 0, clients: int = CLIENTS
) -> Iterator[str]:
    """One register, all its clients busy. With `values` it is written so many different ones only,
    else each write has its own. A client's operation takes effect when it is picked out of those
    under way, so what is answered is right."""
    choices, those, time = random.Random(seed), Clients(clients), 0
    under_way: list[tuple[int, str, int | None]] = []  # client, operation, what it writes
    idle = list(range(clients))
    held: int | None = None
    fresh: int | None
    begun = done = 0
    while done < operations:
        time += choices.randint(10, 100)
        if idle and begun < operations and (not under_way or choices.random() < 0.5):
            client = idle.pop(choices.randrange(len(idle)))
            f = choices.choice(("read", "write", "cas") if cas else ("read", "write"))
            begun += 1
            fresh = choices.randrange(values) if values else begun
            under_way.append((client, f, None if f == "read" else fresh))
            asked = f',"value":{fresh}' if f == "write" else ""
            if f == "cas":
                asked = f',"value":[{_json(held)},{fresh}]'
                under_way[-1] = (client, f"cas {_json(held)}", fresh)
            yield _line(time, those.processes[client], "invoke", f, asked)
            continue
        client, f, fresh = under_way.pop(choices.randrange(len(under_way)))
        process = those.processes[client]
        done += 1
        lost = choices.random() < INDETERMINATE
        f, _, expected = f.partition(" ")
        kind, told = "ok", ""
        if f == "read":
            told = f',"value":{_json(held)}'
        elif f == "write":
            held, told = fresh, f',"value":{fresh}'
        elif expected == _json(held):
            told, held = f',"value":[{expected},{fresh}]', fresh
        else:
            kind = "fail"
        yield _line(time, process, "info" if lost else kind, f, "" if lost else told)
        if lost:
            those.retire(client)
        idle.append(client)


def _json(value: int | None) -> str:
    return "null" if value is None else str(value)


def _line(time: int, process: int, kind: str, f: str, more: str = "") -> str:
    return f'{{"time":{time},"process":{process},"type":"{kind}","f":"{f}","key":"k"{more}}}\n'


def write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w") as out:
        _copy(lines, out)


def _copy(lines: Iterator[str], out: TextIO) -> None:
    piece: list[str] = []
    for line in lines:
        piece.append(line)
        if len(piece) == PIECE:
            out.write("".join(piece))
            piece.clear()
    out.write("".join(piece))
