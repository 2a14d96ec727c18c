"""What the address of the list asks for: filters, words, an order, a page. Without a script all of
it is links and a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from lockcheck.serve.entries import RANKS, Entry, Kind, Status
from lockcheck.serve.index import Snapshot

ROWS = 100  # on one page
MOST_FIELDS = 50
_KEYS: dict[str, Callable[[Entry], Any]] = {
    "time": lambda entry: entry.started,
    "name": lambda entry: entry.name,
    "backend": lambda entry: entry.backends,
    "nemesis": lambda entry: entry.nemeses,
    "verdict": lambda entry: RANKS[entry.status],
    "duration": lambda entry: entry.took_s or 0.0,
}
SORTS = {
    "-time": "newest first",
    "time": "oldest first",
    "verdict": "worst verdict first",
    "-duration": "longest first",
    "name": "name",
    "backend": "backend",
    "nemesis": "nemesis",
}


@dataclass(frozen=True, slots=True)
class Query:
    words: str = ""
    kind: str = ""
    verdict: str = ""
    backend: str = ""
    fault: str = ""
    sort: str = "-time"
    page: int = 1

    @classmethod
    def of(cls, text: str) -> Query:
        """Raises ValueError where there are too many fields; what makes no sense is left out."""
        given = dict(parse_qsl(text, errors="replace", max_num_fields=MOST_FIELDS))
        page = given.get("page", "")
        sort = given.get("sort", "")
        return cls(
            words=given.get("words", ""),
            kind=_one_of(Kind, given.get("kind", "")),
            verdict=_one_of(Status, given.get("verdict", "")),
            backend=given.get("backend", ""),
            fault=given.get("fault", ""),
            sort=sort if sort.removeprefix("-") in _KEYS else "-time",
            page=max(1, int(page)) if page.isdecimal() and len(page) < 8 else 1,
        )

    def address(self, **changes: Any) -> str:
        asked, usual = asdict(replace(self, **changes)), asdict(Query())
        fields = {name: value for name, value in asked.items() if value != usual[name]}
        return f"/?{urlencode(fields, errors='replace')}" if fields else "/"

    def sorted_by(self, column: str) -> str:
        """The address of the same list by this column; by the same again, the other way round."""
        first = "-time" if column == "time" else column
        other = first.removeprefix("-") if first.startswith("-") else f"-{first}"
        return self.address(sort=other if self.sort == first else first, page=1)

    def direction(self, column: str) -> str:
        """As `aria-sort` has it."""
        if self.sort.removeprefix("-") != column:
            return "none"
        return "descending" if self.sort.startswith("-") else "ascending"

    def chosen(self, snapshot: Snapshot) -> list[Entry]:
        words = self.words.lower().split()
        found = [
            entry
            for entry, text in snapshot.searchable
            if (not self.verdict or entry.status == self.verdict)
            and (not self.kind or entry.kind == self.kind)
            and (not self.backend or self.backend in entry.backends)
            and (not self.fault or self.fault in entry.faults)
            and all(word in text for word in words)
        ]
        found.sort(key=_KEYS["time"], reverse=True)
        found.sort(key=_KEYS[self.sort.removeprefix("-")], reverse=self.sort.startswith("-"))
        return found


def _one_of(kinds: type[Kind] | type[Status], text: str) -> str:
    return text if text in [str(each) for each in kinds] else ""
