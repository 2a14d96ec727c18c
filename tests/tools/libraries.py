"""What `validate` and `battery` find of a dozen lock libraries: this writes docs/libraries.md.

    python -m tests.tools.libraries --page docs/libraries.md

What it finds of a library is put in the place of what stood there; `--only NAME` runs that one.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from lockcheck.files import writing
from lockcheck.yours.battery import CONDITIONS
from lockcheck.yours.museum.programs import CLIENTS
from tests.examples.test_examples import FOLDER, TIMEOUT_S, Commands

NOT_KEPT, VIOLATION, UNKNOWN = 1, 1, 3
WHOSE = {"service": "**lock**", "client": "**lock**", "holder": "holder"}
HEAD = """# A dozen lock libraries

What [`lockcheck validate` and `lockcheck battery`](your-lock.md) find of published libraries, each
used as its documentation says, by the clients in `examples` and in the museum.

- **lock**: it is to blame: it was granted to a second client while it was promised to the first.
- holder: its holder went on after its lease had run out. No lock can prevent that; a storage that
  checks a fencing token can.

"""
BEGINS = "\n## "
CELLS = "Under the ten conditions: "


@dataclass(frozen=True)
class Library:
    """`example`: of that name; else a client of the museum, and what it requires."""

    name: str  # with its version
    is_what: str
    example: str = ""
    requires: str = ""
    client: str = ""
    options: str = ""


LIBRARIES = (
    Library("redis-py 8.1.0", "Python, Redis", "python-redis-py", "redis==8.1.0"),
    Library(
        "python-redis-lock 4.0.1",
        "Python, Redis",
        "python-redis-lock",
        "python-redis-lock==4.0.1 redis==5.2.1",
    ),
    Library(
        "sherlock 0.4.1",
        "Python, Redis",
        requires="sherlock==0.4.1 redis==4.6.0",
        client="redis/sherlock_lock.py:Expiring",
    ),
    Library(
        "redlock-py 1.0.8",
        "Python, three Redis",
        requires="redlock-py==1.0.8 redis==5.2.1",
        client="redis/redlock_py_lock.py:Majority",
        options="--servers redis*3 --promises silent-release",
    ),
    Library(
        "pottery 3.0.1",
        "Python, three Redis",
        requires="pottery==3.0.1 redis==5.2.1",
        client="redis/pottery_lock.py:Majority",
        options="--servers redis*3",
    ),
    Library("rslock 0.7", "Rust, three Redis", "rust-rslock"),
    Library("node-redis", "JavaScript, Redis", "node-redis"),
    Library("kazoo 2.11.0", "Python, ZooKeeper", "python-kazoo", "kazoo==2.11.0"),
    Library("Curator", "Java, ZooKeeper", "java-curator"),
    Library(
        "etcd3 0.12.0",
        "Python, etcd",
        requires="etcd3==0.12.0 protobuf==3.20.3 tenacity==6.1.0",
        client="etcd/etcd3_lock.py:Asked",
        options="--servers etcd --promises waits --ttl 3s",
    ),
    Library("etcd's concurrency.Mutex", "Go, etcd", "go-etcd"),
    Library("etcdctl lock", "bash, etcd", "bash-etcdctl"),
)


def client_of(library: Library, folder: Path) -> list[str]:
    """The options that name it; what is to be built is built."""
    requirements = [w for each in library.requires.split() for w in ("--requirements", each)]
    if not library.example:
        return ["--client", str(CLIENTS / library.client), *requirements, *library.options.split()]
    commands = Commands.of(library.example)
    shutil.copytree(FOLDER / library.example, folder, dirs_exist_ok=True)
    for command in commands.builds:
        subprocess.run(["bash", "-c", command], check=True, cwd=folder, timeout=TIMEOUT_S)
    return [*shlex.split(commands.validate.partition(" validate ")[2]), *requirements]


def lockcheck(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    print(f"  lockcheck {shlex.join(arguments)}", flush=True)
    return subprocess.run(
        [sys.executable, "-m", "lockcheck", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        cwd=folder,
        timeout=TIMEOUT_S,
        env={"NODE_PATH": "/usr/share/nodejs", **os.environ},
    )


def examined(library: Library, folder: Path) -> Iterator[str]:
    """The lines of its section."""
    client = client_of(library, folder)
    validated = lockcheck(["validate", *client], folder)
    if validated.returncode not in (0, NOT_KEPT):
        raise SystemExit(f"{library.name}: validate ended with {validated.returncode}")
    lines = validated.stdout.splitlines()
    [promises] = [line for line in lines if line.startswith("It promises: ")]
    wrong = [" ".join(line[4:].split()) for line in lines if line.startswith("no ")]
    yield f"{library.is_what}. {promises.partition('. See')[0].replace('It promises', 'Promises')}."
    yield "`validate`: " + ("as it should be." if not wrong else "; ".join(wrong) + ".")
    battery = lockcheck(["battery", "--json", *client], folder)
    if battery.returncode not in (0, VIOLATION, UNKNOWN):
        raise SystemExit(f"{library.name}: battery ended with {battery.returncode}")
    yield CELLS + " | ".join(map(cell, json.loads(battery.stdout)))


def cell(trial: dict[str, Any]) -> str:
    broken = [tally for tally in trial["findings"] if tally["effect"] == "violation"]
    if trial["verdict"] != "violation":
        return str(trial["verdict"])
    whose = dict.fromkeys(WHOSE.get(tally["blame"], tally["blame"]) for tally in broken)
    return ", ".join(whose)


def write(page: Path, library: Library, lines: list[str]) -> None:
    sections = {}
    if page.exists():
        _, *old = page.read_text().split(BEGINS)
        sections = {each.partition("\n")[0]: each.rstrip() for each in old}
    lines.append(f"Seen on {date.today():%d %B %Y}.")
    sections[library.name] = "\n\n".join((library.name, *lines))
    known = [each.name for each in LIBRARIES if each.name in sections]
    with writing(page) as out:
        text = HEAD + table({name: sections[name] for name in known})
        out.write((text + "".join(f"{BEGINS}{sections[name]}\n" for name in known)).encode())


def table(sections: dict[str, str]) -> str:
    rows = [["", *CONDITIONS], ["---"] * (1 + len(CONDITIONS))]
    for name, text in sections.items():
        [cells] = [line for line in text.splitlines() if line.startswith(CELLS)]
        rows.append([name, *cells.removeprefix(CELLS).split(" | ")])
    meanings = (f"- {each.name}: {each.meaning}\n" for each in CONDITIONS.values())
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n" + "".join(meanings)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[], help="its name; repeatable")
    arguments = parser.parse_args()
    for library in LIBRARIES:
        if arguments.only and library.name not in arguments.only:
            continue
        print(library.name, flush=True)
        folder = Path(tempfile.mkdtemp(prefix="lockcheck-libraries-"))
        write(arguments.page, library, list(examined(library, folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
