"""What this host can do, what is missing, and the command that brings it."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from lockcheck.compose.choose import RUNTIMES
from lockcheck.compose.docker.compose_binary import compose_and_version, why_no_compose
from lockcheck.compose.docker.engine import why_no_engine
from lockcheck.compose.images.build import missing_images
from lockcheck.compose.programs import PROGRAMS
from lockcheck.errors import ClusterError


@dataclass(frozen=True, slots=True)
class Diagnosis:
    what: str
    ok: bool
    found: str
    cure: str = ""
    needed: bool = False  # without it lockcheck cannot run at all


def examine() -> Iterator[Diagnosis]:
    yield _python()
    yield from _local()
    yield from _docker()
    able = [name for name, kind in RUNTIMES.items() if not kind().why_not()]
    yield Diagnosis(
        "runs",
        bool(able),
        f"lockcheck run works here: {' and '.join(able)}" if able else "neither runtime works",
        "" if able else "either of the two is enough: see above",
        needed=True,
    )


def _python() -> Diagnosis:
    found = f"{platform.python_version()} on {platform.system()} {platform.release()}"
    return Diagnosis("Python", ok=True, found=found)


def _local() -> Iterator[Diagnosis]:
    reason = RUNTIMES["local"]().why_not()
    yield Diagnosis("runtime local", not reason, reason or "network namespaces")
    for program in PROGRAMS.values():
        command = program.find()
        yield Diagnosis(
            f"  {program.name}",
            command is not None,
            " ".join(command) if command else "not on this host",
            "" if command else program.cure,
        )


def _docker() -> Iterator[Diagnosis]:
    if reason := why_no_engine():
        yield Diagnosis("runtime docker", ok=False, found=reason)
        return
    yield Diagnosis("runtime docker", ok=True, found="an engine answers")
    compose = compose_and_version()
    yield Diagnosis(
        "  Compose v2",
        compose is not None,
        f"{' '.join(compose.command)} ({compose.version})" if compose else why_no_compose(),
        "" if compose else "lockcheck images build",
    )
    yield _images()
    debootstrap = shutil.which("debootstrap")
    yield Diagnosis(
        "  debootstrap",
        debootstrap is not None,
        debootstrap or "needed only where no image registry answers",
        "" if debootstrap else "apt-get install debootstrap",
    )


def _images() -> Diagnosis:
    try:
        missing = missing_images()
    except ClusterError as error:
        return Diagnosis("  images", ok=False, found=error.message, cure=error.cure)
    return Diagnosis(
        "  images",
        not missing,
        f"to be built: {', '.join(missing)}" if missing else "built, and those of this version",
        "lockcheck images build (the first run does it, too)" if missing else "",
    )
