"""What tests of the page share: a browser, started once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.results.browser import CHROMIUM, DESK, MISSING, Browser, Tab, started


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    with started(tmp_path_factory.mktemp("browser")) as running:
        yield running


Opened = Callable[..., Tab]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens a page, given as HTML, in tabs that are closed when the test is over."""
    tabs: list[Tab] = []

    def show(html: str, link: str = "", size: tuple[int, int] = DESK, **media: str) -> Tab:
        page = tmp_path / "report.html"
        page.write_text(html, encoding="utf-8")
        tabs.append(browser.open(page, link, size, **media))
        return tabs[-1]

    yield show
    for tab in tabs:
        tab.close()
