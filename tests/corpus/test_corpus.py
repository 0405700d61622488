"""Broken files as people write them: each is reported well, and none makes the tool fail."""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

from reconciler.diagnostics import Diagnostic, InvalidConfiguration, Level
from reconciler.files.loading import LoadOptions, load, load_all
from reconciler.render.diagnostics import diagnostics_as_text
from tests.conftest import ROOT
from tests.corpus.cases import BASE, CASES, Case
from tests.support.cli import reconciler, reconciler_process
from tests.support.diagnostics import assert_sound

FIRST_OF_EACH_THEME = [
    next(cases)
    for theme, cases in groupby(CASES, key=lambda case: case.theme)
    if theme != "generated"
]
[HOSTILE] = [case for case in CASES if case.id == "generated/files"]
"""What could end the process itself."""
ENVIRON = {"EMPTY": ""}


def diagnosed(case: Case, folder: Path) -> tuple[Diagnostic, ...]:
    """Return what `validate` reports on a machine with one variable, an empty one."""
    if case.environment is None:
        return load_all(folder, environ=ENVIRON, strict=case.strict)
    try:
        return load(
            folder,
            environment=case.environment,
            environ=ENVIRON,
            options=LoadOptions(strict=case.strict),
        ).diagnostics
    except InvalidConfiguration as invalid:
        return invalid.diagnostics


def validate_arguments(case: Case, folder: Path) -> list[str | Path]:
    arguments: list[str | Path] = ["validate", "-C", case.written(folder)]
    arguments += ["-e", case.environment] if case.environment is not None else []
    return [*arguments, "--strict"] if case.strict else arguments


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_broken_workspace_is_reported_as_expected(
    case: Case, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    diagnostics = diagnosed(case, case.written(tmp_path))
    assert diagnostics, "nothing is wrong with it"
    assert_sound(diagnostics, case.files)
    text = diagnostics_as_text(diagnostics)
    if request.config.getoption("--update-golden"):
        assert "PYTEST_XDIST_WORKER" not in os.environ, "several cases share a file: add -n0"
        case.update(text)
    else:
        assert text == case.expected


def test_x3_every_warning_can_be_ignored_and_nothing_else() -> None:
    schema = json.loads((ROOT / "schemas/workspace.schema.json").read_text(encoding="utf-8"))
    ignorable = schema["properties"]["ignore_warnings"]["items"]["enum"]
    printed = "\n".join(case.expected for case in CASES)
    assert sorted(set(re.findall(r"warning: .*\[([a-z-]+)\]", printed))) == ignorable


@pytest.mark.parametrize("case", FIRST_OF_EACH_THEME, ids=lambda case: case.id)
def test_validate_prints_the_same_and_exits_with_1_on_errors(case: Case, tmp_path: Path) -> None:
    ran = reconciler(*validate_arguments(case, tmp_path), environ={**ENVIRON, "NO_COLOR": "1"})
    failed = any(diagnostic.level is Level.ERROR for diagnostic in diagnosed(case, tmp_path))
    assert ran.code == int(failed), ran.err
    assert ran.out == case.expected


def test_hostile_files_do_not_end_the_process(tmp_path: Path) -> None:
    arguments = validate_arguments(HOSTILE, tmp_path)
    ran = reconciler_process(*arguments, environ={**ENVIRON, "NO_COLOR": "1"})
    assert (ran.code, ran.out) == (1, HOSTILE.expected)


def test_nothing_is_wrong_with_the_base(tmp_path: Path) -> None:
    assert diagnosed(Case("base", "base", BASE), Case("", "", BASE).written(tmp_path)) == ()


def test_no_two_cases_are_alike() -> None:
    counted = Counter((*sorted(case.files.items()), case.links, case.strict) for case in CASES)
    assert [alike for alike, count in counted.items() if count > 1] == []
    # Some file systems ignore case.
    assert len({case.id.casefold() for case in CASES}) == len(CASES)


def test_every_diagnostic_that_files_can_cause_has_a_case() -> None:
    texts = "\n".join(case.expected for case in CASES)
    # It takes 50,000 files: tests/security/test_hostile_files.py lowers the limits.
    small = codes() - {"workspace-too-large"}
    missing = sorted(code for code in small if f"[{code}]" not in texts)
    assert missing == []


def test_no_expected_text_shows_a_secret() -> None:
    assert [case.id for case in CASES if "hunter2" in case.expected] == []


def codes() -> set[str]:
    """Return every code that the sources name in a call of `error` or `warning`."""
    named = set()
    for path in (ROOT / "reconciler/files").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("error", "warning")
                and node.args
                and isinstance(node.args[0], ast.Constant)
            ):
                named.add(str(node.args[0].value))
    assert named, "the sources name codes in another way: adapt this test"
    return named
