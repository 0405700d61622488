"""Change the code in one place and see which test fails: `python -m tests.mutations FOLDER 1 25`.

Each seed is one mutation. It is made in a copy of the checkout in FOLDER, and the tests that run
the changed lines are run until one fails. Which ones these are is measured once for FOLDER.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planning", "kinds", "applying", "service")
FOLDERS = ("unit", "contract", "golden", "property", "integration")
"""The folders of tests that are run, the fastest first."""
MOST_SECONDS = 420
_COVERAGE = "mutations.coverage"
_OUTPUT = "mutations.txt"
_PYTEST = ("-m", "pytest", "-n", "0", "-p", "no:cacheprovider")

_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
    ast.Lt: ast.LtE,
    ast.Gt: ast.GtE,
}
_FLIPPED |= {other: one for one, other in _FLIPPED.items()}
_SIMPLE = (ast.Expr, ast.AugAssign, ast.Assign)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Site(NamedTuple):
    """One change of a text: the bytes from `start` to `end` become `new`.

    `lines` are those whose tests are run: from the start of the statement to the end of the change.
    """

    rule: str
    lines: range
    start: int
    end: int
    new: str


class Mutation(NamedTuple):
    """A change of one module. `path` is relative to the checkout."""

    path: str
    site: Site
    text: str
    old: str

    def __str__(self) -> str:
        old, new = (re.sub(r"\s+", " ", part) for part in (self.old, self.site.new))
        return f"{self.path}:{self.site.lines.start} {self.site.rule}: {old} -> {new}"


def sites(text: str) -> list[Site]:
    """Return every change of a module, in the order of the text."""
    found = _Sites(text)
    found.visit(ast.parse(text))
    return sorted(found.sites, key=lambda site: (site.start, site.end, site.rule, site.new))


def changed(text: str, site: Site) -> str:
    """Return the text with the change."""
    data = text.encode()
    return (data[: site.start] + site.new.encode() + data[site.end :]).decode()


def places(root: Path) -> dict[str, list[tuple[str, Site]]]:
    """Return every change of the packages by its rule, with the path of its module."""
    by_rule: defaultdict[str, list[tuple[str, Site]]] = defaultdict(list)
    for path in _modules(root):
        for site in sites(path.read_text(encoding="utf-8")):
            by_rule[site.rule].append((path.relative_to(root).as_posix(), site))
    return by_rule


def mutation(root: Path, by_rule: Mapping[str, Sequence[tuple[str, Site]]], seed: int) -> Mutation:
    """Return the mutation of a seed: first a rule is drawn, then one of its places."""
    dice = random.Random(seed)  # noqa: S311
    path, site = dice.choice(by_rule[dice.choice(sorted(by_rule))])
    text = (root / path).read_text(encoding="utf-8")
    old = text.encode()[site.start : site.end].decode()
    return Mutation(path, site, changed(text, site), old)


def _modules(root: Path) -> list[Path]:
    return sorted(path for name in PACKAGES for path in (root / "reconciler" / name).rglob("*.py"))


class _Sites(ast.NodeVisitor):
    """Collects the changes. Leaves out types, docstrings and texts with spaces: messages."""

    def __init__(self, text: str) -> None:
        self.sites: list[Site] = []
        self._data = text.encode()
        lines = self._data.splitlines(keepends=True)
        self._starts = [0]
        for line in lines:
            self._starts.append(self._starts[-1] + len(line))
        self._first = 1

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self._first = node.lineno
            self._statement(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                self._guards(block)
        super().visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skip: before Python 3.12, what is inside has no places."""

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_all([*node.decorator_list, *node.body])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        defaults = [default for default in node.args.kw_defaults if default is not None]
        self._visit_all([*node.decorator_list, *node.args.defaults, *defaults, *node.body])

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None and ast.unparse(node.annotation) != "TypeAlias":
            self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[index] = _FLIPPED[type(operator)]()
            self._expression("comparison", node, other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._expression("and-or", node, ast.BoolOp(operator, node.values))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._expression("not", node, node.operand)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._expression("guard", node, ast.IfExp(node.test, node.orelse, node.body))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool():
                value: object = not node.value
            case int() | float():
                value = node.value + 1
            case str() if not re.search(r"\s", node.value):
                value = f"{node.value}_"
            case _:
                return
        self._expression("constant", node, ast.Constant(value))

    def _visit_all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.visit(node)

    def _statement(self, node: ast.stmt) -> None:
        """Delete a statement that binds no name, or a guard."""
        is_guard = isinstance(node, ast.If) and _is_guard(node)
        binds = isinstance(node, ast.Assign) and any(
            not isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets
        )
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_guard or (isinstance(node, _SIMPLE) and not binds and not is_text):
            self._add("statement", node, node, "pass")

    def _guards(self, block: Sequence[ast.AST]) -> None:
        """Swap two guards that follow each other."""
        for first, second in itertools.pairwise(block):
            if _is_guard(first) and _is_guard(second):
                (start, middle), (after, end) = self._span(first), self._span(second)
                old = self._data
                new = old[after:end] + old[middle:after] + old[start:middle]
                self._add("guard", first, second, new.decode())

    def _expression(self, rule: str, node: ast.expr, new: ast.expr) -> None:
        self._add(rule, node, node, f"({ast.unparse(ast.fix_missing_locations(new))})")

    def _add(self, rule: str, first: ast.AST, last: ast.AST, new: str) -> None:
        (start, _), (_, end) = self._span(first), self._span(last)
        lines = range(min(self._first, first.lineno), (last.end_lineno or 0) + 1)
        self.sites.append(Site(rule, lines, start, end, new))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset
        return start, self._starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)


def _is_guard(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], _LEAVING)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Measure each test on its own: this module is a plugin of pytest when it measures."""
    measuring = Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)


class Tests:
    """The tests by the lines that they run, read from the coverage of a folder."""

    def __init__(self, folder: Path) -> None:
        self._data = CoverageData(str(folder / _COVERAGE))
        self._data.read()
        output = (folder / _OUTPUT).read_text(encoding="utf-8")
        self._failing = set(_failed(output))

    def of(self, made: Mutation) -> list[list[str]]:
        """Return those of a mutation, or else of its module, in groups, the likely killers first.

        Each group is a run of pytest, because most of the time of a test is its import.
        """
        by_line = self._data.contexts_by_lineno(made.path)
        tests = {test for line in made.site.lines for test in by_line.get(line, ()) if test}
        tests = tests or {test for names in by_line.values() for test in names if test}
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        for test in sorted(tests - self._failing):
            by_file[test.partition("::")[0]].append(test)
        order = sorted(by_file, key=lambda file: _rank(file, len(by_file[file]), made.path))
        groups = [order[:1]]
        groups += [[file for file in order[1:] if _folder(file) == name] for name in FOLDERS]
        return [[test for file in group for test in by_file[file]] for group in groups if group]


def _rank(file: str, tests: int, module: str) -> tuple[int, bool, int, str]:
    subject = Path(module).stem
    return (FOLDERS.index(_folder(file)), subject not in Path(file).stem, -tests, file)


def _folder(file: str) -> str:
    return file.split("/")[1]


def copied(folder: Path) -> None:
    """Copy the checkout, as it is, into a folder. Forget the coverage of another package."""
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    for name in filter(None, names.stdout.decode().split("\0")):
        source, target = ROOT / name, folder / name
        if not source.exists() or (target.exists() and source.read_bytes() == target.read_bytes()):
            continue
        if any(name.startswith(f"reconciler/{package}/") for package in PACKAGES):
            (folder / _OUTPUT).unlink(missing_ok=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def measured(folder: Path) -> Tests:
    """Return the tests of a folder. Run all of them once if that was not done before."""
    if not (folder / _OUTPUT).exists():
        names = ",".join(f"reconciler/{package}" for package in PACKAGES)
        options = [f"--data-file={_COVERAGE}", f"--source={names}", "--rcfile=mutations.ini"]
        (folder / "mutations.ini").write_text("[run]\nrelative_files = true\n", encoding="utf-8")
        paths = [f"tests/{name}" for name in FOLDERS]
        plugin = ("-p", "tests.mutations", "-q")
        _, output = _run(
            folder, ["-m", "coverage", "run", *options, *_PYTEST, *plugin, *paths], limit=None
        )
        (folder / _OUTPUT).write_text(output, encoding="utf-8")
    return Tests(folder)


def _run(folder: Path, command: Sequence[str], *, limit: float | None) -> tuple[int | None, str]:
    """Return the exit code and the output of a command; no code if it was stopped."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    return process.returncode, output


def outcome(folder: Path, made: Mutation, groups: Sequence[Sequence[str]]) -> str:
    """Make the mutation, run tests until one fails, undo it, and return what happened."""
    path = folder / made.path
    original, kept = path.read_bytes(), path.stat()
    path.write_text(made.text, encoding="utf-8")
    try:
        for tests in groups:
            killer = _failure(folder, tests)
            if killer is not None:
                return killer
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    return f"SURVIVED {sum(map(len, groups))} tests"


def _failure(folder: Path, tests: Sequence[str]) -> str | None:
    """Return the test that fails, and what else stops the tests; None if all pass."""
    code, output = _run(folder, [*_PYTEST, "-x", "-v", "--tb=no", *tests], limit=MOST_SECONDS)
    if code == 0:
        return None
    if code is None:
        last = re.findall(r"^tests/\S+", output, re.MULTILINE)
        return f"stopped after {MOST_SECONDS} s in {last[-1] if last else 'no test'}"
    return next(iter(_failed(output)), f"exit code {code}: {output[-300:]}")


def _failed(output: str) -> list[str]:
    return re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the copy and its coverage; is made")
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("last", type=int, help="the last seed")
    parser.add_argument("--tests", nargs="+", help="run these in place of those that are measured")
    options = parser.parse_args()
    folder = options.folder.resolve()
    copied(folder)
    tests = None if options.tests else measured(folder)
    by_rule = places(folder)
    for seed in range(options.first, options.last + 1):
        made = mutation(folder, by_rule, seed)
        chosen = [options.tests] if tests is None else tests.of(made)
        print(f"{seed} | {made} | {outcome(folder, made, chosen)}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
