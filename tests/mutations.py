"""Change the code in one place and see which test fails: `python -m tests.mutations FOLDER 1 25`.

Each seed is one mutation. It is made in a copy of the checkout in FOLDER, and the tests that run
the changed lines are run until one fails. Which ones these are is measured once for FOLDER.
`--place FILE` makes the mutations that lines of an earlier output describe.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("planning", "kinds", "applying", "service")
FOLDERS = ("unit", "contract", "golden", "property", "integration", "model")
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
    """One change of a module: the bytes from `start` to `end`, which are `old`, become `new`.

    `path` is relative to the checkout. `lines` are those whose tests are run: from the start of the
    statement to the end of the change.
    """

    path: str
    rule: str
    lines: range
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.lines.start} {self.change}"

    @property
    def change(self) -> str:
        """Return the rule and both texts in one line."""
        old, new = (re.sub(r"\s+", " ", part) for part in (self.old, self.new))
        return f"{self.rule}: {old} -> {new}"


def sites(text: str, path: str = "") -> list[Site]:
    """Return every change of a module, in the order of the text."""
    found = _Sites(text, path)
    found.visit(ast.parse(text))
    return sorted(found.sites, key=lambda site: (site.start, site.end, site.rule, site.new))


def changed(text: str, site: Site) -> str:
    """Return the text with the change."""
    data = text.encode()
    return (data[: site.start] + site.new.encode() + data[site.end :]).decode()


def places(root: Path) -> dict[str, list[Site]]:
    """Return every change of the packages by its rule."""
    by_rule: defaultdict[str, list[Site]] = defaultdict(list)
    modules = (path for name in PACKAGES for path in root.glob(f"reconciler/{name}/**/*.py"))
    for path in sorted(modules):
        for site in sites(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()):
            by_rule[site.rule].append(site)
    return by_rule


def drawn(by_rule: Mapping[str, Sequence[Site]], seed: int) -> Site:
    """Return the mutation of a seed: first a rule is drawn, then one of its places."""
    dice = random.Random(seed)  # noqa: S311
    return dice.choice(by_rule[dice.choice(sorted(by_rule))])


def described(by_rule: Mapping[str, Sequence[Site]], line: str) -> Site | None:
    """Return the mutation with the rule and the texts of a printed one, None if they are gone.

    It is that of the same module nearest to its line, or the only one of all modules.
    """
    match = re.match(r"\d+ \| (\S+?):(\d+) (.*)", line)
    if match is None:
        raise ValueError(f"not a printed mutation: {line}")
    path, number, rest = match[1], int(match[2]), match[3]
    sites_of_rule = by_rule.get(rest.partition(":")[0], ())
    equal = [site for site in sites_of_rule if rest.startswith(f"{site.change} | ")]
    near = [site for site in equal if site.path == path] or (equal if len(equal) == 1 else [])
    return min(near, key=lambda site: abs(site.lines.start - number), default=None)


class _Sites(ast.NodeVisitor):
    """Collects the changes. Leaves out types, docstrings and texts with spaces: messages."""

    def __init__(self, text: str, path: str) -> None:
        self.sites: list[Site] = []
        self._path = path
        self._data = text.encode()
        lines = self._data.splitlines(keepends=True)
        self._starts = [0, *itertools.accumulate(map(len, lines))]
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
        node.bases, node.keywords = [], []
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        node.returns = None
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_arg(self, node: ast.arg) -> None:
        """Skip the type of a parameter."""

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
        old = self._data[start:end].decode()
        self.sites.append(Site(self._path, rule, lines, start, end, old, new))

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

    def of(self, made: Site) -> list[list[str]]:
        """Return those of a mutation, or else of its module, in groups, the likely killers first.

        Each group is a run of pytest, because most of the time of a test is its import.
        """
        by_line = self._data.contexts_by_lineno(made.path)
        tests = {test for line in made.lines for test in by_line.get(line, ()) if test}
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


def outcome(folder: Path, made: Site, groups: Sequence[Sequence[str]]) -> str:
    """Make the mutation, run tests until one fails, undo it, and return what happened."""
    path = folder / made.path
    original, kept = path.read_bytes(), path.stat()
    path.write_text(changed(original.decode(), made), encoding="utf-8")
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
    parser.add_argument("seeds", nargs="*", type=int, help="the first and the last seed")
    parser.add_argument("--place", type=Path, help="a file of printed lines, in place of seeds")
    parser.add_argument("--tests", nargs="+", help="run these in place of those that are measured")
    options = parser.parse_args()
    folder = options.folder.resolve()
    copied(folder)
    tests = None if options.tests else measured(folder)
    by_rule = places(folder)
    if options.place:
        lines = options.place.read_text(encoding="utf-8").splitlines()
        chosen = [(line.partition(" | ")[0], described(by_rule, line)) for line in lines]
    else:
        first, last = options.seeds
        chosen = [(str(seed), drawn(by_rule, seed)) for seed in range(first, last + 1)]
    for seed, site in chosen:
        line = f"{seed} | gone"
        if site is not None:
            groups = [options.tests] if tests is None else tests.of(site)
            line = f"{seed} | {site} | {outcome(folder, site, groups)}"
        print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
