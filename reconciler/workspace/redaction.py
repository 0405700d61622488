"""Show lines of files in diagnostics and diffs, with possible secrets masked.

`redact_file` masks the lines of a valid file, `masked_with_lines` single lines of any file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate

import yaml
from msgspec import Struct
from msgspec.structs import replace
from yaml.nodes import Node

from reconciler.codes import meaning
from reconciler.diagnostics import Diagnostic
from reconciler.model.files import Side
from reconciler.model.redaction import (
    MASK,
    masked,
    redact_line,
    secret_spans,
    starts_plain_field,
    starts_secret,
)
from reconciler.model.schemas import looks_secret
from reconciler.model.values import is_reference_without_default
from reconciler.workspace.yaml.document import NULL_TAG, Document, is_block_text, nodes_in

_ANY_KEY = re.compile(r"\s*(?:-\s+)?[\w.-]+\s*:(?:\s|$)")
_SHORTEST_CUT, _LONGEST_CUT = 25, 60
"""How many characters of a long value messages show."""
_MOST_SECRETS = 100
"""Secrets of a line to look for in messages. With more, messages show no values at all."""
_NULLS = frozenset({"", "~", "null"})
_PROPERTIES = re.compile(r"\A(?:\s*[&!]\S*\s)+")
"""The anchor and the tag before a value."""
_BLOCK = re.compile(r":\s*[|>][0-9+-]*\s*$")
_LONG = 6
"""Length from which a secret is masked in other places too; shorter ones may be words."""


def masked_with_lines(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with their lines, secrets masked in lines and messages."""
    texts = {name: _Text(document) for name, document in documents.items()}
    return tuple(_with_line(diagnostic, texts) for diagnostic in diagnostics)


class _Shown(Struct, frozen=True):
    """A line with secrets masked.

    `masked` are the spans of the secrets in the original line. `shifts[n]` is the distance by which
    the text after the first n of them has moved.
    """

    line: str
    hidden: frozenset[str]
    masked: tuple[tuple[int, int], ...]
    shifts: tuple[int, ...]

    @classmethod
    def of(cls, line: str, hidden: set[str], masked: Sequence[tuple[int, int]]) -> _Shown:
        """Return the line with its spans masked."""
        moves = (len(MASK) - (last - first) for first, last in masked)
        shifts = tuple(accumulate(moves, initial=0))
        return cls(line, frozenset(hidden - _NULLS), tuple(masked), shifts)

    def moved(self, position: int, *, end: bool = False) -> int:
        """Return the position in the masked line of a position in the original line."""
        passed = bisect_right(self.masked, position, key=lambda span: span[1])
        shift = self.shifts[passed]
        if passed < len(self.masked) and position > self.masked[passed][0]:
            return self.masked[passed][0] + shift + (len(MASK) if end else 0)
        return position + shift


class _Text:
    """The lines of a file that diagnostics show, each masked once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.shown = cache(self._masked)

    @cached_property
    def literals(self) -> Sequence[str]:
        """The literal secrets of the file, which an alias can name in any field."""
        return literal_secrets(self.document)

    def _masked(self, number: int) -> _Shown:
        """Return a line, counted from 1."""
        line = self.document.line(number)
        if line and number in self._inside_secrets:
            indent = len(line) - len(line.lstrip())
            return _Shown.of(f"{line[:indent]}{MASK}", {line.strip()}, [(indent, len(line))])
        spans = secret_spans(line)
        values = (_PROPERTIES.sub("", line[first:last]) for first, last in spans)
        hidden = {value.strip().strip("'\"") for value in values}
        return _Shown.of(masked(line, spans), hidden, spans)

    @cached_property
    def _inside_secrets(self) -> frozenset[int]:
        """The numbers of the lines that belong, or may belong, to the value of a secret's key."""
        inside = set()
        above: list[tuple[int, bool]] = []
        block = False
        for number, line in enumerate(self.document.lines, 1):
            indent = len(line) - len(line.lstrip())
            while line.strip() and above and above[-1][0] >= indent:
                above.pop()
            holder = next((secret for left, secret in reversed(above) if left < indent), False)
            # With invalid indentation, the end of a block is unknown: rather mask too much.
            is_key = starts_plain_field if self.document.unread else _ANY_KEY.match
            if holder or (block and not is_key(line)):
                inside.add(number)
            if line.strip():
                secret = starts_secret(line)
                above.append((indent, secret))
                block = block or (secret and _BLOCK.search(line) is not None)
        return frozenset(inside)


def _with_line(diagnostic: Diagnostic, texts: Mapping[str, _Text]) -> Diagnostic:
    text = texts.get(diagnostic.at.file) if diagnostic.at is not None else None
    if diagnostic.at is None or text is None or not text.document.line(diagnostic.at.line):
        return diagnostic
    shown = text.shown(diagnostic.at.line)
    start = diagnostic.at.column - 1
    marked = (shown.moved(start), shown.moved(start + diagnostic.at.length, end=True))
    message, hint = diagnostic.message, diagnostic.hint
    if len(shown.hidden) > _MOST_SECRETS:
        title = meaning(diagnostic.code).title
        return replace(diagnostic, line=shown.line, marked=marked, message=title, hint=None)
    for value in (*text.literals, *shown.hidden):
        if value[:_SHORTEST_CUT] in f"{message}\n{hint}":
            whole = _whole(value)
            message = whole.sub(MASK, message)
            hint = whole.sub(MASK, hint) if hint is not None else None
    return replace(diagnostic, line=shown.line, marked=marked, message=message, hint=hint)


def _whole(value: str) -> re.Pattern[str]:
    """Return a pattern for a value in a message, in full or cut."""
    sizes = (_SHORTEST_CUT, _LONGEST_CUT)
    forms = [rf"{re.escape(value)}(?!\w)"]
    forms += [f"{re.escape(value[:size])}…" for size in sizes if len(value) > size]
    return re.compile(rf"(?<!\w)(?:{'|'.join(forms)})")


def side_of(document: Document) -> Side:
    """Return the lines of a document as one side of a change, secrets masked."""
    return Side(tuple(document.text.splitlines(keepends=True)), redact_file(document))


def redact_file(document: Document) -> tuple[str, ...]:
    """Return the lines of a document with secrets masked.

    References stay, except those with a default, which may be a secret.
    """
    lines = list(document.lines)
    fields = _secret_fields(document)
    keys = {line for line, _ in fields}
    scalars = {scalar.start_mark.index: scalar for _, values in fields for scalar in values}
    # From the end, so that the columns of earlier values stay valid.
    for _, scalar in sorted(scalars.items(), reverse=True):
        _mask(scalar, lines)
    for number, line in enumerate(lines):
        # The value of a secret is masked already; a comment may have an older one.
        value, sign, comment = line.partition(" #") if number in keys else ("", "", line)
        lines[number] = value + sign + redact_line(comment)
    for text in _long_texts(scalars.values()):
        lines = [line.replace(text, MASK) for line in lines]
    return tuple(lines)


def literal_secrets(document: Document) -> Sequence[str]:
    """Return the texts of the secret fields of a document, the longest first."""
    return _long_texts(scalar for _, values in _secret_fields(document) for scalar in values)


def _long_texts(scalars: Iterable[Node]) -> Sequence[str]:
    texts = {text for scalar in scalars if len(text := scalar.value.strip()) >= _LONG}
    return sorted(texts, key=lambda text: (-len(text), text))


def _secret_fields(document: Document) -> list[tuple[int, list[Node]]]:
    return [field for node in nodes_in(document.node, keys=False) for field in _secrets_of(node)]


def _secrets_of(mapping: Node) -> Iterator[tuple[int, list[Node]]]:
    """Yield the line of the key of each secret field, and its values that may not be shown."""
    for key, value in mapping.value if isinstance(mapping, yaml.MappingNode) else ():
        if looks_secret(str(key.value)):
            yield (
                key.start_mark.line,
                [
                    node
                    for node in nodes_in(value, keys=False)
                    if isinstance(node, yaml.ScalarNode)
                    and node.tag != NULL_TAG
                    and not is_reference_without_default(node.value)
                ],
            )


def _mask(scalar: Node, lines: list[str]) -> None:
    start, end = scalar.start_mark, scalar.end_mark
    if is_block_text(scalar):
        _hide(lines, start.line + 1, end.line + 1 if end.column else end.line)
        return
    rest = lines[end.line][end.column :]
    lines[start.line] = f"{lines[start.line][: start.column]}{MASK}"
    _hide(lines, start.line + 1, end.line + 1)
    lines[end.line] += rest


def _hide(lines: list[str], first: int, last: int) -> None:
    for number in range(first, min(last, len(lines))):
        text = lines[number]
        if text.strip():
            lines[number] = f"{text[: len(text) - len(text.lstrip())]}{MASK}"
