"""The list in a real browser: filters, what comes meanwhile, and that nothing goes wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.results.browser import DESK, PHONE, Browser, Tab
from tests.serve.conftest import Serve, Served
from tests.serve.made_up import campaign, run, under_way

NAMES = "[...document.querySelectorAll('.of-name')].map((name) => name.innerText.split('\\n')[0])"
SNEAKY = """<!doctype html><title>waiting</title><script>
fetch('/').then(() => { document.title = 'read'; }, () => { document.title = 'refused'; });
</script>"""
Opened = Callable[..., Tab]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens a page of a server, in tabs that are closed when the test is over."""
    tabs: list[Tab] = []
    empty = tmp_path / "empty.html"
    empty.write_text("<title>nothing")

    def show(served: Served, path: str = "", size: tuple[int, int] = DESK, **media: str) -> Tab:
        tab = browser.open(empty, size=size, **media)
        tabs.append(tab)
        tab.load("Page.navigate", url=f"{served.address}{path}")
        return tab

    yield show
    for tab in tabs:
        tab.close()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for number in range(12):
        run(tmp_path / "results" / f"r{number:02}", number)
    return tmp_path / "results"


def typed(tab: Tab, text: str) -> None:
    tab.js("document.querySelector('[name=words]').focus()")
    for key in text:
        tab.press(key)


def test_the_list_is_filtered_while_one_types(results: Path, serve: Serve, opened: Opened) -> None:
    tab = opened(serve(results))
    assert len(tab.js(NAMES)) == 12
    tab.js("window.same = true")
    typed(tab, "etcd")
    assert tab.until(f"{NAMES}.length === 3 && {NAMES}") == ["r05", "r04", "r03"]
    assert tab.text("#count") == "1 to 3 of 3, among 12"
    assert tab.js("location.search") == "?words=etcd"
    verdict = "document.querySelector('[name=verdict]')"
    tab.js(f"{verdict}.value = 'violation'")
    tab.js(f"{verdict}.dispatchEvent(new Event('change', {{ bubbles: true }}))")
    assert tab.until(f"{NAMES}.length === 1 && {NAMES}") == ["r04"]
    assert tab.js("document.activeElement.name") == "words"
    assert tab.js("window.same") is True  # it was never loaded anew
    assert tab.errors == []


def test_runs_that_come_and_end_appear_without_a_reload(
    results: Path, serve: Serve, opened: Opened
) -> None:
    tab = opened(serve(results))
    tab.js("window.same = true; document.querySelector('[value=r03]').click()")
    new = under_way(results / "new")
    status = "document.querySelector('tr:has([value=new]) .stands')?.innerText"
    assert "running" in tab.until(status)
    assert tab.js("document.querySelector('[value=r03]').checked") is True
    shutil.rmtree(new)
    run(new, 1)
    tab.until(f"({status} || '').includes('violation')")
    assert tab.js("window.same") is True
    assert tab.errors == []


def test_two_are_compared_by_keyboard(results: Path, serve: Serve, opened: Opened) -> None:
    tab = opened(serve(results))
    disabled = "document.getElementById('compare').disabled"
    for name in ("r03", "r04"):
        assert tab.js(disabled) is True
        tab.js(f"document.querySelector('[value={name}]').focus()")
        tab.press(" ")
    assert tab.js(disabled) is False
    tab.js("document.getElementById('compare').focus()")
    tab.press("Enter")
    tab.until("document.querySelector('h1')?.innerText === 'Difference'")
    assert "violation" in tab.text("main")
    assert tab.errors == []


def test_it_notes_that_the_server_has_ended(results: Path, serve: Serve, opened: Opened) -> None:
    served = serve(results)
    tab = opened(served)
    served.server.shutdown()
    served.server.server_close()
    tab.until("document.getElementById('count').innerText.includes('does not answer')")
    assert len(tab.js(NAMES)) == 12


def test_it_works_without_a_script(results: Path, serve: Serve, opened: Opened) -> None:
    tab = opened(serve(results))
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.load()
    typed_in = tab.call("Runtime.evaluate", expression="1 + 1")  # the protocol's own still runs
    assert typed_in["result"]["value"] == 2
    tab.js("document.querySelector('[name=words]').focus()")
    for key in "etcd":
        tab.press(key)
    tab.press("Enter")
    tab.until("location.search.includes('words=etcd')")
    assert tab.until(f"{NAMES}.length === 3 && {NAMES}") == ["r05", "r04", "r03"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(results: Path, serve: Serve, opened: Opened, scheme: str) -> None:
    campaign(results, "1", ("redis-fenced::partition:holder", "ok", "ok violation"))
    tab = opened(serve(results), size=PHONE, prefers_color_scheme=scheme)
    assert tab.js("document.documentElement.scrollWidth") <= PHONE[0]
    assert tab.errors == []


def test_a_page_can_read_nothing_from_the_server(
    results: Path, serve: Serve, opened: Opened
) -> None:
    """Its script runs, and asks for the list; what it got is in its title."""
    run(results / "sneaky", page=SNEAKY)
    tab = opened(serve(results), "files/sneaky/report.html")
    assert tab.until("document.title !== 'waiting' && document.title") == "refused"
