"""Runs debootstrap, which makes a Debian tree from a mirror: the installed one, or one fetched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

from lockcheck.compose.apt import KEYRING, MIRROR_VARIABLE, Apt, can_fetch
from lockcheck.compose.runtime import Say
from lockcheck.errors import ClusterError
from lockcheck.signals import end_with

LAST_LINES = 8
ROOTS_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # partly missing from many users' PATH


def what_prevents_it() -> tuple[str, str]:
    """What prevents it from running here, and the cure; empty if nothing does."""
    if sys.platform != "linux":
        return "debootstrap runs on Linux only", "let the engine reach a registry"
    if shutil.which("debootstrap") is None and not can_fetch():
        return "debootstrap is not installed", "install debootstrap"
    if os.geteuid() != 0:
        cure = (
            "run `sudo lockcheck images build` once (for a version of a server: with its name, as "
            "in `images build etcd=3.4`); the runs themselves need no root"
        )
        return "debootstrap must run as root", cure
    if shutil.which("wget") is None:
        return "debootstrap needs wget, which is not installed", "sudo apt-get install wget"
    if not KEYRING.exists():
        what = f"debootstrap cannot check Debian's signatures without {KEYRING}"
        return what, "sudo apt-get install debian-archive-keyring"
    return "", ""


def make_tree(tree: Path, suite: str, architecture: str, scratch: Path, say: Say) -> None:
    """Makes a Debian tree in the folder `tree`; fetches debootstrap into `scratch` if need be."""
    apt = Apt(scratch)
    if installed := shutil.which("debootstrap"):
        debootstrap = [installed]
    else:
        say("fetching debootstrap, which is not installed")
        debootstrap = fetched(apt, scratch / "debootstrap")
    signed = ("--force-check-gpg", f"--keyring={KEYRING}")  # otherwise it may only warn
    options = ("--variant=minbase", f"--arch={architecture}", *signed)
    run_debootstrap([*debootstrap, *options, suite, str(tree), *apt.debian_mirror()], suite, say)


def fetched(apt: Apt, unpacked: Path) -> list[str]:
    """The command that runs debootstrap from its package."""
    apt.unpack(["debootstrap"], unpacked)
    data = f"DEBOOTSTRAP_DIR={unpacked / 'usr/share/debootstrap'}"
    return ["env", data, str(unpacked / "usr/sbin/debootstrap")]


def run_debootstrap(command: list[str], suite: str, say: Say) -> None:
    """Runs it in new namespaces, so that its mounts and processes cannot outlive it."""
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    path = f"{os.environ.get('PATH', os.defpath)}:{ROOTS_PATH}"
    lines: list[str] = []
    with subprocess.Popen(
        [*apart, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": path},
        preexec_fn=partial(end_with, os.getpid()),  # noqa: PLW1509 - it takes no lock
    ) as process:
        try:
            for line in process.stdout or ():
                lines.append(line.strip())
                _say_stage(line, say)
            process.wait()
        finally:
            process.kill()  # no effect if it has exited
    if process.returncode == 0:
        return
    output = "\n    ".join(lines[-LAST_LINES:])
    raise ClusterError(
        f"debootstrap could not make the base image of Debian {suite}:\n    {output}",
        cure="`apt-get update` should work on this host: its Debian mirror is the one used; or "
        f"name one that has Debian {suite} in {MIRROR_VARIABLE}",
    )


def _say_stage(line: str, say: Say) -> None:
    """Reports the four stages of debootstrap, not each of its hundreds of packages."""
    stages = {
        "Retrieving InRelease": "debootstrap: reading the mirror's index",
        "Checking component main": "debootstrap: fetching and checking the packages",
        "Chosen extractor": "debootstrap: unpacking",
        "Configuring required packages": "debootstrap: configuring",
    }
    for sign, stage in stages.items():
        if sign in line:
            say(stage)
