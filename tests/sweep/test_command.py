"""`lockcheck sweep` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lockcheck.matrix.folder import campaigns_in
from tests.running import lockcheck, need


def test_what_would_run_is_listed(tmp_path: Path) -> None:
    listed = lockcheck(
        "sweep", "--backend", "redis-fenced", "--guard", "fence", "--ttl", "1s..4s",
        "--pause", "2s", "--steps", "2x3", "--seeds", "4", "--list", cwd=tmp_path,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "redis-fenced::pause:holder,for=2s::fence::ttl=1s",
        "redis-fenced::kill:holder,restart=1s::fence::ttl=1s",
        "redis-fenced::pause:holder,for=2s::fence::ttl=4s",
        "redis-fenced::kill:holder,restart=1s::fence::ttl=4s",
        "10",
    ]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--backend", "redis", "--ttl", "8s..1s"], "begins with the longer duration"),
        (["--backend", "redis", "--pause", "0s..1s"], "too short"),
        (["--backend", "redis", "--steps", "many"], "is no grid"),
        (["--backend", "redis", "--ttl", "100ms"], "at least 200ms"),
        (["--backend", "redos"], "redos"),
        ([], "Missing option '--backend'"),
    ],
)
def test_what_is_refused(words: list[str], why: str, tmp_path: Path) -> None:
    refused = lockcheck("sweep", *words, "--list", cwd=tmp_path)
    assert refused.returncode == 2
    assert why in refused.stderr


@pytest.mark.cluster
@pytest.mark.long
def test_a_pause_beyond_the_lease_breaks_and_one_within_it_does_not(tmp_path: Path) -> None:
    need("local")
    words = [
        "sweep", "--backend", "redis", "--runtime", "local", "--ttl", "0.5s..4s",
        "--pause", "1.5s", "--steps", "2x1", "--seeds", "1",
    ]  # fmt: skip
    ran = lockcheck(*words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    [folder] = campaigns_in(tmp_path / "results")
    found = json.loads((folder.path / "sweep.json").read_text())
    broke = {field["ttl_ms"]: field["broke"] for field in found["fields"]}
    assert broke == {500: 1, 4000: 0}
    for crash in found["after_a_crash"]:
        assert crash["crashes"]
        assert crash["longest_ms"] <= crash["ttl_ms"] + 1500
    assert "no run broke from a TTL of 4 s on" in ran.stdout
    assert found["answer"] in (folder.path / "sweep.html").read_text()
