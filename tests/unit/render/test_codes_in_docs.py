"""The codes of notes, consequences and policy violations are documented and explained."""

from __future__ import annotations

import ast

from reconciler.commands.explain import explain
from reconciler.model import plan, settings
from reconciler.planning import notes
from tests.conftest import ROOT

_ARGUMENTS = {"Note": 0, "Refusal": 0, "_refusal": 1, "_refuse": 1, "Consequence": 0, "warn": 0}
"""Which argument has the code."""
_CONSTANTS = {**vars(plan), **vars(settings), **vars(notes)}


def codes_of_plans() -> set[str]:
    """Return the codes of every note, refusal and consequence that is written out."""
    codes = {"kept", "declared-inside", "unmanaged-inside", "not-selected"}
    for folder in ("planning", "commands", "kinds"):
        for path in (ROOT / "reconciler" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    called = getattr(node.func, "id", getattr(node.func, "attr", ""))
                    at = _ARGUMENTS.get(called)
                    parts = [*ast.walk(node.args[at])] if at is not None and node.args else []
                    values = [getattr(part, "value", None) for part in parts]
                    values += [_CONSTANTS.get(getattr(part, "id", "")) for part in parts]
                    codes.update(value for value in values if isinstance(value, str))
    return codes


def test_every_code_is_documented_and_explained() -> None:
    codes = codes_of_plans()
    assert codes >= {"ambiguous", "unresolved", "possible-duplicate", "stays-paused", "sends-again"}
    pages = [(ROOT / "docs" / name).read_text() for name in ("glossary.md", "consequences.md")]
    assert {code for code in codes if all(f"`{code}`" not in page for page in pages)} == set()
    assert {code for code in codes if not explain(code)[0].text} == set()
