"""Long histories of objects that work, written to files: what `make bench` reads and judges."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lockcheck.history.event import encode_event
from tests.simulation import Fault, FaultKind, Plan, Target, simulated_events

CLIENTS = 20
INDETERMINATE = 0.01
EPOCH_NS = 1_700_000_000_000_000_000
SPANS_OF_AN_EXPORT = 100


MS_PER_OPERATION = 3  # of a simulated run


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


def since_1970(operations: int, seed: int = 1) -> Iterator[str]:
    """The same by a clock on the wall."""
    for line in lock(operations, seed):
        time, comma, rest = line.removeprefix('{"time":').partition(",")
        yield f'{{"time":{EPOCH_NS + int(time)}{comma}{rest}'


def run(operations: int, seed: int = 1) -> Iterator[str]:
    """As a run of lockcheck leaves it: clients that read and write under a lock with a lease, whose
    holders are paused for longer than that every few seconds; and all that the storage remembers,
    stale writes and lost updates among it."""
    paused = Fault(FaultKind.PAUSE, Target.HOLDER, (120, 200), (3_000, 6_000))
    length_ms = MS_PER_OPERATION * operations
    plan = Plan(seed=seed, faults=(paused,), until_ms=length_ms, calm_ms=length_ms // 100)
    for event in simulated_events(plan):
        yield encode_event(event).decode() + "\n"


def rows(operations: int, seed: int = 1) -> Iterator[str]:
    """A lock in production, as CSV: one client after the other."""
    choices, time = random.Random(seed), EPOCH_NS
    yield "client,key,op,start_ns,end_ns,outcome,token\n"
    for turn in range(operations // 2):
        client = f"worker-{choices.randrange(CLIENTS)}"
        asked, granted = time, time + choices.randint(1_000, 3_000)
        begun = granted + choices.randint(1_000, 3_000)
        time = begun + choices.randint(1_000, 3_000)
        yield f"{client},orders,acquire,{asked},{granted},ok,{turn + 1}\n"
        yield f"{client},orders,release,{begun},{time},ok,\n"
        time += 500


def spans(operations: int, seed: int = 1) -> Iterator[str]:
    """The same rows as spans, an export a line, as a collector writes them."""
    told = rows(operations, seed)
    names = next(told).split(",")
    while some := list(islice(told, SPANS_OF_AN_EXPORT)):
        exported = [_span(dict(zip(names, row.strip().split(","), strict=True))) for row in some]
        resource = {"attributes": [_attribute("service.name", "orders")]}
        scopes = [{"scope": {"name": "locks"}, "spans": exported}]
        yield json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}) + "\n"


def _span(row: dict[str, str]) -> dict[str, object]:
    named = ("client", "key", "op", "outcome", "token\n")
    said = [_attribute(f"lock.{name.strip()}", row[name]) for name in named if row[name]]
    return {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "spanId": "eee19b7ec3c1b174",
        "name": "lock",
        "kind": 3,
        "startTimeUnixNano": row["start_ns"],
        "endTimeUnixNano": row["end_ns"],
        "attributes": said,
        "status": {},
    }


def _attribute(key: str, value: str) -> dict[str, object]:
    return {"key": key, "value": {"stringValue": value}}


def crowded(operations: int) -> Iterator[str]:
    """As `rows`, of a lock that lets in the next client before the one before it has let go: an
    overlap for each two operations."""
    yield "client,key,op,start_ns,end_ns,outcome,token\n"
    for turn in range(operations // 2):
        at, client = 10_000 * turn, f"worker-{turn % CLIENTS}"
        yield f"{client},orders,acquire,{at},{at + 1_000},ok,{turn + 1}\n"
        yield f"{client},orders,release,{at + 12_000},{at + 13_000},ok,\n"


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
        out.writelines(lines)
