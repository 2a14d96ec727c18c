"""Are the tests of the checker any good? Breaks it in small ways, and shows what nobody notices.

    python -m tests.tools.mutation                      all of them: hours
    python -m tests.tools.mutation order.py stuck.py    these, by their names in lockcheck/checker

Each mutant is the code with one small mistake, in a copy. What survives and is explained in
`mutants_that_survive.md` counts as explained: it makes no difference, or only to the wording.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx  # noqa: F401 - what is imported here, no forked child has to import
import numpy  # noqa: F401
import pytest
import redis  # noqa: F401
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).parents[2]
CHECKER = Path("lockcheck/checker")
TESTS = (Path("tests/checker"), Path("tests/results"))
EXPLAINED = Path(__file__).with_name("mutants_that_survive.md")
MOST_CPU_S = 20  # an endless loop was noticed
MOST_CPU_S_OF_ENGINES = 240
BY_ALL = ("test_judge.py", "test_overlap.py", "test_mutations.py")
BY_CHECKS = ("test_screens.py", "test_anomalies.py", "test_story.py")  # beside their own
BY = {  # which tests are about a file, where its name does not tell
    "outages.py": ("test_effects.py", "test_deadlock.py", "test_unfair.py", "test_silent_loss.py"),
    "blame.py": (
        "test_effects.py",
        "test_blame.py",
        "test_stale_write.py",
        "test_lost_update.py",
        "test_releases.py",
    ),
    "check.py": ("test_judge.py", "test_lost_update.py", "test_stale_write.py"),
    "judging.py": ("test_judge.py", "test_screens.py", "test_not_linearizable.py"),
    "order.py": ("test_order.py", "test_blame.py", "test_unlocked_section.py"),
    "overlap.py": ("test_overlap.py", "test_blame.py", "test_order.py"),
    "releases.py": ("test_releases.py", "test_foreign_release.py"),
    "rivals.py": ("test_order.py", "test_overlap.py", "test_revived.py", "test_silent_loss.py"),
    "soundness.py": ("test_effects.py", "test_judge.py", "test_soundness.py"),
    "stalls.py": ("test_effects.py", "test_blame.py", "test_stalls.py", "test_stuck.py"),
    "definitions.py": ("test_not_linearizable.py",),
    "examined.py": ("test_not_linearizable.py",),
    "forgiven.py": ("test_not_linearizable.py",),
    "modelling.py": ("test_not_linearizable.py",),
    "promises.py": ("test_not_linearizable.py",),
    "versions.py": ("test_lost_update.py",),
    "writes.py": ("test_lost_update.py", "test_stale_write.py"),
    "pieces.py": ("test_zones.py",),
    "written.py": ("test_zones.py",),
    "zones.py": ("test_zones.py",),
}
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
COUNTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
CALLED = {"min": "max", "max": "min", "any": "all", "all": "any"}
SIMPLE = ast.Name | ast.Call | ast.Attribute


@dataclass(frozen=True)
class Mutant:
    path: Path
    line: int
    before: str
    after: str
    source: str

    within: str  # the text of its line, which tells one constant from another

    def __str__(self) -> str:
        """Without the number of its line, which moves: it is how one is explained."""
        where = f" in `{self.within}`" if self.before.isdigit() else ""
        return f"`{self.path.relative_to(CHECKER)}`: `{self.before}` -> `{self.after}`{where}"


def mutants(path: Path) -> Iterator[Mutant]:
    source = (ROOT / path).read_text()
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node, changed in _changes(ast.parse(source)):
        first = starts[node.lineno - 1] + node.col_offset
        last = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before, after = (" ".join(ast.unparse(part).split()) for part in (node, changed))
        text = ast.unparse(changed)
        text = text if isinstance(changed, ast.stmt) else f"({text})"
        told = source.encode()[:first] + text.encode() + source.encode()[last:]
        within = lines[node.lineno - 1].decode().strip()
        yield Mutant(path, node.lineno, before, after, told.decode(), within)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "bases"}:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.expr | ast.stmt):
                yield from ((part, changed) for changed in _changed(part))
                if name in {"test", "ifs"} and isinstance(part, SIMPLE):
                    yield part, ast.UnaryOp(ast.Not(), part)
            if isinstance(part, ast.AST) and not isinstance(part, ast.JoinedStr):
                yield from _changes(part)


def _changed(node: ast.expr | ast.stmt) -> Iterator[ast.expr | ast.stmt]:
    match node:
        case ast.Compare(left, ops, parts):
            for at, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:at], COMPARED[type(op)](), *ops[at + 1 :]], parts)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in COUNTED:
            yield ast.BinOp(left, COUNTED[type(op)](), right)
        case ast.Constant(bool(value) | int(value)):
            yield ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.Call(ast.Name(name), arguments, keywords) if name in CALLED:
            yield ast.Call(ast.Name(CALLED[name]), arguments, keywords)
        case ast.Return(ast.expr() as value) if not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign() | ast.Expr(ast.Call() | ast.Yield() | ast.YieldFrom()):
            yield ast.Pass()


def survives(copy: Path, mutant: Mutant) -> bool:
    path = copy / mutant.path
    original = path.read_text()
    path.write_text(mutant.source)
    # Two mutants of one second and one size look the same to the cache of bytecode.
    Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
    sys.dont_write_bytecode = True
    try:
        return passes(copy, mutant.path)
    finally:
        sys.dont_write_bytecode = False
        path.write_text(original)


def passes(copy: Path, path: Path) -> bool:
    """First what is about the file, and only then what is about much else."""
    if "linearizability" in path.parts:
        return _passes(copy, BY.get(path.name, ["linearizability", "test_not_linearizable.py"]))
    about = BY.get(path.name, (f"test_{path.stem}.py",))
    more = {*BY_ALL, *(BY_CHECKS if "judges" in path.parts else ())}
    return _passes(copy, about) and _passes(copy, more.difference(about))


def _passes(copy: Path, names: Iterable[str]) -> bool:
    found = (path for name in sorted(names) for room in TESTS for path in (copy / room).rglob(name))
    there = [str(path.relative_to(copy)) for path in found]
    child = os.fork()
    if child == 0:
        engines = any("linearizability" in path for path in there)
        most_s = MOST_CPU_S_OF_ENGINES if engines else MOST_CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (most_s, most_s))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        os.chdir(copy)
        sys.path[:] = [str(copy), *(entry for entry in sys.path if entry not in {"", str(ROOT)})]
        sys.modules.pop("tests", None)
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # it takes longer than most tests
        options = ["-xq", "-p", "no:cacheprovider", "-p", "_hypothesis_pytestplugin"]
        options += ["--hypothesis-profile=mutation"]
        os._exit(pytest.main([*options, *there]))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main(names: list[str]) -> int:
    few = settings(max_examples=20, derandomize=True, database=None, deadline=None)
    settings.register_profile("mutation", few, suppress_health_check=list(HealthCheck))
    explained = EXPLAINED.read_text() if EXPLAINED.exists() else ""
    new = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in ("lockcheck", "tests"):
            shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", copy)
        for path in _paths(names):
            if not passes(copy, path):
                sys.exit(f"{path}: its tests fail without a mistake, too")
            every = list(mutants(path))
            left = [mutant for mutant in every if survives(copy, mutant)]
            unknown = [mutant for mutant in left if str(mutant) not in explained]
            print(f"{path}: {len(every)} mutants, {len(left)} survive, {len(unknown)} unexplained")
            for mutant in unknown:
                print(f"  line {mutant.line}: {mutant}", flush=True)
            new += len(unknown)
    return 1 if new else 0


def _paths(names: list[str]) -> list[Path]:
    every = sorted(path.relative_to(ROOT) for path in (ROOT / CHECKER).glob("**/*.py"))
    return [path for path in every if not names or path.name in names]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
