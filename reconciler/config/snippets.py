"""The line that a diagnostic shows, with everything in it that could be a secret masked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from reconciler.config.document import Document
from reconciler.config.schema_files import schema, schema_names
from reconciler.errors import Diagnostic

MASK = "***"
_ANY_KEY = re.compile(r"\s*(?:-\s+)?[\w.-]+\s*:(?:\s|$)")
_SECRET_DEFAULT = re.compile(r"(\$\{secret:env:[^{}]*?:-)[^{}]*")
_NULLS = frozenset({"", "~", "null"})
_BLOCK = re.compile(r":\s*[|>][0-9+-]*\s*$")


def finished(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """The diagnostics with their lines, secrets masked there and in the words."""
    return tuple(_finished(each, documents) for each in diagnostics)


def _finished(each: Diagnostic, documents: Mapping[str, Document]) -> Diagnostic:
    if each.at is None or each.at.file not in documents:
        return each
    document = documents[each.at.file]
    line = document.line(each.at.line)
    if not line:
        return each
    if _inside_a_secret(document, each.at.line):
        hidden = [line.strip()]
        indent = len(line) - len(line.lstrip())
        shown = f"{line[:indent]}{MASK}"
        marked = (indent, indent + len(MASK))
    else:
        hidden = [_value(match) for match in _assignment().finditer(line)]
        shown = masked_assignments(line)
        start = each.at.column - 1
        marked = (_moved(line, start), _moved(line, start + each.at.length, end=True))
    message, hint = each.message, each.hint
    for value in hidden:
        if value not in _NULLS:
            message = message.replace(value, MASK)
            hint = hint.replace(value, MASK) if hint is not None else None
    return replace(each, line=shown, marked=marked, message=message, hint=hint)


def _moved(line: str, position: int, *, end: bool = False) -> int:
    """Where a position of a line stands once the secrets before it are masked."""
    shift = 0
    for match in _assignment().finditer(line):
        first, last = match.span("value")
        if position >= last:
            shift += len(MASK) - (last - first)
        elif position > first:
            return first + shift + (len(MASK) if end else 0)
    return position + shift


def masked_assignments(line: str) -> str:
    """A line with what stands after the name of a secret masked, in comments too."""
    shown = _assignment().sub(lambda match: f"{match['key']}{MASK}", line)
    return _SECRET_DEFAULT.sub(rf"\1{MASK}", shown)


def _value(match: re.Match[str]) -> str:
    return match["value"].strip().strip("'\"")


def _inside_a_secret(document: Document, number: int) -> bool:
    """Whether a line belongs, or may belong, to the block of a secret's key above it."""
    line = document.line(number)
    if not _ANY_KEY.match(line):
        # Where the indentation is broken, the block's end can't be told: better to hide too much.
        above = (document.line(each) for each in range(1, number))
        if any(_secret_key().match(each) and _BLOCK.search(each) for each in above):
            return True
    indent = len(line) - len(line.lstrip())
    for each in range(number - 1, 0, -1):
        text = document.line(each)
        if text.strip() and len(text) - len(text.lstrip()) < indent:
            return _secret_key().match(text) is not None
    return False


@cache
def secret_names() -> frozenset[str]:
    """Names of fields that hold secrets, over all schemas."""
    found = {"api_key", "token", "password", "secret"}
    for name in schema_names():
        found.update(_secrets(schema(name)))
    return frozenset(found)


def _secrets(node: Any) -> Iterator[str]:
    if not isinstance(node, dict):
        return
    for name, below in node.get("properties", {}).items():
        if isinstance(below, dict) and (below.get("x-secret") or below.get("x-holds-secrets")):
            yield name
        yield from _secrets(below)
    yield from _secrets(node.get("additionalProperties"))


@cache
def _names() -> str:
    return "|".join(sorted(map(re.escape, secret_names()), key=lambda each: (-len(each), each)))


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<key>(?<![\w-])[\"']?(?:{_names()})[\"']?\s*:\s+)"
        r"(?!\$\{)(?P<value>\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|[^,}\n]+)"
    )


@cache
def _secret_key() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:-\s+)?[\"']?(?:{_names()})[\"']?\s*:")
