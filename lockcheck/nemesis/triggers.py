"""What a fault waits for: its schedule, or a moment of a client that the history shows."""

from __future__ import annotations

from enum import StrEnum


class Trigger(StrEnum):
    SCHEDULE = "schedule"
    ACQUIRE = "acquire"
    WRITE = "write"
    RELEASE = "release"
    EXPIRY = "expiry"

    @property
    def words(self) -> str:
        return _WORDS[self]

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_WORDS = {
    Trigger.SCHEDULE: "on schedule",
    Trigger.ACQUIRE: "on acquire",
    Trigger.WRITE: "on write",
    Trigger.RELEASE: "before release",
    Trigger.EXPIRY: "near expiry",
}
_MEANINGS = {
    Trigger.SCHEDULE: "at a moment chosen by the seed",
    Trigger.ACQUIRE: "a client has just been granted the lock",
    Trigger.WRITE: "a client is about to write: its lease is checked, the write not sent",
    Trigger.RELEASE: "a client has done its work, and has not sent the release",
    Trigger.EXPIRY: "most of a client's lease is over since it was granted or renewed",
}
