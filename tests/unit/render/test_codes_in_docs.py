"""The codes of notes and of policy violations are documented."""

from __future__ import annotations

import ast

from tests.conftest import ROOT

_ARGUMENTS = {"Note": 0, "Refusal": 0, "_refusal": 1}
"""Which argument has the code."""


def codes_of_plans() -> set[str]:
    """Return the texts that are codes of every note and refusal that is written out."""
    codes = {"kept", "declared-inside", "unmanaged-inside", "not-selected"}
    for folder in ("planning", "commands"):
        for path in (ROOT / "reconciler" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    at = _ARGUMENTS.get(node.func.id)
                    parts = ast.walk(node.args[at]) if at is not None and node.args else ()
                    values = (part.value for part in parts if isinstance(part, ast.Constant))
                    codes.update(value for value in values if isinstance(value, str))
    return codes


def test_every_code_is_documented() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    section = text.partition("## Codes of notes")[2].partition("\n## ")[0]
    assert {code for code in codes_of_plans() if f"`{code}`" not in section} == set()
