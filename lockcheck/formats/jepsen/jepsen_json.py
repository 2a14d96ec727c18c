"""A Jepsen history as JSON: an object for each operation, one a line or all in one array.

    {"process": 0, "type": "invoke", "f": "acquire", "value": null, "time": 3291485317, "index": 0}

`jepsen` describes what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

import msgspec

from lockcheck.formats.jepsen.jepsen_edn import events_of_jepsen
from lockcheck.formats.jepsen.jepsen_op import JepsenOp, op_of_map
from lockcheck.formats.json_documents import Document, read_documents
from lockcheck.formats.source import Source
from lockcheck.history.event import Event

_decode = msgspec.json.Decoder(dict[str, object]).decode


def read_json(data: IO[bytes], source: Source) -> Iterator[Event]:
    documents = read_documents(data, source.name, _decode)
    return events_of_jepsen((_op(document, source) for document in documents), source)


def _op(document: Document[dict[str, object]], source: Source) -> JepsenOp:
    fields = document.value
    if ":process" in fields:
        fields = {name.removeprefix(":"): value for name, value in fields.items()}
    return op_of_map(fields, source.name, document.line, document.column)
