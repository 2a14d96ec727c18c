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


def _operation(operation: Operation, client: int, of: int | None) -> dict[str, object]:
    invoke, answer, end_ns = operation.invoke, operation.answer, operation.end_ns
    asked = {"op": operation.f, "key": operation.key, "value": invoke.value}
    output = (
        {"outcome": EventType.INFO, "value": None, "token": None}
        if answer is None
        else {"outcome": answer.type, "value": result_of(answer), "token": answer.token}
    )
    return {
        "ClientId": client,
        "Input": asked if of is None else {**asked, "of": of},
        "Call": operation.start_ns,
        "Output": output,
        "Return": END_OF_TIMES if end_ns is None else end_ns,
    }
