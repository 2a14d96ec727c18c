"""What is known of a log from elsewhere: who wrote it, by which clock, and from when to when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lockcheck.checker.finding import Judgement
from lockcheck.history import History, Terms
from lockcheck.history.hosts import Hosts, hosts_of
from lockcheck.history.model import name_of
from lockcheck.history.scan import Scan
from lockcheck.history.table import NEVER
from lockcheck.words import by_its_clock, listed, moment, natural, plain

Rows = tuple[tuple[str, str], ...]
NAMED = 6


def about_log(judgement: Judgement) -> Rows:
    """Empty of a run of lockcheck, and of a part of which the rest is not at hand."""
    history = judgement.scan or judgement.case.history
    whole = len(history.table) == judgement.counts.operations
    if history.terms.backend or not whole or not len(history.table):
        return ()
    hosts = hosts_of(history)
    return (
        *_sources(history, hosts),
        ("clock", _clock(history.terms, hosts)),
        ("times", _times(history, judgement.began_ns)),
    )


def _sources(history: History | Scan, hosts: Hosts) -> Iterator[tuple[str, str]]:
    clients = _clients(history)
    if hosts.named and set(hosts.names) != set(clients):
        yield "hosts" if len(hosts.names) > 1 else "host", _named(hosts.names)
    if not all(client.startswith("process ") for client in clients):  # else by their nodes
        yield "clients" if len(clients) > 1 else "client", _named(clients)


def _clients(history: History | Scan) -> list[str]:
    """Without keepers, which renew for others."""
    table = history.table
    own = set(table.process[table.owner == table.process].tolist())
    return [name_of(table.symbols.value(number)) for number in own]


def _named(names: Iterable[str]) -> str:
    every = sorted(names, key=natural)
    named = listed(map(plain, every), NAMED)
    return named if len(every) <= 2 else f"{len(every):,} ({named})"


def _clock(terms: Terms, hosts: Hosts) -> str:
    several = len(hosts.names) > 1 and (hosts.named or terms.clock_error_is_given)
    if terms.one_clock:
        return "one for all"
    if not several:
        one = "taken to be one for all, since no host is named"
        return f"that of {plain(hosts.names[0])}" if hosts.named else one
    whose = "each host's own" if hosts.named else "each client's own"
    if terms.clock_errors_ms:
        return f"{whose}, as far apart as --clock-error allows for each"
    if terms.clock_error_ms is not None:
        return f"{whose}, less than {terms.clock_error_ms:g} ms apart by --clock-error"
    return f"{whose}; how far they are apart is not known"


def _times(history: History | Scan, began_ns: int) -> str:
    """From the first request to the last answer."""
    table = history.table
    first_ns = int(table.start.min())
    last_ns = int(max(table.start.max(), table.end[table.end != NEVER].max(initial=0)))
    if began_ns:
        first, last = by_its_clock(began_ns, first_ns), by_its_clock(began_ns, last_ns)
        day = first.partition(" ")[0]
        return f"{first.removesuffix(' UTC')} to {last.removeprefix(f'{day} ')}"
    return f"{moment(first_ns)} to {moment(last_ns)}, without a date"
