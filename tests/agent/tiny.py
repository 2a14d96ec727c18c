"""A kind of server for tests: a parent and a worker that it forks, which refuse to run as root."""

from __future__ import annotations

import sys

from lockcheck.servers.base import Clock, Command, Here, Question, Server

PORT = 7777
SCRIPT = """
import os, pathlib, socket, sys
if os.getuid() == 0:
    sys.exit("I do not run as root")
data = pathlib.Path(sys.argv[1])
lives = data / "lives"
lives.write_text(lives.read_text() + "I" if lives.exists() else "I")
if os.fork():
    os.wait()
    sys.exit(3)
with socket.create_server(("0.0.0.0", int(sys.argv[2]))) as server:
    while True:
        with server.accept()[0] as caller:
            answer = [os.environ["TINY"], str(os.getuid()), lives.read_text(),
                    (data / "greeting").read_text(), os.environ["LOCKCHECK_GENERATION"],
                    os.environ.get("ETCD_NAME", "no etcd"), str(sorted(os.listdir(data)))]
            caller.sendall("/".join(answer).encode())
"""


def _command(here: Here) -> Command:
    return (*here.program, "-c", SCRIPT, here.data, str(PORT))


TINY = Server(
    name="tiny",
    title="a tiny server",
    port=PORT,
    find=lambda: (sys.executable,),
    cure="",
    image="client",
    image_program=("python3",),
    command=_command,
    ready=Question(b"", rb"\$HOME"),
    files=lambda here: {"greeting": f"hello from {here.name} of {' '.join(here.members)}"},
    environment=lambda _here: {"TINY": "$HOME is a word"},
    data_mb=1,
    refuses_root=True,
    clock=Clock.MONOTONIC,
)
