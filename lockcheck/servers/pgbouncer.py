"""PgBouncer in front of a PostgreSQL: a pool of few sessions, lent for one transaction each."""

from __future__ import annotations

from pathlib import Path

from lockcheck.servers.base import Clock, Command, Here, Server, named_by, on_path, unpacked
from lockcheck.servers.postgres import DATABASE, POSTGRES_PORT, READY, USER

PGBOUNCER_PORT = 6432
POOL = 2  # sessions with the database: fewer than there are clients
SETTINGS = "pgbouncer.ini"


def _find() -> Command | None:
    found = named_by("LOCKCHECK_PGBOUNCER", "the pgbouncer program") or on_path("pgbouncer")
    fetched = unpacked("pgbouncer") / "usr" / "sbin" / "pgbouncer"
    found = found or next((path for path in (fetched,) if path.is_file()), None)
    return (str(found),) if found else None


def _files(here: Here) -> dict[str, str]:
    database = here.servers["postgres"][0]
    settings = (
        "[databases]",
        f"{DATABASE} = host={database} port={POSTGRES_PORT} dbname={DATABASE} user={USER}",
        "[pgbouncer]",
        f"listen_addr = *\nlisten_port = {PGBOUNCER_PORT}\nunix_socket_dir =",
        "auth_type = any",  # whoever it is: the user is the one above
        f"pool_mode = transaction\ndefault_pool_size = {POOL}\nmax_client_conn = 300",
        "server_login_retry = 0.1",  # seconds: the database may come up later
        "log_connections = 0\nlog_disconnections = 0\nlog_stats = 0",
    )
    return {SETTINGS: "\n".join(settings) + "\n"}


def _environment(here: Here) -> dict[str, str]:
    """Its libraries, where they were fetched together with it."""
    program = Path(here.program[0])
    if not program.is_relative_to(unpacked("pgbouncer")):
        return {}
    folders = {str(path.parent) for path in unpacked("pgbouncer").glob("usr/lib/*/*.so.*")}
    return {"LD_LIBRARY_PATH": ":".join(sorted(folders))}


PGBOUNCER = Server(
    name="pgbouncer",
    title="PgBouncer",
    port=PGBOUNCER_PORT,
    find=_find,
    cure="apt-get install pgbouncer",
    image="pgbouncer",
    image_program=("pgbouncer",),
    command=lambda here: (*here.program, f"{here.data}/{SETTINGS}"),
    version_pattern=r"(?<=PgBouncer )\S+",
    files=_files,
    environment=_environment,
    data_mb=1,  # for its settings
    ready=READY,  # which takes a session with the database
    refuses_root=True,
    clock=Clock.MONOTONIC,
    suite="bookworm",  # where its libraries have these names
    debs=("pgbouncer", "libc-ares2", "libevent-2.1-7"),
)
