"""One connection to PostgreSQL, which is one session, with every step in the open.

psycopg's own connections have no deadline for an answer, and a server that is stopped or cut off
would be waited for as long as its kernel, or nobody, answers. So it is libpq that is spoken to, by
psycopg's wrapper of it: what was sent is known, and what is not answered in time is given up,
together with the connection, so that a late answer is never taken for the next one.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lockcheck.history import EventType, Refusal
from lockcheck.servers.postgres import DATABASE, USER
from lockcheck.servers.wire import Address, ConnectionEndedError, ErrorRow, Phase, WireFailure

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult

Row = tuple[str | None, ...]
# What clients make when they are connected: one at a time, or they get in each other's way.
PREPARING = 0x10C4


class RolledBackError(Exception):
    """An earlier statement of the transaction had failed."""


class PostgresSession:
    """Safe to be used by several threads; each waits until the others are answered."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        """Raises WireFailure."""
        self._address = address
        self._timeout_s = timeout_s
        self._guard = threading.RLock()
        self.over = False
        self._was_told_so = False
        self._libpq = self._connect(time.monotonic() + timeout_s)
        self._libpq.notice_handler = self._hear

    def ask(self, sql: str, *given: str | int | None, timeout_s: float | None = None) -> list[Row]:
        """One statement; `$1` and so on stand for what is given. Raises WireFailure."""
        with self._guard:
            deadline = self._deadline(timeout_s)
            values = [None if value is None else str(value).encode() for value in given]
            send = self._libpq.send_query_params
            return self._answer(lambda: send(sql.encode(), values), deadline)

    def prepare(self, script: str) -> None:
        """Statements in one transaction, which only one client does at a time."""
        alone = f"SELECT pg_advisory_xact_lock({PREPARING}); {script}"
        with self._guard:
            self._answer(lambda: self._libpq.send_query(alone.encode()), self._deadline(None))

    def commit(self) -> None:
        """Raises WireFailure, too, where the server rolls back, and says that all is well."""
        with self._guard:
            deadline = self._deadline(None)
            [result] = self._results_of(lambda: self._libpq.send_query(b"COMMIT"), deadline)
            if result.command_status != b"COMMIT":
                raise WireFailure(Phase.COMMAND, self._address[0], RolledBackError())

    def ping(self, timeout_s: float) -> None:
        self.ask("SELECT", timeout_s=timeout_s)

    def fileno(self) -> int:
        """There is something to read when the connection has ended."""
        return self._libpq.socket

    def ended(self) -> bool:
        """Whether the server, or the network, has ended it; what else it has to say is dropped."""
        from psycopg import OperationalError

        with self._guard:
            try:
                while not self.over and _is_ready(self._libpq, select.POLLIN, 0):
                    self._libpq.consume_input()
                    self._libpq.is_busy()  # takes in what was read
            except OperationalError:
                self.close()
            if self._was_told_so:
                self.close()
            return self.over

    def _hear(self, notice: PGresult) -> None:
        """What is said while nothing was asked."""
        self._was_told_so = self._was_told_so or _says_goodbye(notice)

    def close(self) -> None:
        """What it holds goes with it."""
        with self._guard:
            self.over = True
            self._libpq.finish()

    # --- with a deadline ---------------------------------------------------------------------

    def _deadline(self, timeout_s: float | None) -> float:
        if self.ended():
            raise WireFailure(Phase.CONNECT, self._address[0], ConnectionEndedError())
        return time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)

    def _connect(self, deadline: float) -> PGconn:
        from psycopg import OperationalError
        from psycopg.conninfo import make_conninfo
        from psycopg.pq import PGconn

        host, port = self._address
        words = make_conninfo(
            hostaddr=host, port=port, user=USER, dbname=DATABASE, sslmode="disable"
        )
        libpq = PGconn.connect_start(f"{words} gssencmode=disable".encode())
        try:
            _await_connection(libpq, deadline)
        except (OperationalError, TimeoutError) as error:
            libpq.finish()
            raise WireFailure(Phase.CONNECT, host, error) from error
        libpq.nonblocking = 1
        return libpq

    def _answer(self, send: Callable[[], None], deadline: float) -> list[Row]:
        return [row for result in self._results_of(send, deadline) for row in _rows(result)]

    def _results_of(self, send: Callable[[], None], deadline: float) -> list[PGresult]:
        from psycopg import OperationalError

        try:
            send()
            results = self._results(deadline)
        except (OperationalError, TimeoutError) as error:
            self.close()
            raise WireFailure(Phase.COMMAND, self._address[0], error) from error
        for result in results:
            self._check(result)
        return results

    def _results(self, deadline: float) -> list[PGresult]:
        libpq = self._libpq
        while libpq.flush():
            self._read(select.POLLIN | select.POLLOUT, deadline)
        results: list[PGresult] = []
        while True:
            while libpq.is_busy():
                self._read(select.POLLIN, deadline)
            if (result := libpq.get_result()) is None:
                return results
            results.append(result)
            if _says_goodbye(result):
                return results

    def _read(self, what: int, deadline: float) -> None:
        _await(self._libpq, what, deadline)
        self._libpq.consume_input()  # if there is something; or there is room to write

    def _check(self, result: PGresult) -> None:
        from psycopg import DatabaseError, errors
        from psycopg.pq import DiagnosticField, ExecStatus

        if result.status != ExecStatus.FATAL_ERROR:
            return
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        if _says_goodbye(result):
            self.close()
        try:
            kind: type[Exception] = errors.lookup(state)
        except KeyError:
            kind = DatabaseError
        message = (result.error_field(DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
        raise WireFailure(Phase.COMMAND, self._address[0], kind(message))


def _await_connection(libpq: PGconn, deadline: float) -> None:
    from psycopg import OperationalError
    from psycopg.pq import PollingStatus

    waits = {PollingStatus.READING: select.POLLIN, PollingStatus.WRITING: select.POLLOUT}
    while (status := libpq.connect_poll()) != PollingStatus.OK:
        if status not in waits:
            raise OperationalError(libpq.get_error_message())
        _await(libpq, waits[PollingStatus(status)], deadline)


def _await(libpq: PGconn, what: int, deadline: float) -> None:
    if not _is_ready(libpq, what, max(0.0, deadline - time.monotonic())):
        raise TimeoutError("no answer in time")


def _is_ready(libpq: PGconn, what: int, timeout_s: float) -> bool:
    """There is something to read, or room to write; or the connection has ended."""
    waiting = select.poll()
    waiting.register(libpq.socket, what)
    return bool(waiting.poll(timeout_s * 1000))


def _says_goodbye(result: PGresult) -> bool:
    """The session is over: nothing more will be said."""
    from psycopg.pq import DiagnosticField

    return result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC")


def _rows(result: PGresult) -> Iterator[Row]:
    for row in range(result.ntuples):
        values = (result.get_value(row, column) for column in range(result.nfields))
        yield tuple(None if value is None else value.decode() for value in values)


FAIL, INFO, GONE = EventType.FAIL, EventType.INFO, Refusal.GONE

# The first row that fits decides. An error of one statement undoes what the statement did.
POSTGRES_ERRORS = (
    ErrorRow("connect", "Exception", FAIL, "no connection, so nothing was sent"),
    # Said while the session was idle, and read only now: what was sent found nobody.
    ErrorRow("command", "IdleInTransactionSessionTimeout", FAIL, "rolled back before that", GONE),
    ErrorRow("command", "IdleSessionTimeout", FAIL, "the session had been ended before that", GONE),
    ErrorRow("command", "RolledBackError", FAIL, "rolled back", GONE),
    ErrorRow("command", "LockNotAvailable", FAIL, "held", Refusal.HELD),
    ErrorRow("command", "DeadlockDetected", FAIL, "rolled back"),
    ErrorRow("command", "SerializationFailure", FAIL, "rolled back"),
    ErrorRow("command", "UniqueViolation", FAIL, "refused: it exists already"),
    ErrorRow("command", "TimeoutError", INFO, "sent, but not answered in time"),
    ErrorRow("command", "OperationalError", INFO, "sent, but the connection broke"),
)
