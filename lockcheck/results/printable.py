"""Text from outside, made harmless for a terminal: on one line, without control characters."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " if c == "\n" else "?" for c in text)


def lines_of(text: str) -> list[str]:
    """For text of several lines, such as a server's last output; the caller indents them."""
    return [printable(line) for line in text.split("\n")]


def plain(text: str) -> str:
    """As `printable`, for rich to print: nothing in it is markup."""
    from rich.markup import escape

    return escape(printable(text))
