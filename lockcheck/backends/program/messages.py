"""The messages between lockcheck and a user's client program: docs/protocol.md.

One JSON object a line, in Maelstrom's envelope. What a program says is decoded by type, and a
message of a wrong type is no answer.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from lockcheck.history import Refusal

# Maelstrom's codes of errors that are definite; all others mean that it may have happened.
NOT_SUPPORTED, UNAVAILABLE, MALFORMED = 10, 11, 12
REFUSALS = {
    1: Refusal.UNAVAILABLE,  # node-not-found
    NOT_SUPPORTED: Refusal.UNAVAILABLE,
    UNAVAILABLE: Refusal.UNAVAILABLE,
    MALFORMED: Refusal.UNAVAILABLE,
    14: Refusal.UNAVAILABLE,  # abort
    20: Refusal.NOT_OWNER,  # key-does-not-exist: there is no lock of its own to release
    21: Refusal.HELD,  # key-already-exists
    22: Refusal.HELD,  # precondition-failed
    30: Refusal.HELD,  # txn-conflict
}
OWNERS_CODES = (20, 22)  # at a release or renewal they say that it was not the owner any more

Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Token: TypeAlias = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Span: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class _Message(msgspec.Struct, frozen=True, tag_field="type", kw_only=True):
    pass


class InitOk(_Message, frozen=True, tag="init_ok"):
    in_reply_to: Number


class DescribeOk(_Message, frozen=True, tag="describe_ok"):
    """All of it optional: what the command line says goes first."""

    in_reply_to: Number
    name: str = ""
    version: str = ""
    servers: str = ""  # as --servers takes them
    promises: tuple[str, ...] = ()  # as --promises takes them
    ttl_ms: Annotated[int, msgspec.Meta(gt=0, lt=1 << 31)] | None = None  # if it has one of its own


class AcquireOk(_Message, frozen=True, tag="acquire_ok"):
    in_reply_to: Number
    token: Token | None = None
    valid_ms: Span | None = None


class ReleaseOk(_Message, frozen=True, tag="release_ok"):
    in_reply_to: Number


class RenewOk(_Message, frozen=True, tag="renew_ok"):
    in_reply_to: Number
    valid_ms: Span | None = None


class ReadOk(_Message, frozen=True, tag="read_ok"):
    in_reply_to: Number
    value: str | None = None


class WriteOk(_Message, frozen=True, tag="write_ok"):
    in_reply_to: Number


class Failed(_Message, frozen=True, tag="error"):
    in_reply_to: Number
    code: int
    text: str = ""


class Lost(_Message, frozen=True, tag="lost"):
    """Unasked: the hold that came of that acquire is over."""

    acquire: Number
    text: str = ""


class Queued(_Message, frozen=True, tag="queued"):
    """Unasked: that acquire has its place in the queue."""

    acquire: Number


class Renewing(_Message, frozen=True, tag="renewing"):
    """Unasked: it is about to renew that hold. `renewal` is a number of its own."""

    acquire: Number
    renewal: Number


class Renewed(_Message, frozen=True, tag="renewed"):
    renewal: Number
    valid_ms: Span | None = None


class NotRenewed(_Message, frozen=True, tag="not_renewed"):
    renewal: Number
    code: int
    text: str = ""


Answer: TypeAlias = (
    InitOk | DescribeOk | AcquireOk | ReleaseOk | RenewOk | ReadOk | WriteOk | Failed
)
Notice: TypeAlias = Lost | Queued | Renewing | Renewed | NotRenewed
ANSWERS = (InitOk, DescribeOk, AcquireOk, ReleaseOk, RenewOk, ReadOk, WriteOk, Failed)


class _Envelope(msgspec.Struct, frozen=True):
    body: msgspec.Raw


class _ReplyTo(msgspec.Struct, frozen=True):
    in_reply_to: Number | None = None


_envelope = msgspec.json.Decoder(_Envelope)
_reply_to = msgspec.json.Decoder(_ReplyTo)
_message: msgspec.json.Decoder[Answer | Notice] = msgspec.json.Decoder(Answer | Notice)


class Mistaken(msgspec.Struct, frozen=True):
    """An answer, by its number, that is of a wrong type."""

    in_reply_to: int
    why: str


def read(line: bytes) -> Answer | Notice | Mistaken:
    """Raises a msgspec.DecodeError, or a UnicodeError, for what is no message."""
    body = _envelope.decode(line).body
    try:
        return _message.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        number = _reply_to.decode(body).in_reply_to
        if number is None:
            raise
        return Mistaken(number, str(error))


def written(node: str, kind: str, number: int | None, content: dict[str, Any]) -> bytes:
    """A request; one without a number needs no answer."""
    numbered = {} if number is None else {"msg_id": number}
    body = {"type": kind, **numbered, **content}
    return msgspec.json.encode({"src": "lockcheck", "dest": node, "body": body}) + b"\n"
