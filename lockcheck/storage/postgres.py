"""The storage in the lock's own PostgreSQL: the lock's session reads and writes in its transaction.

The ledger's entry is a part of the same transaction, so the ledger has what was committed and
nothing else. Its numbers are taken while the row is locked: for each key they are in the order of
the commits. Reads are not entered.
"""

from __future__ import annotations

import msgspec

from lockcheck.errors import InternalError
from lockcheck.history import F
from lockcheck.servers.wire import Address
from lockcheck.servers.wire.postgres import POSTGRES_ERRORS, PostgresSession
from lockcheck.storage.base import Ask, Guard, Served, Storage, StorageKind

PREPARE = """
CREATE SEQUENCE IF NOT EXISTS lockcheck_sequence;
CREATE TABLE IF NOT EXISTS lockcheck_register
  (key text PRIMARY KEY, value text, version bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS lockcheck_job
  (key text, job text, seq bigint NOT NULL, doer text NOT NULL, PRIMARY KEY (key, job));
CREATE TABLE IF NOT EXISTS lockcheck_ledger
  (seq bigint PRIMARY KEY, ask text NOT NULL, refusal text);
"""
ENSURE = "INSERT INTO lockcheck_register (key) VALUES ($1) ON CONFLICT DO NOTHING"
READ = "SELECT value, version FROM lockcheck_register WHERE key = $1"
# Without a version it replaces any value, which only the holder of the row's lock may do.
WRITE = """
WITH written AS (
  UPDATE lockcheck_register SET value = $2, version = version + 1
   WHERE key = $1 AND version = coalesce($3::bigint, version) RETURNING version
)
INSERT INTO lockcheck_ledger
SELECT nextval('lockcheck_sequence'), $4,
       CASE WHEN changed = 0 THEN 'cas: version ' || $3 || ' is not the current one' END
  FROM (SELECT count(*) AS changed FROM written) AS how_many
RETURNING seq, refusal
"""
LAST_JOB = "SELECT job FROM lockcheck_job WHERE key = $1 ORDER BY seq DESC LIMIT 1"
RUN = """
INSERT INTO lockcheck_job VALUES ($1, $2, nextval('lockcheck_sequence'), $3)
ON CONFLICT DO NOTHING RETURNING seq
"""
WINNER = "SELECT seq, doer FROM lockcheck_job WHERE key = $1 AND job = $2"
LEDGER = "SELECT ask, seq, refusal FROM lockcheck_ledger ORDER BY seq"


class PostgresData:
    """The data, and the version of each key that a session has read."""

    def __init__(self, session: PostgresSession) -> None:
        """Raises WireFailure."""
        self.session = session
        self._seen: dict[str, str | None] = {}
        self._ensured: set[str] = set()
        session.prepare(PREPARE)

    def ensure(self, key: str) -> None:
        """Creates the key's row, which can then be locked."""
        if key not in self._ensured:
            self.session.ask(ENSURE, key)
            self._ensured.add(key)

    def serve(self, ask: Ask, *, by_version: bool) -> Served:
        """`by_version`: refuses a write if another one came after this session's last read."""
        if ask.f == F.READ:
            return self._read(ask.key)
        if ask.f == F.WRITE:
            return self._write(ask, self._seen.get(ask.key) if by_version else None)
        if ask.f == F.LOOK:
            rows = self.session.ask(LAST_JOB, ask.key)
            return Served(None, "", rows[0][0] if rows else None)
        if ask.f == F.RUN:
            return self._run(ask)
        raise InternalError(f"the storage in PostgreSQL has no {ask.f}")

    def _read(self, key: str) -> Served:
        [(value, version)] = self.session.ask(READ, key)
        self._seen[key] = version
        return Served(None, "", value)

    def _write(self, ask: Ask, version: str | None) -> Served:
        entry = msgspec.json.encode(ask).decode()
        [(seq, refusal)] = self.session.ask(WRITE, ask.key, ask.value, version, entry)
        return Served(int(seq or 0), refusal or "", ask.value)

    def _run(self, ask: Ask) -> Served:
        """Runs a job once; the refusal of a second run names the first."""
        doer = f"process {ask.of}"
        if rows := self.session.ask(RUN, ask.key, ask.value, doer):
            return Served(int(rows[0][0] or 0), "", ask.value)
        [(seq, winner)] = self.session.ask(WINNER, ask.key, ask.value)
        return Served(int(seq or 0), f"done already, by {winner}", ask.value)


class PostgresStorage(Storage):
    """Reads the ledger, after the faults are healed."""

    TIMEOUT_S = 20.0
    errors = POSTGRES_ERRORS

    def __init__(self, address: Address, _guard: Guard) -> None:
        self._session = PostgresSession(address, self.TIMEOUT_S)
        self._session.prepare(PREPARE)

    def serve(self, ask: Ask) -> Served:
        raise InternalError(f"a {ask.f} of {ask.key} has to go through the lock's own session")

    def ledger(self) -> list[Ask]:
        remembered = self._session.ask(LEDGER)
        return [
            msgspec.structs.replace(
                msgspec.json.decode(ask or "", type=Ask), seq=int(seq or 0), refusal=refusal
            )
            for ask, seq, refusal in remembered
        ]

    def close(self) -> None:
        self._session.close()


STORAGE = StorageKind("postgres", server="postgres", open=PostgresStorage, apart=False)
