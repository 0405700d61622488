"""Broken files as people write them: each is told well, and none makes the tool fail."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest

from reconciler.config import load, load_all
from reconciler.errors import Diagnostic, InvalidConfiguration, Severity
from reconciler.kinds import all_kinds
from reconciler.render.diagnostics import diagnostics_as_text
from tests.conftest import ROOT
from tests.corpus.cases import BASE, CASES, CORPUS, Case
from tests.support.cli import reconciler
from tests.support.diagnostics import assert_sound

LEAST = 880
KINDS = all_kinds()
AS_PROCESS = [
    *(next(cases) for _, cases in groupby(CASES, key=lambda case: case.theme)),
    *(case for case in CASES[::80] if case.theme != "generated"),
    *(case for case in CASES if case.theme == "generated" and "deep" in case.name),
]
"""The first of each theme, every eightieth, and what could break the process itself."""


def diagnosed(case: Case, folder: Path) -> tuple[Diagnostic, ...]:
    """What `validate` finds, on a machine with no variables but an empty one."""
    environ = {"EMPTY": ""}
    if case.environment is None:
        return load_all(folder, kinds=KINDS, environ=environ, strict=case.strict)
    try:
        return load(
            folder, kinds=KINDS, environment=case.environment, environ=environ, strict=case.strict
        ).diagnostics
    except InvalidConfiguration as invalid:
        return invalid.diagnostics


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_broken_workspace_is_told_as_expected(
    case: Case, tmp_path: Path, golden: Callable[[Path, str], None]
) -> None:
    found = diagnosed(case, case.written(tmp_path))
    assert found, "nothing is wrong with it"
    assert_sound(found, case.files)
    golden(case.golden, diagnostics_as_text(found))


@pytest.mark.parametrize("case", AS_PROCESS, ids=lambda case: case.id)
def test_the_command_line_ends_well_and_says_the_same(case: Case, tmp_path: Path) -> None:
    arguments = ["validate", "-C", case.written(tmp_path)]
    arguments += ["-e", case.environment] if case.environment is not None else []
    arguments += ["--strict"] if case.strict else []
    ran = reconciler(*arguments, environ={"EMPTY": "", "NO_COLOR": "1"})
    failed = any(each.severity is Severity.ERROR for each in diagnosed(case, tmp_path))
    assert ran.code == int(failed), ran.err
    assert ran.out == case.golden.read_text(encoding="utf-8")


def test_nothing_is_wrong_with_the_base(tmp_path: Path) -> None:
    assert diagnosed(Case("base", "base", BASE), Case("", "", BASE).written(tmp_path)) == ()


def test_there_are_enough_cases_and_no_two_are_alike() -> None:
    assert len(CASES) >= LEAST
    counted = Counter((*sorted(case.files.items()), case.links, case.strict) for case in CASES)
    assert [alike for alike, count in counted.items() if count > 1] == []
    # Some file systems do not tell capitals apart.
    assert len({case.id.casefold() for case in CASES}) == len(CASES)


def test_every_expected_text_belongs_to_a_case() -> None:
    assert {path for path in CORPUS.rglob("*.txt") if path.parent.parent == CORPUS} == {
        case.golden for case in CASES
    }


def test_every_diagnostic_that_files_can_cause_has_a_case() -> None:
    told = "\n".join(case.golden.read_text(encoding="utf-8") for case in CASES)
    missing = sorted(code for code in codes() if f"[{code}]" not in told)
    assert missing == []


def test_no_expected_text_shows_a_secret() -> None:
    assert [case.id for case in CASES if "hunter2" in case.golden.read_text("utf-8")] == []


def codes() -> set[str]:
    """Every code that the sources name in a call of `error` or `warning`."""
    found = set()
    for path in (ROOT / "reconciler/config").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("error", "warning")
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                found.add(str(node.args[0].value))
    assert len(found) > 30
    return found
