"""Rules of the prose: plain words and names, and no references to private documents."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT

PLAINER: Mapping[str, str] = {
    r"told": "reported, shown, printed",
    r"tells": "reports, shows",
    r"somebody|someone else": "a user, another client",
    r"nobody": "no user",
    r"anew": "again, overwrite",
    r"by hand": "manually",
    r"live side": "live state",
    r"the files say": "the configuration",
    r"leads? nowhere": "cannot be resolved, does not exist",
    r"which there (?:is|are) not": "unknown …, not a …",
    r"(?:which|that) (?:is|are) none": "invalid …, not a …",
    r"not there yet": "does not exist yet",
    r"in doubt": "outcome unknown",
    r"the way out": "the fix, the hint",
    r"the way back": "undo, reversal",
    r"(?:the )?whole way": "end to end",
    r"doomed|condemned": "to delete, to prune",
    r"complain(?:s|ed|ing|ts?)?": "report",
    r"carried out|carry out": "applied, executed",
    r"blanks": "whitespace",
    r"(?:goes|go) with": "requires, is sent together with",
    r"brings": "requires, is sent together with",
    r"stands(?! for| out)|stood": "is, appears, is defined",
    r"meant": "intended, matching, selected",
    r"strangers?|colleagues?": "a user",
    r"houses?|floors?|doors?|rooms|a room": "package, module, layer",
}
"""Patterns of words that are never right here, with what to write. A space matches a line break."""

PATTERNS = {
    re.compile(rf"(?<![\w-])(?:{words})(?![\w-])".replace(" ", r"[\s\"#]+"), re.IGNORECASE): plainer
    for words, plainer in PLAINER.items()
}
PRIVATE = re.compile(
    r"service-facts|\btraps? \d+|design,? sections?|interface \d\.\d|fidelity-\d|[Ff]indings? A\d"
)
"""References to documents that are not in the repository."""

VAGUE_NAMES = ("each", "found", "told")

PYTHON = sorted((ROOT / "reconciler").rglob("*.py"))
TESTS = sorted(path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
TEXTS = sorted(
    path
    for path in (
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*"),
        *(ROOT / "schemas").rglob("*.json"),
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
    )
    if path.is_file() and path.suffix in (".json", ".md", ".toml", ".yaml", ".yml")
)
_SPOKEN = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}


def prose_of(path: Path) -> tuple[str, list[int], list[int]]:
    """Return what a file says to readers, the start of each part of it, and the line of that part.

    Of Python these are comments, docstrings and strings.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        pieces = [(token.start[0], token.string) for token in tokens if token.type in _SPOKEN]
    else:
        pieces = [(1, text)]
    lines = [
        (start + offset, line)
        for start, piece in pieces
        for offset, line in enumerate(piece.split("\n"))
    ]
    starts, position = [], 0
    for _, line in lines:
        starts.append(position)
        position += len(line) + 1
    return "\n".join(line for _, line in lines), starts, [number for number, _ in lines]


def refused_words(path: Path) -> Iterator[str]:
    """Yield `file:line: 'words': replacement` for the refused words in a file's prose."""
    prose, starts, lines = prose_of(path)
    for pattern, replacement in PATTERNS.items():
        for match in pattern.finditer(prose):
            line = lines[bisect_right(starts, match.start()) - 1]
            words = " ".join(match[0].split())
            yield f"{path.relative_to(ROOT)}:{line}: {words!r}: {replacement}"


def private_references(path: Path) -> Iterator[str]:
    """Yield `file:line: 'words': replacement` for references to documents that readers lack."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := PRIVATE.search(line):
            yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: service.md, n.m"


def vague_names(path: Path) -> Iterator[str]:
    """Yield `file:line: name` for variables, arguments and functions with a vague name."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                pass
            case _:
                continue
        if name in VAGUE_NAMES:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {name!r}: the name of the thing"


def refused() -> list[str]:
    """Return everything that the rules refuse."""
    return [
        *(match for path in (*PYTHON, *TEXTS) for match in refused_words(path)),
        *(match for path in (*PYTHON, *TEXTS, *TESTS) for match in private_references(path)),
        *(name for path in PYTHON for name in vague_names(path)),
    ]


def test_prose_and_names_are_plain() -> None:
    matches = refused()
    if matches:
        pytest.fail("\n".join(matches), pytrace=False)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# it leads\n# nowhere\n", ["x.py:1: 'leads # nowhere'"]),
        ('message = (\n    "it leads "\n    "nowhere"\n)\n', ["x.py:2: 'leads \" \"nowhere'"]),
        ('message = f"{name} tells {value}"\n', ["x.py:1: 'tells'"]),
        ("told = found\n", []),
        ("# A colon stands for a level.\n", []),
    ],
)
def test_words_are_matched_in_prose_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: list[str]
) -> None:
    monkeypatch.setattr("tests.test_prose.ROOT", tmp_path)
    (tmp_path / "x.py").write_text(source, encoding="utf-8")
    assert [match.rpartition(":")[0] for match in refused_words(tmp_path / "x.py")] == expected
