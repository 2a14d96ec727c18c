"""The server: what it shows, and that it gives away nothing else, whatever it is asked."""

from __future__ import annotations

import os
import re
import socket
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from lockcheck.serve.difference import ABSENT
from lockcheck.serve.entries import Kind, Status
from lockcheck.serve.places import read_below
from lockcheck.serve.server import ANY_ADDRESS, LOOPBACK
from tests.matrix.made_up import ATTACK, HOSTILE
from tests.serve.conftest import Serve, Served
from tests.serve.made_up import campaign, run

SECRET = b"a secret outside of the folder"
HOSTILE_NAME = "<img src=x onerror=alert(1)>\"'& %2e%2e ;\x1b[2J"


@pytest.fixture
def served(tmp_path: Path, serve: Serve) -> Served:
    """A run, and traps beside it that lead to the secret."""
    (tmp_path / "report.html").write_bytes(SECRET)
    root = tmp_path / "results"
    here = run(root / "run", 1)
    for name in ("config.json", "facts.json", ".hidden"):
        (here / name).write_bytes(SECRET)
    (root / "report.html").write_bytes(SECRET)
    (root / "linked").symlink_to(tmp_path)
    (run(root / "leads", 1) / "report.html").unlink()
    (root / "leads" / "report.html").symlink_to(tmp_path / "report.html")
    (run(root / "waits", 1) / "report.html").unlink()
    os.mkfifo(root / "waits" / "report.html")
    return serve(root)


def rows(text: str) -> list[str]:
    """The names on the page, in its order."""
    return re.findall(r'class="of-name"><div>(?:<a [^>]*>)?([^<]*)', text)


def test_the_list_leads_to_the_pages(served: Served) -> None:
    page = served.ask("/")
    assert page.status == 200
    assert sorted(rows(page.text)) == ["leads", "run", "waits"]
    assert re.findall(r'href="(/files/[^"]*)"', page.text) == ["/files/run/report.html"]
    report = served.ask("/files/run/report.html")
    assert (report.status, report.body) == (200, b"<p>its page")


@pytest.mark.parametrize(
    "path",
    [
        "/files/../report.html",
        "/files/%2e%2e/report.html",
        "/files/run/../../report.html",
        "/files/run/%2E%2E/%2e%2e/report.html",
        "/files/run%2f..%2f..%2freport.html",
        "/files/..%2freport.html",
        "/files/%2fetc%2fpasswd",
        "/files//etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/../report.html",
        "/report.html",
        "/files/report.html",
        "/files/./run/report.html",
        "/files//run/report.html",
        "/files/run//report.html",
        "/files/run/report.html/",
        "/files/run/report.html%00",
        "/files/run%00/report.html",
        "/files/run/config.json",
        "/files/run/facts.json",
        "/files/run/record.json",
        "/files/run/.hidden",
        "/files/run/",
        "/files/run",
        "/files/",
        "/files",
        "/files/linked/report.html",
        "/files/leads/report.html",
        "/files/waits/report.html",
        "/compare?of=run&of=..",
        "/compare?of=run&of=linked",
    ],
)
def test_nothing_else_is_given_away(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status == 404
    assert SECRET not in answer.body
    assert b"root:x:" not in answer.body


def test_a_link_that_comes_after_the_look_is_not_followed(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    root = tmp_path / "results"
    here = run(root / "run", 1)
    served = serve(root)
    assert served.ask("/files/run/report.html").status == 200
    about = here.stat()
    (here / "report.html").unlink()
    (here / "report.html").symlink_to(tmp_path / "secret")
    os.utime(here, ns=(about.st_atime_ns, about.st_mtime_ns))  # the index does not notice
    assert served.server.index.snapshot().by_parts["run",].files == ("report.html",)
    assert served.ask("/files/run/report.html").status == 404


def test_no_link_is_followed_on_the_way_either(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_bytes(SECRET)
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "run").symlink_to(tmp_path / "elsewhere")
    for parts in (("run", "file"), ("..", "elsewhere", "file"), ("/etc", "passwd"), (), ("",)):
        with pytest.raises(OSError, match=r"."):
            read_below(tmp_path / "root", parts)
    assert read_below(tmp_path, ("elsewhere", "file")) == SECRET


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8470", "LOCALHOST", "127.0.0.1", "127.0.0.1:1", "[::1]:8470", "[::1]"],
)
def test_it_answers_to_the_names_of_this_machine(served: Served, host: str) -> None:
    assert served.ask("/", host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "evil.example@localhost",
        "localhost@evil.example",
        "localhost:x",
        "localhost/evil.example",
        "[::1",
        "a b",
    ],
)
def test_it_answers_to_no_other_name(served: Served, host: str | None) -> None:
    """Whose owner may have pointed it here: pages from there could read the answers."""
    for path in ("/", "/files/run/report.html", "/compare?of=run&of=leads", "/favicon.ico"):
        answer = served.ask(path, host=host)
        assert answer.status == 421
        assert b"its page" not in answer.body
        assert b"waits" not in answer.body


def test_open_to_all_it_answers_to_addresses_and_no_name(tmp_path: Path, serve: Serve) -> None:
    served = serve(tmp_path, host=ANY_ADDRESS[1])
    known = ("10.0.0.1:8470", "[fd00::1]", "localhost", socket.gethostname())
    assert [served.ask("/", host=host).status for host in known] == [200] * 4
    assert served.ask("/", host="evil.example").status == 421


def test_two_hosts_are_none(served: Served) -> None:
    with socket.create_connection((LOOPBACK, served.server.server_address[1])) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
        assert b" 421 " in raw.makefile("rb").readline()


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
)
def test_only_get_and_head_are_answered(served: Served, method: str) -> None:
    for path in ("/", "/files/run/report.html"):
        answer = served.ask(path, method)
        assert answer.status == 501
        assert b"its page" not in answer.body


@pytest.mark.parametrize("path", ["/", "/files/run/report.html", "/nothing"])
def test_head_is_get_without_the_body(served: Served, path: str) -> None:
    whole, head = served.ask(path), served.ask(path, "HEAD")
    assert head.body == b""
    assert head.status == whole.status
    assert head.headers["content-length"] == str(len(whole.body))


def test_a_page_of_a_run_can_read_nothing_from_here(served: Served) -> None:
    rules = served.ask("/files/run/report.html").headers["content-security-policy"]
    assert "sandbox allow-scripts;" in rules
    assert "allow-same-origin" not in rules
    assert "default-src 'none'" in rules


def test_the_list_may_ask_for_itself_and_for_nothing_else(served: Served) -> None:
    rules = served.ask("/").headers["content-security-policy"].split("; ")
    scripts, styles = rules.pop(1), rules.pop(1)
    assert re.fullmatch(r"script-src 'sha256-[^ ]+'", scripts)
    assert re.fullmatch(r"style-src 'sha256-[^ ]+'", styles)
    assert rules == [
        "default-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ]


def test_data_is_no_page(tmp_path: Path, serve: Serve) -> None:
    for name in ("history.jsonl", "verdict.json"):
        (run(tmp_path / name) / name).write_text("{}")
    folder = campaign(tmp_path, "1", ("redis::pause", "ok", "ok"))
    for name in ("junit.xml", "summary.md"):
        (folder / name).write_text("<x/>")
    served = serve(tmp_path)
    data = {
        "history.jsonl/history.jsonl": "application/x-ndjson",
        "verdict.json/verdict.json": "application/json",
        "matrix-1/junit.xml": "text/plain; charset=utf-8",
        "matrix-1/summary.md": "text/plain; charset=utf-8",
    }
    for path, kind in data.items():
        headers = served.ask(f"/files/{path}").headers
        assert headers["content-type"] == kind
        assert headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert headers["x-content-type-options"] == "nosniff"
    history = served.ask("/files/history.jsonl/history.jsonl")
    assert history.headers["content-disposition"] == "attachment"


def test_whatever_records_hold_is_text(tmp_path: Path, serve: Serve) -> None:
    config = {"backend": HOSTILE, "nemesis": [HOSTILE, ATTACK], "guard": HOSTILE}
    found = [{"code": ATTACK, "effect": "violation", "blame": ATTACK, "number": 1}]
    more: dict[str, Any] = {"config": config, "findings": found, "versions": {ATTACK: ATTACK}}
    run(tmp_path / HOSTILE_NAME, 1, **more, problem=HOSTILE)
    run(tmp_path / os.fsdecode(b"no-\xff-text"), 0)
    served = serve(tmp_path)
    page = served.ask(f"/?words={quote(ATTACK)}&backend={quote(HOSTILE)}&sort={quote(ATTACK)}")
    assert page.status == 200
    links = []
    for each in (page, served.ask("/"), served.ask(f"/{quote(ATTACK)}")):
        assert "<img" not in each.text
        assert "\x1b" not in re.sub(r'value="[^"]*"', "", each.text)
        assert each.text.count("</script>") == 1
        links += re.findall(r'href="(/files/[^"]*)"', each.text)
    names = {unescape(link).split("/")[2] for link in links}
    assert len(names) == 2
    for link in links:
        assert served.ask(unescape(link)).body == b"<p>its page"
    compared = served.ask("/compare?" + "&".join(f"of={quote(name)}" for name in sorted(names)))
    assert compared.status == 200
    assert "<img" not in compared.text


def test_the_address_alone_filters_sorts_and_pages(tmp_path: Path, serve: Serve) -> None:
    for number in range(250):
        run(tmp_path / f"r{number:03}", number)
    served = serve(tmp_path)

    def asked(query: str) -> list[str]:
        return rows(served.ask(f"/?{query}").text)

    assert asked("")[:2] == ["r249", "r248"]
    assert len(asked("")) == 100
    assert len(asked("page=3")) == 50
    assert asked("page=99") == asked("page=3")
    assert asked("sort=time")[0] == "r000"
    assert asked("sort=-duration")[0] == "r249"
    assert asked("verdict=violation&sort=name&words=redis")[:3] == ["r001", "r010", "r019"]
    assert asked("backend=etcd&fault=kill&verdict=ok&sort=name")[:2] == ["r012", "r039"]
    assert asked("words=PAUSE+zookeeper&sort=name")[0] == "r006"
    assert asked("words=r24&verdict=&sort=nonsense&page=x")[0] == "r249"
    assert asked("words=nothing-like-it") == []
    assert served.ask("/?" + "&".join(f"a{n}=1" for n in range(99))).status == 400


def test_what_differs_between_two_runs(tmp_path: Path, serve: Serve) -> None:
    run(tmp_path / "a", 0)
    run(tmp_path / "b", 1, versions={"lockcheck": "0.1.0", "redis": "7.2"})
    served = serve(tmp_path)
    text = re.sub(r"\s*<[^>]*>\s*", "|", served.ask("/compare?of=a&of=b").text)
    text = re.sub(r"\|+", "|", text)
    for row in (
        "verdict|ok|violation",
        f"overlap (violation, by the holder)|{ABSENT}|2",
        "operations|800|801",
        "guard|none|fence",
        "redis|8.0|7.2",
    ):
        assert f"|{row}|" in text
    assert "|acquisitions|" not in text
    assert "|0.1.0|" not in text
    assert "No difference" in served.ask("/compare?of=a&of=a").text


def test_what_differs_between_two_campaigns(tmp_path: Path, serve: Serve) -> None:
    campaign(tmp_path, "1", ("redis::pause", "ok", "ok ok"), ("etcd::none", "ok", "ok"))
    campaign(tmp_path, "2", ("redis::pause", "ok", "ok violation"), finished=False)
    run(tmp_path / "a", 0)
    served = serve(tmp_path)
    text = unescape(served.ask("/compare?of=matrix-1&of=matrix-2").text)
    assert "redis::pause[2]: ok -> violation" in text
    assert "etcd::none" in text
    assert served.ask("/compare?of=matrix-1&of=a").status == 400
    assert served.ask("/compare?of=a").status == 400
    assert served.ask("/compare").status == 400


def test_each_status_and_kind_can_be_asked_for(served: Served) -> None:
    text = served.ask("/").text
    for each in (*Status, *Kind):
        assert f'<option value="{each}">' in text
