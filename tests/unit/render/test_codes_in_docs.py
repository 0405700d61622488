"""The codes of notes and of policy violations are documented."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.conftest import ROOT

_FOLDERS = ("planning", "commands", "workspace")
_OF_STATUS = "status.py"
_INSIDE = {"kept", "declared-inside", "unmanaged-inside", "not-selected"}


def _codes() -> Iterator[str]:
    """Yield the first argument of every note and refusal that is written out."""
    for folder in _FOLDERS:
        for path in (ROOT / "reconciler" / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "Note(" not in text and "Refusal(" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                    continue
                if node.func.id not in ("Note", "Refusal") or path.name == _OF_STATUS:
                    continue
                for item in ast.walk(node.args[0]) if node.args else ():
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        yield item.value


def codes_of_plans() -> tuple[str, ...]:
    """Return the codes of notes and policy violations."""
    return tuple(sorted({*_codes(), *_INSIDE}))


def test_every_code_is_documented() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    section = text.partition("## Codes of notes")[2].partition("\n## ")[0]
    assert [code for code in codes_of_plans() if f"`{code}`" not in section] == []
