"""The tests of what is in C once more, with sanitizers: `python -m tests.tools.sanitized`.

Strangers' files are parsed in C. It is built with AddressSanitizer and UndefinedBehaviorSanitizer
into a folder of its own, and the first thing that they find ends the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import lockcheck.native

LIBRARY = "LOCKCHECK_SANITIZED"  # as a plugin of pytest, this takes the library that it names
FLAGS = ("-std=c11", "-g", "-O1", "-fPIC", "-shared", "-fno-omit-frame-pointer")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
RUNTIMES = ("libasan.so", "libubsan.so")
TESTED = ("tests/history/test_columns.py", "tests/checker/linearizability/test_native_search.py")


if LIBRARY in os.environ:
    lockcheck.native.LIBRARY = Path(os.environ[LIBRARY])


def built(folder: Path) -> Path:
    library = folder / lockcheck.native.LIBRARY.name
    sources = sorted(map(str, lockcheck.native.FOLDER.glob("*.c")))
    subprocess.run(["cc", *FLAGS, *SANITIZERS, "-o", library, *sources], check=True)
    return library


def runtimes() -> str:
    """They have to be loaded before Python is."""
    found = (
        subprocess.run(
            ["cc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for name in RUNTIMES
    )
    return " ".join(found)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lockcheck-sanitized-") as folder:
        environment = {
            **os.environ,
            "LD_PRELOAD": runtimes(),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",  # what Python keeps is no leak
            "CC": " ".join(("cc", *SANITIZERS)),  # for tests that build it themselves
            LIBRARY: str(built(Path(folder))),
        }
        pytest = (sys.executable, "-m", "pytest", "-p", "tests.tools.sanitized", "--timeout=0")
        tests = [*pytest, *sys.argv[1:], *TESTED]
        return subprocess.run(tests, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
