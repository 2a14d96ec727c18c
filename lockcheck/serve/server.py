"""The web server: it answers GET and HEAD with the list, differences, and files of known names of
the runs and campaigns that the list has. Nothing else is ever read, and nothing is written."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import shutil
import socket
import sys
import time
from contextlib import ExitStack, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from lockcheck.errors import UserError
from lockcheck.serve.difference import difference
from lockcheck.serve.entries import Entry
from lockcheck.serve.index import Index
from lockcheck.serve.pages import difference_page, list_page, policy, problem_page
from lockcheck.serve.places import opened_below
from lockcheck.serve.query import MOST_FIELDS, Query

LOOPBACK = "127.0.0.1"
ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - only what a user asks for is listened on
PORT, PORTS_TRIED = 8470, 100
PATIENCE_S = 30  # for a browser that does not read on
_HOST = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?", re.ASCII)
_CLOSED = "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# A page is a stranger's, perhaps: in an origin of its own it can read nothing else from here.
OF_PAGES = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    f"style-src 'unsafe-inline'; {_CLOSED}"
)
OF_DATA = f"sandbox; default-src 'none'; {_CLOSED}"
HTML = "text/html; charset=utf-8"
TYPES = {".html": HTML, ".json": "application/json", ".jsonl": "application/x-ndjson"}
TEXT = "text/plain; charset=utf-8"  # what else there is; a browser would run scripts in XML


class Server(ThreadingMixIn, TCPServer):
    daemon_threads = True  # they end with the command
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, index: Index, host: str, port: int) -> None:
        self.index = index
        self.hosts = {"localhost", LOOPBACK, "::1", host.lower()} - {""}
        self.open_to_all = host in ANY_ADDRESS
        if self.open_to_all:
            self.hosts.add(socket.gethostname().lower())
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)

    @property
    def address(self) -> str:
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, bytes) else host
        return f"http://{f'[{name}]' if ':' in name else name}:{port}/"

    def serves(self, host: str) -> bool:
        """Whether the Host of a request is one that this is known by: no other site's name, which
        its owner may have pointed here."""
        matched = _HOST.fullmatch(host.lower())
        name = matched[1].strip("[]") if matched else ""
        return name in self.hosts or (self.open_to_all and _is_address(name))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _is_address(name: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(name))
    return False


def listening(folder: Path, host: str, port: int | None) -> Server:
    """On this port, or from the usual one on the next that is free."""
    index = Index(folder)
    index.snapshot()
    ports = range(PORT, PORT + PORTS_TRIED) if port is None else [port]
    for each in ports:
        try:
            return Server(index, host, each)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UserError(
                    f"{host}:{each} cannot be listened on: {error.strerror}",
                    cure="name an address of this machine with --host, a port with --port",
                ) from error
    raise UserError(f"port {ports[0]} is taken", cure="choose another with --port")


class _Refused(Exception):
    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "lockcheck", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        try:
            self._answer()
        except _Refused as refused:
            self._send(problem_page(refused.why), status=refused.status)

    do_HEAD = do_GET  # noqa: N815 - as the library names it

    def _answer(self) -> None:
        self._check_host()
        try:
            address = urlsplit(self.path)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "That is no address.") from error
        match address.path.split("/"):
            case ["", ""]:
                self._list(address.query)
            case ["", "compare"]:
                self._compare(address.query)
            case ["", "files", *parts]:
                self._file([*map(_unquoted, parts)])
            case ["", "favicon.ico"]:
                self._head(HTTPStatus.NO_CONTENT, TEXT, 0, OF_DATA)
            case _:
                raise _Refused(HTTPStatus.NOT_FOUND, "There is no such page.")

    def _check_host(self) -> None:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.server.serves(hosts[0]):
            why = "This is not served under that name: --host NAME allows one."
            raise _Refused(HTTPStatus.MISDIRECTED_REQUEST, why)

    def _list(self, asked: str) -> None:
        try:
            query = Query.of(asked)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "These are too many words.") from error
        index = self.server.index
        self._send(list_page(index.root, index.snapshot(), query, time.time()))

    def _compare(self, asked: str) -> None:
        try:
            fields = parse_qsl(asked, max_num_fields=MOST_FIELDS)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "These are too many.") from error
        names = [value for name, value in fields if name == "of"]
        if len(names) != 2:
            raise _Refused(HTTPStatus.BAD_REQUEST, "Tick two runs, or two campaigns, to compare.")
        before, after = (self._entry([*map(_unquoted, name.split("/"))]) for name in names)
        try:
            parts = difference(self.server.index.root, before, after)
        except UserError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, f"{error.message}.") from error
        self._send(difference_page(before, after, parts, time.time()))

    def _entry(self, parts: list[str]) -> Entry:
        """Of the list: what it does not have is not looked for."""
        folder = () if parts == [""] else tuple(parts)  # it may be the one that is served
        entry = self.server.index.snapshot().by_parts.get(folder)
        if entry is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "There is no such run or campaign here.")
        return entry

    def _file(self, parts: list[str]) -> None:
        *folder, name = parts or [""]
        entry = self._entry(folder)
        if name not in entry.files:
            raise _Refused(HTTPStatus.NOT_FOUND, "It has no such file.")
        with ExitStack() as stack:
            try:
                file = stack.enter_context(
                    opened_below(self.server.index.root, (*entry.parts, name))
                )
            except OSError as error:
                raise _Refused(HTTPStatus.NOT_FOUND, "It cannot be read any more.") from error
            kind = TYPES.get(Path(name).suffix, TEXT)
            length = os.fstat(file.fileno()).st_size
            self._head(HTTPStatus.OK, kind, length, OF_PAGES if kind == HTML else OF_DATA)
            if self.command != "HEAD":
                shutil.copyfileobj(file, self.wfile)

    def _send(self, page: bytes, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._head(status, HTML, len(page), policy())
        if self.command != "HEAD":
            self.wfile.write(page)

    def _head(self, status: HTTPStatus, kind: str, length: int, rules: str) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(length),
            "Content-Security-Policy": rules,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-cache",
        }
        if kind == TYPES[".jsonl"]:
            headers["Content-Disposition"] = "attachment"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library names it
        """Requests are not worth a line."""


def _unquoted(part: str) -> str:
    """A name, as the system gives it: any bytes, and never a path."""
    return unquote(part, errors="surrogateescape")
