"""Programs that a host has, or seems to have; or that lockcheck has fetched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lockcheck.cache import filling


def fake_program(path: Path, says: str, code: int = 0) -> Path:
    path.write_text(f"#!{shutil.which('sh', path=os.defpath)}\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def as_fetched(folder: Path) -> None:
    """Makes what a test has put into a folder of the cache count as fetched."""
    apart = folder.rename(folder.with_name("apart"))
    with filling(folder) as into:
        shutil.copytree(apart, into, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(apart)
