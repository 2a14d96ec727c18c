"""MariaDB: one server, without tables of its own.

User locks need no tables, so no system tables are created: `mariadb-install-db` takes seconds,
and the server starts without them in less than 0.1 s. So there are no accounts either: every
client has all privileges, in the run's own network.
"""

from __future__ import annotations

from pathlib import Path

from lockcheck.servers.base import (
    Clock,
    Command,
    Here,
    Question,
    Server,
    found_by,
    in_debs,
    on_path,
    unpacked,
    with_libraries_of,
)
from lockcheck.servers.wire.mariadb import missing_in_pymysql

MARIADB_PORT = 3306
SBIN = Path("/usr/sbin/mariadbd")  # where distributions install it, on few users' PATH

ARGUMENTS = (
    "--no-defaults",  # must come first
    "--skip-grant-tables",
    "--skip-innodb",
    "--default-storage-engine=Aria",
    "--bind-address=0.0.0.0",  # in the node's own network namespace
    f"--port={MARIADB_PORT}",
    "--skip-name-resolve",
    "--max-connections=500",
    "--back-log=150",
    "--key-buffer-size=1M",
    "--aria-pagecache-buffer-size=1M",
    "--performance-schema=0",
)


def _fetched() -> Path | None:
    return on_path(str(SBIN)) or in_debs("mariadb", "usr/sbin/mariadbd")


def _command(here: Here) -> Command:
    root = unpacked("mariadb")  # an installed server knows its base folder
    base = (f"--basedir={root}/usr",) if Path(here.program[0]).is_relative_to(root) else ()
    places = (
        f"--datadir={here.data}",
        f"--socket={here.data}/socket",
        f"--pid-file={here.data}/pid",
    )
    return (*here.program, *ARGUMENTS, *base, *places)


MARIADB = Server(
    name="mariadb",
    title="MariaDB",
    port=MARIADB_PORT,
    find=found_by("LOCKCHECK_MARIADB", "mariadbd", otherwise=_fetched),
    cure="apt-get install mariadb-server-core, or name mariadbd in LOCKCHECK_MARIADB",
    image="mariadb",
    suite="bookworm",  # packages of later suites need a newer host
    image_program=("mariadbd",),
    command=_command,
    environment=with_libraries_of("mariadb"),
    version_pattern=r"(?<=Ver )\S+(?=-MariaDB)",
    ready=Question(b"", rb"MariaDB"),  # its greeting to each connection, once it serves
    data_mb=256,  # at most: a log, and no tables
    refuses_root=True,
    clock=Clock.MONOTONIC,  # it ends idle connections by the kernel's monotonic clock
    drivers=(("PyMySQL", "PyMySQL"),),
    missing_in_drivers=missing_in_pymysql,
    debs=("mariadb-server-core", "libaio1", "libnuma1", "liburing2"),
)
