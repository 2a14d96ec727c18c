"""The page of the museum, docs/museum.md: of each exhibit what runs have found."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from lockcheck import __version__
from lockcheck.config import RunConfig
from lockcheck.durations import duration_words
from lockcheck.files import writing
from lockcheck.nemesis import NO_FAULT
from lockcheck.words import amount
from lockcheck.yours.museum.exhibit import Exhibit
from lockcheck.yours.museum.exhibits import EXHIBITS
from lockcheck.yours.museum.visit import Visit, found_by

HEAD = """# A museum of lock libraries

What published libraries do, each under one condition: `lockcheck museum NAME` shows it. With
`--control` it is the control run, in which nothing is found. `lockcheck run --backend museum:NAME`
runs it with further options: another fault, another seed. `lockcheck museum --all` runs all of
them, and writes this page: what stands here was found by a run. Each library has an environment of
its own, and a client of a few lines in `lockcheck/yours/museum/clients`. One that is not in Python
is built once; where its language or its library is missing, `lockcheck museum` says what brings it.

| | library | what happens | under | it is |
|---|---|---|---|---|
"""

BEGINS = "\n## "
TEXTS = "museum"  # the folder beside the page with the texts for maintainers


def write(path: Path, name: str, visits: Sequence[Visit]) -> None:
    """Puts what they found in the place of what stood there of that exhibit."""
    sections = _sections(path.read_text()) if path.exists() else {}
    lines = [f"- {line}\n" for line in _lines(EXHIBITS[name], visits)]
    if (path.parent / TEXTS / f"{name}.md").exists():
        lines.append(
            f"- New here, as far as is known: [a text for its tracker]({TEXTS}/{name}.md).\n"
        )
    sections[name] = f"{BEGINS}{name}\n\n{''.join(lines)}"
    with writing(path) as out:
        out.write(_page(sections).encode())


def _page(sections: Mapping[str, str]) -> str:
    known = {each: EXHIBITS[each] for each in EXHIBITS if each in sections}
    rows = (
        f"| [{each}](#{each}) | {exhibit.library} | {exhibit.shows} | {under(exhibit)} "
        f"| {exhibit.whose} |\n"
        for each, exhibit in known.items()
    )
    return HEAD + "".join(rows) + "".join(sections[each] for each in known)


def _sections(text: str) -> dict[str, str]:
    _, *sections = text.split(BEGINS)
    return {each.partition("\n")[0]: BEGINS + each for each in sections}


def _lines(exhibit: Exhibit, visits: Sequence[Visit]) -> Iterator[str]:
    shown, controls = ([v for v in visits if v.control is which] for which in (False, True))
    yield f"**{exhibit.library}**: {exhibit.shows}."
    yield f"Condition: {_condition(exhibit)}."
    yield f"Found in {_share(shown)}: {found_by(shown)}; to blame: {_blamed(exhibit)}."
    code = " ".join(exhibit.line.split())
    yield f"Cause: `{exhibit.place()}`: `{code}`. {exhibit.why[0].upper()}{exhibit.why[1:]}."
    yield f"It is {exhibit.whose}." + (f" Its maintainers: {exhibit.word}." if exhibit.word else "")
    acquired = amount(sum(visit.acquisitions for visit in controls), "acquisition")
    yield f"Control: {exhibit.controls}: `ok` in {_share(controls)}, {acquired}."
    by = f"lockcheck {__version__}, Python {platform.python_version()}"
    yield f"Last seen on {date.today():%d %B %Y}, by {by}."


def _share(visits: Sequence[Visit]) -> str:
    return f"{sum(not visit.wrong() for visit in visits)} of {amount(len(visits), 'run')}"


def _blamed(exhibit: Exhibit) -> str:
    return "the lock" if exhibit.blame == "service" else f"the {exhibit.blame}"


def under(exhibit: Exhibit) -> str:
    """The condition in two or three words."""
    config = exhibit.config(control=False, seed=0, out="results")
    faults = [_fault(*each.split(":")) for each in _faults(config)]
    kept = {"renews", "session"}.intersection(config.promises)
    if config.work_ms[1] > config.ttl_ms and not kept and not faults:
        return "work beyond the lease"
    return " and ".join(faults) or "no fault"


def _fault(name: str, aim: str = "") -> str:
    called = {"clock": "wrong clock", "disk": "full disk", "slow": "slow link"}.get(name, name)
    whose = aim.partition(",")[0]
    return f"a {called}" + (f" of its {whose}" if whose and "=" not in whose else "")


def _faults(config: RunConfig) -> list[str]:
    return [each for each in config.nemesis if each != NO_FAULT]


def _condition(exhibit: Exhibit) -> str:
    config = exhibit.config(control=False, seed=0, out="results")
    source, called = str(exhibit.settings["client"]).split(":")
    debs = [f"{name} {version}" for name, version in exhibit.debs.items() if version]
    words = [f"`{', '.join(each)}`" for each in (config.requirements, debs) if each]
    words += [f"`{source.partition('/')[2]}:{called}`"]
    words += [f"`--nemesis {each}`" for each in _faults(config)] or ["no fault"]
    words += [f"a lease of {duration_words(config.ttl_ms)}"]
    words += [f"work of {duration_words(config.think_ms)} under the lock"]
    words += [f"`--servers {config.servers}`"] if config.servers else []
    words += [f"`--promises {','.join(config.promises)}`"] if config.promises else []
    return ", ".join(words)
