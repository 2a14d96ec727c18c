"""Fetches and unpacks Debian packages without installing or changing anything on this host.

apt checks their signatures, as always. If the host's package lists are missing or old, lists of our
own are fetched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from lockcheck.errors import ClusterError
from lockcheck.signals import end_with

LAST_LINES = 8
TIMEOUT_S = 300
MIRROR_VARIABLE = "LOCKCHECK_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def can_fetch() -> bool:
    return all(map(shutil.which, ("apt-get", "dpkg-deb")))


class Apt:
    """Runs apt-get. Writes only to `folder`, which must be empty."""

    def __init__(self, folder: Path, suite: str = "") -> None:
        self._folder = folder
        self._suite = suite  # empty: from this host's sources
        self._options: tuple[str, ...] = ()  # empty: with the host's own package lists
        self._errors = ""

    def unpack(self, packages: Sequence[str], into: Path) -> None:
        """Fetches the packages, and unpacks all of them into one folder."""
        debs = self._folder / "debs"
        debs.mkdir()
        if self._suite or not self._download(packages, debs):
            self._update()
            if not self._download(packages, debs):
                raise self._failure(packages)
        for package in sorted(debs.glob("*.deb")):
            self._run(["dpkg-deb", "--extract", str(package), str(into)], check=True)

    def debian_mirror(self) -> list[str]:
        """The URL of this host's Debian mirror; empty if none is known."""
        if named := os.environ.get(MIRROR_VARIABLE):
            return [named]
        if shutil.which("apt-get") is None:
            return []
        mirrors = self._mirrors()
        if not mirrors and not self._options and not self._suite:
            self._update()
            mirrors = self._mirrors()
        return mirrors[:1]

    def _mirrors(self) -> list[str]:
        about = ("--format", "$(REPO_URI)", "Origin: Debian", "Label: Debian")
        lines = self._apt("indextargets", *about).stdout.splitlines()
        return [line for line in lines if line.startswith(("http:", "https:"))]

    def _download(self, packages: Sequence[str], into: Path) -> bool:
        done = self._apt("download", *packages, folder=into)
        return done.returncode == 0 and any(into.glob("*.deb"))

    def _update(self) -> None:
        """Fetches lists of our own. Whether a source that fails matters, the download shows."""
        settings = self._settings()  # before options are set: it may ask for the host's sources
        lines = [
            *("#clear APT::Update::Post-Invoke;", "#clear APT::Update::Post-Invoke-Success;"),
            *(f'{name} "{value}";' for name, value in settings.items()),
        ]
        ours = self._folder / "apt.conf"
        ours.write_text("\n".join(lines) + "\n")
        self._options = (f"--config-file={ours}",)
        self._apt("update")

    def _settings(self) -> dict[str, str]:
        for name in ("lists/partial", "cache/archives/partial"):
            (self._folder / name).mkdir(parents=True)
        own = {
            "Dir::State::lists": f"{self._folder}/lists",
            "Dir::Cache": f"{self._folder}/cache",
            "APT::Sandbox::User": "root",  # apt's own user may not write into our folder
            "Acquire::Languages": "none",
        }
        return own | self._suite_settings() if self._suite else own

    def _suite_settings(self) -> dict[str, str]:
        """The suite as the only source, without this host's installed packages and preferences."""
        mirrors = self.debian_mirror() or self._with_the_hosts_own_lists().debian_mirror()
        if not mirrors:
            raise ClusterError(
                f"this host has no Debian mirror, so Debian {self._suite} cannot be fetched",
                cure=f"name one in {MIRROR_VARIABLE}",
            )
        if not KEYRING.exists():
            raise ClusterError(
                f"Debian {self._suite} cannot be checked: {KEYRING} is missing",
                cure="apt-get install debian-archive-keyring",
            )
        sources, status = self._folder / "sources.list", self._folder / "status"
        sources.write_text(f"deb [signed-by={KEYRING}] {mirrors[0]} {self._suite} main\n")
        status.touch()
        return {
            "Dir::Etc::sourcelist": str(sources),
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::status": str(status),
        }

    def _with_the_hosts_own_lists(self) -> Apt:
        (self._folder / "host").mkdir()
        return Apt(self._folder / "host")

    def _failure(self, packages: Sequence[str]) -> ClusterError:
        errors = "\n    ".join(self._errors.strip().splitlines()[-LAST_LINES:])
        cure = "`apt-get update` should work on this host"
        if self._suite:
            cure = (
                f"name a mirror that has Debian {self._suite} in {MIRROR_VARIABLE}; suites that "
                "Debian has retired are in its archive"
            )
        of = f" of Debian {self._suite}" if self._suite else ""
        return ClusterError(
            f"apt-get could not fetch {', '.join(packages)}{of}:\n    {errors}", cure=cure
        )

    def _apt(self, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
        return self._run(["apt-get", "--quiet", *self._options, *arguments], folder=folder)

    def _run(
        self, command: Sequence[str], *, folder: Path | None = None, check: bool = False
    ) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                command,
                cwd=folder or self._folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIMEOUT_S,
                preexec_fn=partial(end_with, os.getpid()),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ClusterError(
                f"Debian's packages cannot be fetched: {error}",
                cure="`apt-get update` should work on this host, within a few minutes",
            ) from error
        self._errors += done.stderr
        if check and done.returncode != 0:
            raise ClusterError(
                f"{command[0]} failed: {done.stderr.strip()}", cure="check the free disk space"
            )
        return done
