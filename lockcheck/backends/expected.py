"""The verdicts expected of a lock: `lockcheck list` shows them, the nightly table checks them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

LIMIT = "--time-limit"
SHORT = (LIMIT, "10s")  # enough for most of what is expected
GOES_ON = "--no-stop-on-violation"


@dataclass(frozen=True, slots=True)
class Expected:
    """The result of one command, for every seed. `options`: beside the lock, the faults and the
    guard; `findings`: codes of checks that find something."""

    nemesis: str
    verdict: str
    options: tuple[str, ...] = ()
    _: KW_ONLY
    guard: str = "none"
    findings: tuple[str, ...] = ()
    blame: str = ""  # of each finding: "service", "holder", "client"

    def words(self) -> str:
        """As in "pause behind fence"; without the time limit."""
        options = [*without_limit(self.options)]
        if GOES_ON in options:
            options.remove(GOES_ON)
        guard = f" behind {self.guard}" if self.guard != "none" else ""
        return self.nemesis + guard + (f" with {' '.join(options)}" if options else "")


def unharmed(*nemeses: str) -> tuple[Expected, ...]:
    """Under each of these faults nothing is found."""
    return tuple(Expected(nemesis, "ok", SHORT) for nemesis in nemeses)


def forgotten(nemesis: str, options: tuple[str, ...]) -> Expected:
    """The servers forget a grant and let another client in."""
    return Expected(nemesis, "violation", options, findings=("overlap",), blame="service")


def without_limit(options: tuple[str, ...]) -> tuple[str, ...]:
    """The options without the time limit."""
    if LIMIT not in options:
        return options
    at = options.index(LIMIT)
    return (*options[:at], *options[at + 2 :])
