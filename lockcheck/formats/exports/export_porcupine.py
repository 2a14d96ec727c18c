"""Operations as Porcupine takes them (`porcupine.Operation`), one JSON object a line.

    {"ClientId": 0, "Input": {"op": "acquire", "key": "k", "value": null}, "Call": 5,
     "Output": {"outcome": "ok", "value": null, "token": 3}, "Return": 9}

`json.Unmarshal` reads each line into a struct of those fields; a model gets Input and Output. An
unconfirmed operation has the outcome `info` and returns at the end of all time, so Porcupine may
place it anywhere after its call; the model has to accept it with and without an effect. A failed
one has the outcome `fail`, and no effect. Clients are numbered in the order of their first
operations. The `of` in the Input of a keeper's renewal is the number of its client.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lockcheck.formats.exports.export_csv import result_of
from lockcheck.history import EventType, F, History, Operation

END_OF_TIMES = (1 << 63) - 1
_encode = msgspec.json.Encoder().encode


def porcupine_lines(history: History) -> Iterator[bytes]:
    clients: dict[int | str, int] = {}
    for operation in history.operations:
        client = clients.setdefault(operation.process, len(clients))
        kept = operation.f == F.RENEW and operation.owner != operation.process
        of = clients.setdefault(operation.owner, len(clients)) if kept else None
        yield _encode(_operation(operation, client, of)) + b"\n"


class _Input(msgspec.Struct, omit_defaults=True):
    op: str
    key: str
    value: object
    of: int | None = None


class _Output(msgspec.Struct):
    outcome: str
    value: object
    token: int | None


class _Operation(msgspec.Struct, rename="pascal"):
    client_id: int
    input: _Input
    call: int
    output: _Output
    return_: int = msgspec.field(name="Return")


def _operation(operation: Operation, client: int, of: int | None) -> _Operation:
    answer, end_ns = operation.answer, operation.end_ns
    output = (
        (EventType.INFO, None, None)
        if answer is None
        else (answer.type, result_of(answer), answer.token)
    )
    return _Operation(
        client,
        _Input(operation.f, operation.key, operation.invoke.value, of),
        operation.start_ns,
        _Output(*output),
        END_OF_TIMES if end_ns is None else end_ns,
    )
