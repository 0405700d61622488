"""Check rules of the code that ruff does not have: sizes, names, kinds in generic layers."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "reconciler"
MOST_LINES, MOST_LINES_OF_A_FUNCTION, FEWEST_LINES = 700, 60, 40
SMALL = {
    "__main__.py": "an entry point",
    "version.py": "read by the build and by --version",
    "packaged.py": "below all layers",
    "commands/*.py": "a command, found by its name",
    "providers/*.py": "a provider, found by its name",
}
"""Modules that may be small, each with its reason."""
VAGUE_NAMES = ("each", "found", "told")


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each problem of a module."""
    text = path.read_text(encoding="utf-8")
    tree, length = ast.parse(text), len(text.splitlines())
    if length > MOST_LINES:
        yield length, f"module has {length} lines: split it, the limit is {MOST_LINES}"
    is_small = length < FEWEST_LINES and path.name != "__init__.py"
    if is_small and not any(path.relative_to(PACKAGE).match(name) for name in SMALL):
        yield length, f"module has {length} lines: merge it into the module of its subject"
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    limit = MOST_LINES_OF_A_FUNCTION
                    yield node.lineno, f"{name} has {lines} lines: the limit is {limit}"
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case _:
                continue
        if name in VAGUE_NAMES:
            yield node.lineno, f"{name!r} is vague: use the name of the thing"
    if not {"kinds", "emulator"} & set(path.relative_to(PACKAGE).parts):
        yield from _kinds(text, is_command="commands" in path.parts)


def _kinds(text: str, *, is_command: bool) -> Iterator[tuple[int, str]]:
    """Yield names of kinds in a generic layer."""
    names = ("batch_export",) if is_command else ("batch_export", "project")
    code = re.sub(r'"""(.|\n)*?"""|#[^\n]*', lambda part: "\n" * part[0].count("\n"), text)
    for number, line in enumerate(code.splitlines(), start=1):
        for name in names:
            if f'"{name}"' in line:
                yield number, f"{name!r} in a generic layer: ask the kind"


def main() -> int:
    """Print the problems. Return 1 if there are some."""
    lines = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in problems(path)
    ]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
