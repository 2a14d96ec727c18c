"""`lockcheck list`: what a user finds out there without reading any code."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from lockcheck.backends import BACKENDS
from lockcheck.backends.expected import Expected
from lockcheck.cli.commands import main
from lockcheck.cli.listing import SECTIONS, WIDTH
from lockcheck.nemesis import FAULTS, FaultKind, Refusal


def listed(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["list", *arguments])


@pytest.fixture(scope="module")
def backends() -> str:
    return " ".join(listed("backends").stdout.split())


def test_all_sections_or_those_that_are_named() -> None:
    titles = [re.escape(f"{name} ({section.taken_by})") for name, section in SECTIONS.items()]
    everything = listed().stdout
    assert re.search(".*".join(titles), everything, re.DOTALL)
    one = listed("faults").stdout
    assert one in everything
    assert "faults (--nemesis)" in one
    assert "backends" not in one
    assert listed("servers", "models").stdout == listed("servers").stdout + listed("models").stdout


def test_the_help_names_the_sections() -> None:
    shown = " ".join(listed("--help").stdout.split())
    assert ", ".join(SECTIONS) in shown


def test_another_section_is_refused_with_the_choices() -> None:
    shown = listed("backend")
    assert shown.exit_code == 2
    assert ", ".join(SECTIONS) in shown.stderr


def test_it_fits_a_terminal() -> None:
    assert [line for line in listed().stdout.splitlines() if len(line) > WIDTH] == []


@pytest.mark.parametrize("name", BACKENDS)
def test_a_lock_is_told_whole(name: str, backends: str) -> None:
    """Its servers, its promises and how it fares, in this order, and nothing of another lock."""
    backend = BACKENDS[name]
    fares = "; ".join(f"{each.words()}: {each.verdict}" for each in backend.expected)
    servers = Counter(spec.kind for spec in backend.servers)
    numbers = ", ".join(f"{number} {kind}" for kind, number in servers.items())
    assert f" {name} {backend.summary} {numbers}; {backend.promises.words()} {fares}" in backends


def test_a_version_is_told_as_it_is_asked_for() -> None:
    assert "versions: etcd=3.5, etcd=3.4" in listed("servers").stdout


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Expected("none", "ok"), "none"),
        (Expected("pause", "ok", guard="fence"), "pause behind fence"),
        (Expected("none", "ok", ("--time-limit", "10s")), "none"),
        (
            Expected(
                "kill:server", "ok", ("--ttl", "2s", "--time-limit", "9s", "--no-stop-on-violation")
            ),
            "kill:server with --ttl 2s",
        ),
    ],
)
def test_an_expectation_in_words(expected: Expected, words: str) -> None:
    assert expected.words() == words


@pytest.mark.parametrize("kind", FAULTS.values(), ids=lambda kind: kind.name)
def test_a_fault_is_told_whole(kind: FaultKind) -> None:
    """What it is, at whom, by what words, when, and what it needs of this host."""
    shown = " ".join(listed("faults").stdout.split())
    lines = [kind.summary, f"aims: {', '.join(aim.words() for aim in kind.aims)}"]
    lines += [f"{each.words()}: {each.meaning}" for each in kind.all_parameters]
    lines += [f"{aim.name}: {aim.meaning}" for aim in kind.aims]
    assert [words for words in lines if words not in shown] == []


def test_what_this_host_lacks_is_told_with_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Refusal("the kernel has no such module", "modprobe it")
    kind = replace(FAULTS["partition"], lacks=lambda _step: lacking)
    monkeypatch.setattr(FAULTS, "values", lambda: [kind])
    shown = " ".join(listed("faults").stdout.split())
    assert "not here: the kernel has no such module (modprobe it)" in shown
