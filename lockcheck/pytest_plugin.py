"""The fixture `lockcheck_cluster`, for pytest. It is loaded in every run of pytest, so it imports
nothing of lockcheck before a test uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from lockcheck.library.cluster import Cluster

PAGES = "lockcheck_pages"
NO_RUNTIME = "lockcheck_no_runtime"
WITHOUT = ("skip", "fail")
LONGEST_NAME = 150


def pytest_addoption(parser: pytest.Parser) -> None:
    pages = "the folder for the pages of judgements that are not ok, in pytest's rootdir"
    parser.addini(PAGES, pages, default="lockcheck-pages")
    without = f"{' or '.join(WITHOUT)}: what becomes of a test whose servers this host cannot run"
    parser.addini(NO_RUNTIME, without, default=WITHOUT[0])


def pytest_configure(config: pytest.Config) -> None:
    if (given := config.getini(NO_RUNTIME)) not in WITHOUT:
        raise pytest.UsageError(f"{NO_RUNTIME} = {given}: choose from {', '.join(WITHOUT)}")


@pytest.fixture
def lockcheck_cluster(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., Cluster]]:
    """Starts a cluster, as `lockcheck.cluster` does, which lasts until the test ends:
    `cluster = lockcheck_cluster("redis", clients=2)`. A judgement of its log that is required to be
    ok, and is not, writes its page into the folder `lockcheck_pages`."""
    with ExitStack() as clusters:
        started = 0

        def start(lock: str, **settings: Any) -> Cluster:
            nonlocal started
            __tracebackhide__ = True  # pytest shows the line of the test instead
            from lockcheck.errors import NoRuntimeError
            from lockcheck.library.cluster import cluster

            try:
                up = clusters.enter_context(cluster(lock, **{"folder": tmp_path} | settings))
            except NoRuntimeError as error:
                if request.config.getini(NO_RUNTIME) == "fail":
                    raise
                pytest.skip(f"lockcheck: {error.message}: {error.cure}")
            started += 1
            up.log.report = _page(request, started)
            up.log.report.unlink(missing_ok=True)  # of the last time
            return up

        yield start


def _page(request: pytest.FixtureRequest, number: int) -> Path:
    """Named after the test, and the number of its cluster if it has several."""
    test = request.node.nodeid
    name = re.sub(r"[^\w.-]+", "-", test).strip("-")
    if "[" in test or len(name) > LONGEST_NAME:  # other parameters may read the same
        name = f"{name[:LONGEST_NAME]}-{crc32(test.encode()):08x}"
    folder = request.config.rootpath / request.config.getini(PAGES)
    return Path(folder, f"{name}{f'-{number}' if number > 1 else ''}.html")
