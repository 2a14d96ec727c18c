"""What the lock protects, and the witness: a Redis of its own that numbers and remembers all it
serves.

Each read and each guarded write is one script, so that the check, the number and the memory are
one step. Guards: `none` takes every write, `fence` refuses a token below the highest seen (reads
show theirs too, and raise it: a holder who has read must be safe from whoever held before), `cas`
refuses a write whose base is not the current value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from lockcheck.errors import InternalError
from lockcheck.history import Event, EventType, F
from lockcheck.history.event import STORAGE
from lockcheck.redis_node import RedisNode, Script
from lockcheck.wire import Address

MEMORY = "lockcheck:memory"
SEQUENCE = "lockcheck:sequence"


class Guard(StrEnum):
    NONE = "none"
    FENCE = "fence"
    CAS = "cas"


SERVE = Script("""
local ask = cjson.decode(ARGV[1])
local register, guard = KEYS[3], ARGV[2]
local highest = tonumber(redis.call('HGET', register, 'token'))
local current = redis.call('HGET', register, 'value')
local refusal = nil
if guard == 'fence' then
  if not ask.token then
    refusal = 'fenced: no token'
  elseif highest and ask.token < highest then
    refusal = string.format('fenced: token %d is below %d', ask.token, highest)
  else
    redis.call('HSET', register, 'token', string.format('%d', ask.token))
  end
elseif guard == 'cas' and ask.f == 'write' and (ask.base or false) ~= current then
  refusal = 'cas: based on ' .. (ask.base or 'nothing') .. ', but the value is ' .. (current or 'nothing')
end
if ask.f == 'write' and not refusal then
  redis.call('HSET', register, 'value', ask.value)
end
local seq = redis.call('INCR', KEYS[1])
ask.seq, ask.refusal = seq, refusal
if ask.f == 'read' and not refusal then ask.value = current or nil end
redis.call('RPUSH', KEYS[2], cjson.encode(ask))
return {seq, refusal or false, ask.value or false}
""")  # noqa: E501 - Lua


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A read or write as it is sent; with `seq` and `refusal`, as it is remembered."""

    f: str
    key: str
    of: int
    value: str | None = None
    base: str | None = None
    token: int | None = None
    seq: int = 0
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Served:
    seq: int
    refusal: str  # empty where it was accepted
    value: str | None


class Storage:
    # Never faulted, so an answer that takes this long means that the machine is at its end.
    TIMEOUT_MS = 20_000.0

    def __init__(self, address: Address, guard: Guard) -> None:
        self._node = RedisNode(address, self.TIMEOUT_MS)
        self._guard = guard

    def serve(self, ask: Ask) -> Served:
        keys = [SEQUENCE, MEMORY, f"register:{ask.key}"]
        reply = self._node.run(SERVE, keys, [msgspec.json.encode(ask).decode(), self._guard])
        if not isinstance(reply, list):
            raise InternalError(f"the storage answers {reply!r}")
        seq, refusal, value = reply
        return Served(seq, refusal or "", value or None)

    def close(self) -> None:
        self._node.close()


def witness_events(memories: list[str], time_ns: int) -> Iterator[Event]:
    """What the storage remembers, as events of the moment at which it was asked."""
    for memory in memories:
        ask = msgspec.json.decode(memory, type=Ask)
        yield Event(
            time=time_ns,
            process=STORAGE,
            type=EventType.FAIL if ask.refusal else EventType.OK,
            f=ask.f,
            key=ask.key,
            value=ask.value,
            base=ask.base if ask.f == F.WRITE else None,
            token=ask.token,
            seq=ask.seq,
            of=ask.of,
            error=ask.refusal,
        )


def read_memory(address: Address) -> list[str]:
    node = RedisNode(address, Storage.TIMEOUT_MS)
    try:
        memory = node.call("LRANGE", MEMORY, 0, -1)
    finally:
        node.close()
    if not isinstance(memory, list):
        raise InternalError(f"the storage's memory reads {memory!r}")
    return memory
