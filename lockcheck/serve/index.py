"""All runs and campaigns below a folder, kept in memory: read once, then only what changed.

A file that is written anew changes the time of its folder: the files of `files.writing` take their
name when they are complete. So a look costs one `stat` a folder.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from lockcheck.matrix.folder import PLAN, RESULT, RESULTS, TRIALS
from lockcheck.nodes import NODES_FOLDER
from lockcheck.runs.store import RECORD_FILE
from lockcheck.serve.entries import (
    OF_A_CAMPAIGN,
    OF_A_RUN,
    RANKS,
    Entry,
    Kind,
    Status,
    campaign_entry,
    run_entry,
)
from lockcheck.words import amount

KNOWN_FILES = {*OF_A_RUN, *OF_A_CAMPAIGN, RECORD_FILE, PLAN, RESULT, RESULTS}
LOOK_EVERY_S = 1.0
UNSURE_S = 2.0  # a folder that changed just now may change again within the same tick of its time
GROWING_S = 60.0  # a run whose files changed that recently is under way
GIVEN_UP_S = 3600.0  # one whose files have not for so long is looked at when its folder changes
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a folder had in it."""

    mtime_ns: int
    names: frozenset[str]  # of files that matter
    subfolders: tuple[str, ...]
    entry: Entry | None
    unsure: bool  # it is read again, whatever its time says


@dataclass(frozen=True)
class Snapshot:
    entries: tuple[Entry, ...]

    @cached_property
    def by_parts(self) -> Mapping[tuple[str, ...], Entry]:
        return {entry.parts: entry for entry in self.entries}

    @cached_property
    def backends(self) -> list[str]:
        return sorted({backend for entry in self.entries for backend in entry.backends})

    @cached_property
    def faults(self) -> list[str]:
        return sorted({fault for entry in self.entries for fault in entry.faults})

    @cached_property
    def searchable(self) -> list[tuple[Entry, str]]:
        """With the text that words are looked for in."""
        return [(entry, "\n".join(entry.texts).lower()) for entry in self.entries]


@dataclass(slots=True)
class _Look:
    at: float
    seen: dict[tuple[str, ...], _Seen] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)


class Index:
    """Safe to be asked from several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._asking = threading.Lock()
        self._seen: dict[tuple[str, ...], _Seen] = {}
        self._snapshot = Snapshot(())
        self._looked = float("-inf")

    def snapshot(self) -> Snapshot:
        """At most LOOK_EVERY_S old."""
        with self._asking:
            if time.monotonic() - self._looked >= LOOK_EVERY_S:
                look = _Look(time.time())
                self._visit(str(self.root), (), look)
                self._seen = look.seen
                entries = tuple(look.entries)
                if entries != self._snapshot.entries:
                    self._snapshot = Snapshot(entries)
                self._looked = time.monotonic()
            return self._snapshot

    def _visit(self, path: str, parts: tuple[str, ...], look: _Look) -> list[_Seen]:
        """Returns what was seen there and below."""
        try:
            mtime_ns = os.stat(path, follow_symlinks=False).st_mtime_ns  # noqa: PTH116 - quick
            seen = self._seen.get(parts)
            if seen is None or seen.unsure or seen.mtime_ns != mtime_ns:
                seen = self._read(path, parts, mtime_ns, look.at)
        except OSError:  # it is gone, or another user's
            return []
        look.seen[parts] = seen
        every = [seen]
        for name in seen.subfolders:
            every += self._visit(f"{path}/{name}", (*parts, name), look)
        if seen.entry is not None:
            look.entries.append(_as_of_now(seen.entry, every, look.at))
        return every

    def _read(self, path: str, parts: tuple[str, ...], mtime_ns: int, now: float) -> _Seen:
        files, folders = _content(path)
        unsure = now - mtime_ns / 1e9 < UNSURE_S
        entry = None
        if RECORD_FILE in files:
            entry, folders = run_entry(self.root, parts, files), []
            if entry.open:
                quiet_s = now - _last_change(path)
                unsure |= quiet_s < GIVEN_UP_S
                if quiet_s < GROWING_S:
                    entry = replace(entry, status=Status.RUNNING, about="")
        elif PLAN in files:
            entry = campaign_entry(self.root, parts, files)
            folders = [name for name in folders if name == TRIALS]
        if len(parts) >= DEEPEST:
            folders = []
        return _Seen(mtime_ns, frozenset(files & KNOWN_FILES), tuple(folders), entry, unsure)


def _content(path: str) -> tuple[set[str], list[str]]:
    """The names of files, and of folders; links count as neither."""
    files, folders = set(), []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    folders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                files.add(entry.name)
    return files, sorted(folders)


def _last_change(path: str) -> float:
    """In seconds since the epoch: of the run's folder and what its nodes write."""
    return max(_times(path), default=0.0)


def _times(path: str) -> Iterator[float]:
    places = [path, f"{path}/{NODES_FOLDER}"]
    with suppress(OSError), os.scandir(places[1]) as nodes:
        places += [node.path for node in nodes if node.is_dir(follow_symlinks=False)]
    for place in places:
        with suppress(OSError), os.scandir(place) as entries:
            yield from (entry.stat(follow_symlinks=False).st_mtime for entry in entries)


def _as_of_now(entry: Entry, inside: list[_Seen], now: float) -> Entry:
    """Of a campaign that is not finished, how far it has come; of a search, what it found."""
    if entry.kind is not Kind.CAMPAIGN or not entry.open:
        return entry
    done = sum(RESULT in seen.names for seen in inside)
    last = max(seen.mtime_ns for seen in inside) / 1e9
    runs = [seen.entry.status for seen in inside if seen.entry and seen.entry is not entry]
    alive = Status.RUNNING in runs or now - last < GROWING_S
    if entry.about:
        status, about = Status.CUT_SHORT, f"{done:,} {entry.about}"
    else:
        worst = min(runs, key=RANKS.__getitem__, default=Status.CUT_SHORT)
        status, about = worst, f"{amount(done, 'run')} so far"
    return replace(entry, status=Status.RUNNING if alive else status, about=about)
