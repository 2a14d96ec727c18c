"""PgBouncer in front of PostgreSQL, with transaction pooling: few sessions for many clients."""

from __future__ import annotations

from lockcheck.servers.base import Clock, Here, Server, found_by, in_debs, with_libraries_of
from lockcheck.servers.postgres import DATABASE, POSTGRES_PORT, READY, USER

PGBOUNCER_PORT = 6432
POOL = 2  # sessions with the database: fewer than clients
SETTINGS = "pgbouncer.ini"


_find = found_by(
    "LOCKCHECK_PGBOUNCER", "pgbouncer", otherwise=lambda: in_debs("pgbouncer", "usr/sbin/pgbouncer")
)


def _files(here: Here) -> dict[str, str]:
    database = here.servers["postgres"][0]
    settings = (
        "[databases]",
        f"{DATABASE} = host={database} port={POSTGRES_PORT} dbname={DATABASE} user={USER}",
        "[pgbouncer]",
        f"listen_addr = *\nlisten_port = {PGBOUNCER_PORT}\nunix_socket_dir =",
        "auth_type = any",  # all clients act as the user above
        f"pool_mode = transaction\ndefault_pool_size = {POOL}\nmax_client_conn = 300",
        "server_login_retry = 0.1",  # seconds: the database may come up later
        "log_connections = 0\nlog_disconnections = 0\nlog_stats = 0",
    )
    return {SETTINGS: "\n".join(settings) + "\n"}


PGBOUNCER = Server(
    name="pgbouncer",
    title="PgBouncer",
    beside="postgres",
    port=PGBOUNCER_PORT,
    find=_find,
    cure="apt-get install pgbouncer",
    image="pgbouncer",
    image_program=("pgbouncer",),
    command=lambda here: (*here.program, f"{here.data}/{SETTINGS}"),
    version_pattern=r"(?<=PgBouncer )\S+",
    files=_files,
    environment=with_libraries_of("pgbouncer"),
    data_mb=1,  # for its settings
    ready=READY,  # only answered if the database answers, too
    refuses_root=True,
    clock=Clock.MONOTONIC,
    suite="bookworm",  # in which its libraries have these names
    debs=("pgbouncer", "libc-ares2", "libevent-2.1-7"),
)
