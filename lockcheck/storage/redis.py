"""The storage as a Redis of its own.

Each read and each guarded write is one script, so that the check, the number and the
entry in the ledger are one step.
"""

from __future__ import annotations

import msgspec

from lockcheck.errors import InternalError
from lockcheck.servers.redis import REDIS_ERRORS, RedisNode, Script
from lockcheck.servers.wire import Address
from lockcheck.storage.base import Ask, Guard, Served, Storage, StorageKind

LEDGER = "lockcheck:ledger"
SEQUENCE = "lockcheck:sequence"

SERVE = Script("""
local ask = cjson.decode(ARGV[1])
local register, guard = KEYS[3], ARGV[2]
local changes = ask.f == 'write' or ask.f == 'run'
local highest = tonumber(redis.call('HGET', register, 'token'))
local limit = highest
if ask.shared then limit = tonumber(redis.call('HGET', register, 'alone')) end
local current = redis.call('HGET', register, 'value')
local refusal = nil
if guard == 'fence' then
  if not ask.token then
    refusal = 'fenced: no token'
  elseif limit and ask.token < limit then
    refusal = string.format('fenced: token %d is below %d', ask.token, limit)
  else
    local token = string.format('%d', ask.token)
    if not highest or ask.token > highest then redis.call('HSET', register, 'token', token) end
    if not ask.shared then redis.call('HSET', register, 'alone', token) end
  end
elseif guard == 'cas' and changes and (ask.base or false) ~= current then
  refusal = 'cas: based on ' .. (ask.base or 'nothing') .. ', but the value is ' .. (current or 'nothing')
end
if changes and not refusal then
  redis.call('HSET', register, 'value', ask.value)
end
local seq = redis.call('INCR', KEYS[1])
ask.seq, ask.refusal = seq, refusal
if not changes and not refusal then ask.value = current or nil end
redis.call('RPUSH', KEYS[2], cjson.encode(ask))
return {seq, refusal or false, ask.value or false}
""")  # noqa: E501 - Lua


class RedisStorage(Storage):
    # No fault strikes it, so only an overloaded machine takes this long to answer.
    TIMEOUT_MS = 20_000.0
    errors = REDIS_ERRORS

    def __init__(self, address: Address, guard: Guard) -> None:
        self._node = RedisNode(address, self.TIMEOUT_MS)
        self._guard = guard

    def serve(self, ask: Ask) -> Served:
        keys = [SEQUENCE, LEDGER, f"register:{ask.key}"]
        reply = self._node.run(SERVE, keys, [msgspec.json.encode(ask).decode(), self._guard])
        if not isinstance(reply, list):
            raise InternalError(f"the storage answers {reply!r}")
        seq, refusal, value = reply
        return Served(seq, refusal or "", value or None)

    def ledger(self) -> list[Ask]:
        remembered = self._node.call("LRANGE", LEDGER, 0, -1)
        if not isinstance(remembered, list):
            raise InternalError(f"the storage's ledger reads {remembered!r}")
        return [msgspec.json.decode(ask, type=Ask) for ask in remembered]

    def close(self) -> None:
        self._node.close()


STORAGE = StorageKind("redis", server="redis", open=RedisStorage)
