"""How pages are made: from templates, with a policy by which a browser loads nothing, and runs and
applies only the scripts and styles that were written for them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import jinja2


def environment(templates: Path, styles: Iterable[Path], script: str = "") -> jinja2.Environment:
    """With `style`, `script` and `policy` for the templates. What is filled in is escaped."""
    style = "\n".join(path.read_text("utf-8") for path in styles)
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        script=script,
        style=style,
        policy=f"default-src 'none'; {scripts}style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'",
    )
    return made


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
