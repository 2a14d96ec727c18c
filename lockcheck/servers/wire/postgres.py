"""One connection to PostgreSQL by libpq, which is one session, with a deadline for each answer.

If an answer does not come in time, the connection is closed: it is never taken for the next one.
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
# The advisory lock under which clients create tables when they connect, one at a time.
PREPARING = 0x10C4


class RolledBackError(Exception):
    """An earlier statement of the transaction had failed."""


class PostgresSession:
    """May be used by several threads: each waits until the others are answered."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        """Raises WireFailure if it cannot connect."""
        self._address = address
        self._timeout_s = timeout_s
        self._guard = threading.RLock()
        self.over = False
        self._was_terminated = False
        self._libpq = self._connect(time.monotonic() + timeout_s)
        self._libpq.notice_handler = self._on_notice

    def ask(self, sql: str, *given: str | int | None, timeout_s: float | None = None) -> list[Row]:
        """Runs one statement, with the values given for `$1` and so on. Raises WireFailure."""
        with self._guard:
            deadline = self._deadline(timeout_s)
            values = [None if value is None else str(value).encode() for value in given]
            send = self._libpq.send_query_params
            return self._answer(lambda: send(sql.encode(), values), deadline)

    def prepare(self, script: str) -> None:
        """Runs statements in one transaction, one client at a time."""
        alone = f"SELECT pg_advisory_xact_lock({PREPARING}); {script}"
        with self._guard:
            self._answer(lambda: self._libpq.send_query(alone.encode()), self._deadline(None))

    def commit(self) -> None:
        """Raises WireFailure, also where the server rolls back instead, which is no error to it."""
        with self._guard:
            deadline = self._deadline(None)
            [result] = self._results_of(lambda: self._libpq.send_query(b"COMMIT"), deadline)
            if result.command_status != b"COMMIT":
                raise WireFailure(Phase.COMMAND, self._address[0], RolledBackError())

    def ping(self, timeout_s: float) -> None:
        self.ask("SELECT", timeout_s=timeout_s)

    def fileno(self) -> int:
        """The socket, which is readable when the connection has ended."""
        return self._libpq.socket

    def ended(self) -> bool:
        """Whether the server, or the network, has ended the connection; drops other messages."""
        from psycopg import OperationalError

        with self._guard:
            try:
                while not self.over and _is_ready(self._libpq, select.POLLIN, 0):
                    self._libpq.consume_input()
                    self._libpq.is_busy()  # parses what was read
            except OperationalError:
                self.close()
            if self._was_terminated:
                self.close()
            return self.over

    def _on_notice(self, notice: PGresult) -> None:
        """Receives the server's messages while nothing was asked."""
        self._was_terminated = self._was_terminated or _ends_session(notice)

    def close(self) -> None:
        """Closes the connection; the server then releases the session's locks."""
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
            if _ends_session(result):
                return results

    def _read(self, what: int, deadline: float) -> None:
        _await(self._libpq, what, deadline)
        self._libpq.consume_input()  # does nothing if only writing has become possible

    def _check(self, result: PGresult) -> None:
        from psycopg import DatabaseError, errors
        from psycopg.pq import DiagnosticField, ExecStatus

        if result.status != ExecStatus.FATAL_ERROR:
            return
        state = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        if _ends_session(result):
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
    """Whether it can be read or written, as `what` asks, or the connection has ended."""
    waiting = select.poll()
    waiting.register(libpq.socket, what)
    return bool(waiting.poll(timeout_s * 1000))


def _ends_session(result: PGresult) -> bool:
    """Whether the message ends the session."""
    from psycopg.pq import DiagnosticField

    return result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) in (b"FATAL", b"PANIC")


def _rows(result: PGresult) -> Iterator[Row]:
    for row in range(result.ntuples):
        values = (result.get_value(row, column) for column in range(result.nfields))
        yield tuple(None if value is None else value.decode() for value in values)


FAIL, INFO, GONE = EventType.FAIL, EventType.INFO, Refusal.GONE

# The first row that fits decides. A statement that fails has no effect.
POSTGRES_ERRORS = (
    ErrorRow("connect", "Exception", FAIL, "no connection, so nothing was sent"),
    # Sent while the session was idle, and read only now: the statement found no session.
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
