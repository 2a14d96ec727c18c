"""Programs that a host has, or seems to have."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def fake_program(path: Path, says: str, code: int = 0) -> Path:
    path.write_text(f"#!{shutil.which('sh', path=os.defpath)}\necho '{says}'\nexit {code}\n")
    path.chmod(0o755)
    return path
