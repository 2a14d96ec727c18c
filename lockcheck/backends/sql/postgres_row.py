"""A row of PostgreSQL's, locked by `SELECT ... FOR UPDATE` in the transaction that changes it.

The release is the commit: writes count once that is confirmed. So a late holder does no harm, even
if another client holds the lock by then: its transaction was rolled back.

- `idle_in_transaction_session_timeout` is the TTL: the server rolls back a transaction that is
  silent for so long, whether its client is stopped, cut off or slow. Each statement is a renewal.
- A client that waits for the row gives up after a TTL, by `lock_timeout`, and asks again.
- What fails before the commit is sent did not happen.
- A statement that is refused (on a full disk) is undone up to the savepoint before it. Without one
  PostgreSQL ends the transaction and frees the row before its client has read the error.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from lockcheck.backends.base import Claim, Grant, Promises
from lockcheck.backends.expected import unharmed
from lockcheck.backends.expected_usual import DISK_FAILS, RESTARTS
from lockcheck.backends.sql.optimistic import Attempts, on_postgres
from lockcheck.history import EventType, Refusal
from lockcheck.servers.wire import Refused, WireFailure, classify
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS, PostgresSession
from lockcheck.storage.base import Ask, Served
from lockcheck.storage.postgres import PostgresData

TIMEOUTS = """
SELECT set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('lock_timeout', $1, false)
"""
TAKE = "SELECT FROM lockcheck_register WHERE key = $1 FOR UPDATE"
GRACE_S = 1.0  # for the server to report that it gave up waiting


@dataclass(frozen=True, slots=True)
class Transaction:
    claim: Claim
    data: PostgresData


class RowLock(Attempts):
    """Has the row locked during an attempt, which is one transaction."""

    def acquire(self, claim: Claim) -> Grant:
        data = self._data()
        session = data.session
        data.ensure(claim.key)
        session.ask("BEGIN")
        try:
            session.ask(TAKE, claim.key, timeout_s=self._ttl_ms / 1000 + GRACE_S)
        except WireFailure as failure:
            if classify(POSTGRES_ERRORS, failure).outcome is not EventType.FAIL:
                raise
            session.ask("ROLLBACK")
            raise Refused(Refusal.HELD) from failure
        since = time.monotonic()  # its turn has come: from now on its silence is timed
        session.ping(self._ttl_ms / 1000)
        return Grant(claim.key, Transaction(claim, data), valid_ms=self._left_ms(since))

    def _left_ms(self, since: float) -> float:
        return self._ttl_ms - (time.monotonic() - since) * 1000

    def serve(self, grant: Grant, ask: Ask) -> Served:
        transaction = _transaction(grant)
        renewal, since = transaction.claim.renewing(), time.monotonic()
        try:
            served = _served(transaction, ask)
        except WireFailure as failure:
            renewal.failed(failure)
            transaction.data.session.close()
            raise Refused(Refusal.GONE, f"rolled back: {failure}") from failure
        renewal.granted(self._left_ms(since))
        return served

    def release(self, grant: Grant) -> object:
        _transaction(grant).data.session.commit()
        return {"committed": True}

    def leave(self, grant: Grant) -> None:
        _transaction(grant).data.session.close()

    def _prepare(self, session: PostgresSession) -> None:
        session.ask(TIMEOUTS, self._ttl_ms)


def _served(transaction: Transaction, ask: Ask) -> Served:
    """A refusal if the server refuses; raises WireFailure if the transaction is over."""
    session = transaction.data.session
    session.ask("SAVEPOINT before")
    try:
        return transaction.data.serve(ask, by_version=False)
    except WireFailure as failure:
        try:
            session.ask("ROLLBACK TO before")
        except WireFailure:
            raise failure from None
        return Served(None, f"undone: {failure.cause}", None)


def _transaction(grant: Grant) -> Transaction:
    assert isinstance(grant.handle, Transaction)  # noqa: S101 - it is our own
    return grant.handle


BACKEND = on_postgres(
    name="postgres-row",
    summary="one PostgreSQL, SELECT ... FOR UPDATE, and the data in the same transaction",
    promises=Promises(session=True, fencing=False, commits=True, ends_with="connection"),
    connect=RowLock,
    ended_by=(
        "the end of the process, at once; or idle_in_transaction_session_timeout = TTL since the "
        "last statement"
    ),
    expected=(  # a late holder's writes were rolled back
        *unharmed("none", "pause", "kill:holder", "partition:holder"),
        *RESTARTS,
        *DISK_FAILS,
    ),
)
