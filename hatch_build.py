"""Builds the parts in C, if there is a compiler; without them lockcheck is slower and complete.

`lockcheck/native/` says what they are. A wheel with them is one for this platform, whatever the
version of Python; one without is for all.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ("-std=c11", "-O2", "-fPIC", "-shared")
TIMEOUT_S = 300
LIBRARY = "_core.so"


class NativeBuild(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        folder = Path(self.root) / "lockcheck" / "native"
        trouble = built(folder)
        if trouble:
            self.app.display_info(f"lockcheck: in plain Python, without the parts in C: {trouble}")
            return
        if version != "editable":
            build_data["artifacts"].append(f"/lockcheck/native/{LIBRARY}")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform()}"


def built(folder: Path) -> str:
    """Compiles the library; why not, in a few words, if it cannot be done."""
    library, fresh = folder / LIBRARY, folder / f"{LIBRARY}.{os.getpid()}"
    trouble = compiled(sorted(folder.glob("*.c")), fresh)
    try:
        if trouble:
            library.unlink(missing_ok=True)  # one of other sources is worse than none
        else:
            fresh.replace(library)  # at once: whoever has loaded the old one keeps it
        fresh.unlink(missing_ok=True)
    except OSError as error:
        trouble = str(error)
    return trouble


def compiled(sources: list[Path], library: Path) -> str:
    compiler = shlex.split(os.environ.get("CC", "")) or ["cc"]
    if not sys.platform.startswith(("linux", "darwin")):
        return f"they are not built on {sys.platform}"
    if shutil.which(compiler[0]) is None:
        return f"there is no C compiler ({compiler[0]})"
    command = [*compiler, *FLAGS, "-o", str(library), *map(str, sources)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else first_line(done.stderr) or f"{command[0]} failed"


def first_line(output: bytes) -> str:
    lines = output.decode(errors="replace").splitlines()
    return next((line for line in lines if "error" in line), lines[0] if lines else "")


def platform() -> str:
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")
