"""Jepsen's `history.edn`: a map for each operation, one after the other or in one vector.

    {:process 0, :type :invoke, :f :acquire, :value nil, :time 3291485317, :index 0}
    #jepsen.history.Op{:process 0, :type :ok, :f :acquire, :value {:fence 3}, :time ..., :index 1}

Read are `:process`, `:type`, `:f`, `:value`, `:time`, `:error`, `:key`, `:node`, `:token` and
`:fence`; all_forms else is ignored. `jepsen` describes what they mean. A file that begins with the
terms of a run (`:process :run, :f :terms`) was exported by lockcheck: its maps are our events,
field by field, and nothing is guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import IO, cast

import msgspec

from lockcheck.formats.jepsen.edn import Form, Keyword, read_forms
from lockcheck.formats.jepsen.jepsen import events_of_ops
from lockcheck.formats.jepsen.jepsen_op import JepsenOp, op_of_map
from lockcheck.formats.source import Source
from lockcheck.history.event import RUN, Event, Notice

MOST_NAMED = 3
NO_TIMES = "a lease cannot be judged: this history has no times"


def read_edn(data: IO[bytes], source: Source) -> Iterator[Event]:
    forms = read_forms(data, source.name)
    first = next(forms, None)
    if first is None:
        raise source.error("it contains no operations")
    all_forms = chain([first], forms)
    if _is_ours(first):
        return (_our_event(form, source) for form in all_forms)
    return events_of_jepsen((_op(form, source) for form in all_forms), source)


def events_of_jepsen(ops: Iterator[JepsenOp], source: Source) -> Iterator[Event]:
    translated = events_of_ops(ops, source.name)
    if translated.strangers:
        source.notes.append(_about(translated.strangers))
    if not translated.timed:
        if source.options.ttl_ms:
            raise source.error(NO_TIMES)
        source.notes.append("it has no times: only its order counts, and durations mean nothing")
    return iter(translated.events)


def _about(strangers: Counter[str]) -> str:
    number = strangers.total()
    names = ", ".join([*sorted(strangers)[:MOST_NAMED], *["..."] * (len(strangers) > MOST_NAMED)])
    operations = "1 operation was" if number == 1 else f"{number} operations were"
    return (
        f"{operations} ignored, of processes that are neither clients nor the nemesis: "
        f"{names} (a client is a number or a string)"
    )


def _is_ours(form: Form) -> bool:
    fields = form.value
    return isinstance(fields, dict) and (fields.get("process"), fields.get("f")) == (
        RUN,
        Notice.TERMS,
    )


def _our_event(form: Form, source: Source) -> Event:
    fields = _map(form, source)
    plain = {
        name.replace("-", "_"): str(value) if type(value) is Keyword else value
        for name, value in fields.items()
    }
    source.place.line = form.line
    try:
        return msgspec.convert(plain, Event)
    except msgspec.ValidationError as error:
        raise source.error(f"not an event: {error}", form.line, form.column) from error


def _op(form: Form, source: Source) -> JepsenOp:
    fields = _map(form, source)
    for name in ("value", "process"):
        value = fields.get(name)
        if type(value) is Keyword:
            fields[name] = f":{value}"  # a keyword never equals a string
    return op_of_map(fields, source.name, form.line, form.column)


def _map(form: Form, source: Source) -> dict[str, object]:
    if not isinstance(form.value, dict):
        raise source.error("an operation is a map", form.line, form.column)
    return cast("dict[str, object]", form.value)
