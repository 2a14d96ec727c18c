"""The package's name on a package index, where `lockcheck` is another tool's; command and module
are called lockcheck."""

from __future__ import annotations

DISTRIBUTION = "dlockcheck"
NAMESAKE = "lockcheck"  # on the index; it brings a module of that name, too


def pip_install(extra: str = "") -> str:
    """The command for a user to type."""
    return f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"pip install {DISTRIBUTION}"


def is_namesake_installed() -> bool:
    """Then its files and ours overwrite each other."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution(NAMESAKE)
    except PackageNotFoundError:
        return False
    return True
