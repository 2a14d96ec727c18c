"""Consul's HTTP API, as far as a lock needs it: sessions, and keys that are bound to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from lockcheck.history import EventType, Refusal
from lockcheck.servers.wire import Address, ErrorRow, Phase, Refused, WireFailure
from lockcheck.servers.wire.http import HTTP_ERRORS, HttpNode, Response

OK, NOT_FOUND, CONFLICT = 200, 404, 409
INDEX = "X-Consul-Index"
JITTER = 16  # a blocking query may take longer than its `wait`, by up to 1/16 of it

Body = dict[str, Any]
Look = tuple[str, int]  # the session that holds a key, or "", and the index of that answer


class ConsulError(Exception):
    """An answer other than success."""


class ConsulNoLeaderError(ConsulError):
    """The member found no leader in time, so the request was never proposed."""


CONSUL_ERRORS = (
    ErrorRow("command", "ConsulNoLeaderError", EventType.FAIL, "no leader, so never proposed"),
    ErrorRow("command", "ConsulError", EventType.INFO, "sent, but the cluster could not confirm"),
    *HTTP_ERRORS,
)


class ConsulMembers:
    """Asks one member at a time; after a failure, the next one."""

    def __init__(self, addresses: Sequence[Address], timeout_s: float, first: int = 0) -> None:
        self._timeout_s = timeout_s
        self._nodes = [HttpNode(address, timeout_s) for address in addresses]
        self._current = first % len(addresses)

    def __len__(self) -> int:
        return len(self._nodes)

    def close(self) -> None:
        for node in self._nodes:
            node.close()

    # --- sessions ----------------------------------------------------------------------------

    def open_session(self, ttl_ms: int, lock_delay_ms: int) -> str:
        """Returns its id. It has no health checks: only its TTL ends it."""
        wanted = {"TTL": f"{ttl_ms}ms", "LockDelay": f"{lock_delay_ms}ms", "Behavior": "release"}
        answer = self._ask("PUT", "session/create", {**wanted, "Checks": [], "NodeChecks": []})
        return str(self._read(answer)["ID"])

    def renew_session(self, session: str, timeout_s: float) -> None:
        path = f"session/renew/{session}"
        if self._ask("PUT", path, timeout_s=timeout_s, passed=(NOT_FOUND,)).status == NOT_FOUND:
            raise Refused(Refusal.GONE, "the session is gone")

    def destroy_session(self, session: str) -> None:
        self._ask("PUT", f"session/destroy/{session}")

    # --- keys --------------------------------------------------------------------------------

    def lock(self, key: str, session: str) -> int:
        """The lock index: it counts how often the key was locked."""
        step = {"Verb": "lock", "Key": key, "Value": "", "Session": session}
        done = self._transact(step, Refusal.HELD)
        return int(done["LockIndex"])

    def unlock(self, key: str, session: str) -> None:
        step = {"Verb": "unlock", "Key": key, "Value": "", "Session": session}
        self._transact(step, Refusal.NOT_OWNER)

    def look(self, key: str, seen: int = 0, wait_s: float = 0.0) -> Look:
        """The key's session and index; at once, or when it has changed since `seen`."""
        query = {"index": seen, "wait": f"{int(wait_s * 1000)}ms"} if seen else {}
        patience_s = self._timeout_s + (wait_s + wait_s / JITTER if seen else 0)
        path = f"kv/{quote(key)}?{urlencode(query)}"
        answer = self._ask("GET", path, timeout_s=patience_s, passed=(NOT_FOUND,))
        index = int(answer.headers[INDEX])
        if answer.status == NOT_FOUND:
            return "", index
        return str(self._read(answer)[0].get("Session", "")), index

    def _transact(self, step: Mapping[str, str], refusal: Refusal) -> Body:
        """One step, as a transaction: returns its result, or raises Refused (rolled back)."""
        answer = self._ask("PUT", "txn", [{"KV": step}], passed=(CONFLICT,))
        body = self._read(answer)
        if answer.status == CONFLICT:
            raise Refused(refusal, "; ".join(error["What"] for error in body["Errors"]))
        done: Body = body["Results"][0]["KV"]
        return done

    # --- one request -------------------------------------------------------------------------

    def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        timeout_s: float | None = None,
        passed: Sequence[int] = (),  # beside OK
    ) -> Response:
        node = self._nodes[self._current]
        text = None if body is None else json.dumps(body).encode()
        try:
            answer = node.ask(method, f"/v1/{path}", text, timeout_s)
            if answer.status not in (OK, *passed):
                raise node.failure(Phase.COMMAND, _error_in(answer))
        except WireFailure:
            self._current = (self._current + 1) % len(self._nodes)
            raise
        return answer

    def _read(self, answer: Response) -> Any:
        try:
            return json.loads(answer.body)
        except ValueError as error:
            node = self._nodes[self._current]
            raise node.failure(Phase.COMMAND, error) from error


def _error_in(answer: Response) -> ConsulError:
    text = answer.body.decode(errors="replace").strip() or f"status {answer.status}"
    return (ConsulNoLeaderError if "No cluster leader" in text else ConsulError)(text)
