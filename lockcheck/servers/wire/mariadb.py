"""One connection to MariaDB by PyMySQL, which is one session, with a deadline for each answer."""

from __future__ import annotations

import select
import threading
from typing import TYPE_CHECKING

from lockcheck.history import EventType
from lockcheck.servers.wire import Address, ConnectionEndedError, ErrorRow, Phase, WireFailure

if TYPE_CHECKING:
    from pymysql.connections import Connection

Row = tuple[object, ...]


# The first row that fits decides.
MARIADB_ERRORS = (
    ErrorRow("connect", "Exception", EventType.FAIL, "no connection, so nothing was sent"),
    # PyMySQL's error whether or not it was sent, not answered in time, or the connection broke.
    ErrorRow("command", "OperationalError", EventType.INFO, "perhaps sent, but not answered"),
)


PRIVATE = ("_sock", "_read_timeout", "_force_close")  # members of PyMySQL's that are used here


def missing_in_pymysql() -> str:
    """Empty if the installed PyMySQL has all of them."""
    from pymysql import Connection

    connection = Connection(defer_connect=True)
    missing = [name for name in PRIVATE if not hasattr(connection, name)]
    return f"its connections have no {' and no '.join(missing)}" if missing else ""


class MariadbSession:
    """May be used by several threads: each waits until the others are answered."""

    def __init__(self, address: Address, timeout_s: float, begin: str | None = None) -> None:
        """`begin` is a statement that is run first. Raises WireFailure if one of them fails."""
        from pymysql import Connection, MySQLError

        self._where = address[0]
        self._timeout_s = timeout_s
        self._guard = threading.RLock()
        self.over = False
        try:
            self._connection: Connection = Connection(
                host=address[0],
                port=address[1],
                user="lockcheck",
                connect_timeout=timeout_s,
                read_timeout=timeout_s,
                write_timeout=timeout_s,
                init_command=begin,
                autocommit=None,  # leaves it as it is, and saves a round trip
            )
        except (MySQLError, OSError) as error:
            raise WireFailure(Phase.CONNECT, self._where, error) from error
        # It has no public name, but is needed to wait until there is something to read.
        self._socket = self._connection._sock

    def ask(self, sql: str, *given: object, timeout_s: float | None = None) -> Row:
        """Runs one statement, with the values given for its `%s`; returns its first row, if any."""
        from pymysql import MySQLError

        with self._guard:
            if self.over:
                raise WireFailure(Phase.CONNECT, self._where, ConnectionEndedError())
            # The public setting is for the whole connection; this one is read before each answer.
            self._connection._read_timeout = timeout_s or self._timeout_s
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute(sql, given)
                    return cursor.fetchone() or ()
            except (MySQLError, OSError) as error:
                self.close()
                raise WireFailure(Phase.COMMAND, self._where, error) from error

    def ping(self, timeout_s: float) -> None:
        self.ask("DO 0", timeout_s=timeout_s)

    def fileno(self) -> int:
        """Readable when the connection has ended."""
        return int(self._socket.fileno())

    def ended(self) -> bool:
        """Whether the server has closed the connection: it sends nothing else unasked."""
        with self._guard:
            if not self.over and select.select([self._socket], [], [], 0)[0]:
                self.close()
            return self.over

    def close(self) -> None:
        """Closes the connection; the server then releases the session's locks."""
        with self._guard:
            if not self.over:
                self.over = True
                self._connection._force_close()  # `close` could block while it sends the end
