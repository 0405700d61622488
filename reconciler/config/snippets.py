"""The line that a diagnostic shows, with everything in it that could be a secret masked."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate
from typing import Any

from reconciler.config.document import Document
from reconciler.errors import Diagnostic
from reconciler.model.schema_files import schema, schema_names

MASK = "***"
_ANY_KEY = re.compile(r"\s*(?:-\s+)?[\w.-]+\s*:(?:\s|$)")
_LIKE = r"[\w.-]*(?:secret|passw|passphrase|token|private_?key|api_?key|webhook)[\w.-]*"
_ELSEWHERE = re.compile(
    # The default of a secret, and the password in an address.
    r"(?<=\$\{secret:env:)[^{}]*?:-(?P<value>[^{}]+)"
    r"|(?<=://)[^\s/@:]*:(?P<password>[^\s/@]+)(?=@)"
)
_SHORTEST_CUT, _LONGEST_CUT = 25, 60
"""How much of a long value messages show."""
_NULLS = frozenset({"", "~", "null"})
_BLOCK = re.compile(r":\s*[|>][0-9+-]*\s*$")


def finished(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """The diagnostics with their lines, secrets masked there and in the words."""
    texts = {name: _Text(document) for name, document in documents.items()}
    return tuple(_finished(each, texts) for each in diagnostics)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A line as it may be seen, and what was taken out of it.

    `masked` are the beginnings and ends of what was, in the line as it stands in the file, and
    `shifts` by how much all that stands behind so many of them has moved.
    """

    line: str
    hidden: frozenset[str]
    masked: tuple[tuple[int, int], ...]
    shifts: tuple[int, ...]

    @classmethod
    def of(cls, line: str, hidden: set[str], masked: Sequence[tuple[int, int]]) -> _Shown:
        """The line as it is shown, with what was masked."""
        moves = (len(MASK) - (last - first) for first, last in masked)
        shifts = tuple(accumulate(moves, initial=0))
        return cls(line, frozenset(hidden - _NULLS), tuple(masked), shifts)

    def moved(self, position: int, *, end: bool = False) -> int:
        """Where a position of the line stands once the secrets before it are masked."""
        passed = bisect_right(self.masked, position, key=lambda each: each[1])
        shift = self.shifts[passed]
        if passed < len(self.masked) and position > self.masked[passed][0]:
            return self.masked[passed][0] + shift + (len(MASK) if end else 0)
        return position + shift


class _Text:
    """The lines of a file that diagnostics are about. Each is looked at once, however many."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._shown: dict[int, _Shown] = {}

    def shown(self, number: int) -> _Shown:
        """A line, counted from 1."""
        found = self._shown.get(number)
        if found is None:
            found = self._shown[number] = self._masked(number)
        return found

    def _masked(self, number: int) -> _Shown:
        line = self.document.line(number)
        if line and number in self._inside_secrets:
            indent = len(line) - len(line.lstrip())
            return _Shown.of(f"{line[:indent]}{MASK}", {line.strip()}, [(indent, len(line))])
        spans = _secret_spans(line)
        hidden = {line[first:last].strip().strip("'\"") for first, last in spans}
        return _Shown.of(_masked(line, spans), hidden, spans)

    @cached_property
    def _inside_secrets(self) -> frozenset[int]:
        """Numbers of the lines that belong, or may belong, to the block of a secret's key."""
        found = set()
        above: list[tuple[int, bool]] = []
        block = False
        for number, line in enumerate(self.document.lines, 1):
            indent = len(line) - len(line.lstrip())
            while line.strip() and above and above[-1][0] >= indent:
                above.pop()
            holder = next((secret for left, secret in reversed(above) if left < indent), False)
            # Where the indentation is broken, a block's end can't be told: better to hide too much.
            key = _plain_key() if self.document.unread else _ANY_KEY
            if holder or (block and not key.match(line)):
                found.add(number)
            if line.strip():
                secret = _secret_key().match(line) is not None
                above.append((indent, secret))
                block = block or (secret and _BLOCK.search(line) is not None)
        return frozenset(found)


def _finished(each: Diagnostic, texts: Mapping[str, _Text]) -> Diagnostic:
    text = texts.get(each.at.file) if each.at is not None else None
    if each.at is None or text is None or not text.document.line(each.at.line):
        return each
    shown = text.shown(each.at.line)
    start = each.at.column - 1
    marked = (shown.moved(start), shown.moved(start + each.at.length, end=True))
    message, hint = each.message, each.hint
    for value in shown.hidden:
        if value[:_SHORTEST_CUT] in f"{message}\n{hint}":
            whole = _whole(value)
            message = whole.sub(MASK, message)
            hint = whole.sub(MASK, hint) if hint is not None else None
    return replace(each, line=shown.line, marked=marked, message=message, hint=hint)


def _whole(value: str) -> re.Pattern[str]:
    """A hidden value in words, also where they cut what is long."""
    sizes = (_SHORTEST_CUT, _LONGEST_CUT)
    forms = [rf"{re.escape(value)}(?!\w)"]
    forms += [f"{re.escape(value[:size])}…" for size in sizes if len(value) > size]
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})")


def masked_assignments(line: str) -> str:
    """A line with what stands after the name of a secret masked, in comments too."""
    return _masked(line, _secret_spans(line))


def _masked(line: str, spans: tuple[tuple[int, int], ...]) -> str:
    parts: list[str] = []
    end = 0
    for first, last in spans:
        parts += [line[end:first], MASK]
        end = last
    return "".join([*parts, line[end:]])


def _secret_spans(line: str) -> tuple[tuple[int, int], ...]:
    """Where secrets stand in a line: after a name that is a secret's or like one, and elsewhere."""
    found = [match.span("value") for match in _assignment().finditer(line)]
    elsewhere = [match.span(str(match.lastgroup)) for match in _ELSEWHERE.finditer(line)]
    apart: list[tuple[int, int]] = []
    for first, last in sorted([*found, *elsewhere]):
        if not apart or first >= apart[-1][1]:
            apart.append((first, last))
    return tuple(apart)


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
    """Secret fields, and what is like one: a misspelt name, or a field of another tool."""
    known = "|".join(sorted(map(re.escape, secret_names()), key=lambda each: (-len(each), each)))
    plain = "|".join(sorted(map(re.escape, _plain_names())))
    return rf"(?:{known})(?![\w.-])|(?!(?:{plain})(?![\w.-])){_LIKE}"


def _plain_names() -> frozenset[str]:
    """Names of fields that are no secrets, over all schemas."""
    found: set[str] = set()
    for name in schema_names():
        found.update(_fields(schema(name)))
    return frozenset(found) - secret_names()


def _fields(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from node.get("properties", {})
        for below in (*node.get("properties", {}).values(), node.get("additionalProperties")):
            yield from _fields(below)


@cache
def _assignment() -> re.Pattern[str]:
    return re.compile(
        rf"(?P<key>(?<![\w-])[\"']?(?:{_names()})[\"']?\s*:\s+)"
        # A whole reference is no secret, but for the default that it may hold.
        r"(?![\"']?\$\{(?:(?!:-)[^}])*\}[\"']?\s*(?:[,}#]|$))"
        r"(?P<value>\"(?:[^\"\\]|\\.)*\"?|'[^']*'?|(?:\$\{[^}]*\}|[^,}\n])+)"
    )


@cache
def _plain_key() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _plain_names())))
    return re.compile(rf"\s*(?:-\s+)?[\"']?(?:{names})[\"']?\s*:")


@cache
def _secret_key() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:-\s+)?[\"']?(?:{_names()})[\"']?\s*:")
