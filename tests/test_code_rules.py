"""Rules of the code that ruff does not check: sizes, kinds in generic layers, paths."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import Field
from importlib import import_module

from msgspec import Struct

from tests.conftest import ROOT

MODULES = sorted((ROOT / "reconciler").rglob("*.py"))
SMALL = {
    "__main__.py": "an entry point",
    "version.py": "read by the build and by --version",
    "packaged.py": "below all layers",
    "commands/*.py": "a command, found by its name",
    "providers/*.py": "a provider, found by its name",
}
"""Modules below 40 lines, each with its reason."""
GENERIC = [
    path
    for path in MODULES
    if not {"kinds", "emulator"} & set(path.relative_to(ROOT / "reconciler").parts)
]


def test_modules_have_700_lines_at_most_and_functions_60() -> None:
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 700, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                length = (node.end_lineno or 0) - node.lineno + 1
                assert length <= 60, f"{path}:{node.lineno} {node.name} has {length} lines"


def test_modules_below_40_lines_have_a_reason() -> None:
    package = ROOT / "reconciler"
    small = [
        path.relative_to(package)
        for path in MODULES
        if path.name != "__init__.py" and len(path.read_text(encoding="utf-8").splitlines()) < 40
    ]
    assert [str(path) for path in small if not any(path.match(name) for name in SMALL)] == []
    assert [name for name in SMALL if not any(path.match(name) for path in small)] == []


def test_generic_layers_contain_no_name_of_a_kind() -> None:
    for path in GENERIC:
        text = re.sub(r'"""(.|\n)*?"""|#[^\n]*', "", path.read_text(encoding="utf-8"))
        is_command = "commands" in path.parts
        assert '"batch_export"' not in text, path
        assert '"project"' not in text or is_command, path


def test_no_file_contains_the_path_of_the_checkout() -> None:
    for path in [*MODULES, *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        assert str(ROOT) not in path.read_text(encoding="utf-8")


def test_no_default_of_a_struct_is_a_field_of_a_dataclass() -> None:
    """Both `field` functions fit both decorators for the type checker, and only one works."""
    for path in MODULES:
        names = path.relative_to(ROOT).with_suffix("").parts
        import_module(".".join(names).removesuffix(".__init__").removesuffix(".__main__"))
    wrong = [
        f"{struct.__module__}.{struct.__name__}"
        for struct in _below(Struct)
        if any(isinstance(default, Field) for default in struct.__struct_defaults__)
    ]
    assert wrong == []


def _below(base: type) -> Iterator[type]:
    for child in base.__subclasses__():
        yield child
        yield from _below(child)
