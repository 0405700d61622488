"""Show lines of files in diagnostics and differences, but none with a secret."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import yaml
from msgspec import Struct
from msgspec.structs import replace
from yaml.nodes import Node

from reconciler.diagnostics import Diagnostic, Mark
from reconciler.errors import meaning
from reconciler.files.yaml_document import NULL_TAG, Document, nodes_in
from reconciler.model.redaction import redact_line, secret_spans, starts_secret
from reconciler.model.schemas import looks_secret
from reconciler.model.values import MASK, is_only_references

_CUTS = (25, 60)
"""How many characters of a long value messages show."""
_MOST = 100
"""Secrets in a line to look for in its messages. With more, messages show no values at all."""
_LONG = 6
"""Length from which a secret is masked in all messages of a file; shorter ones may be words."""
_SHORTEST = 3
"""Length from which a secret is masked in the messages about its line."""
_NO_SECRETS = frozenset({"", "~", "null"})


class Side(Struct, frozen=True):
    """A file before or after: its lines with their ends, and the same lines without secrets."""

    lines: tuple[str, ...]
    shown: tuple[str, ...]


class _Secrets(Struct, frozen=True):
    """The literal secrets of a file, by the number of their lines. `long` are in all its messages.

    `everywhere`: any line may have a part of one, since the file cannot be read.
    """

    lines: Mapping[int, Sequence[str]]
    long: Sequence[str]
    everywhere: bool

    @classmethod
    def of(cls, document: Document) -> _Secrets:
        """Return the secrets of a file: in fields that look secret, in URLs and in comments."""
        lines: dict[int, dict[str, None]] = defaultdict(dict)
        everywhere = False
        for number, line in enumerate(document.lines, 1):
            for first, last in secret_spans(line):
                text = line[first:last].strip().strip("'\"")
                if text not in _NO_SECRETS:
                    lines[number][text] = None
            begins = starts_secret(line) and "${" not in line
            everywhere = everywhere or (document.unread and (begins or number in lines))
        for scalar in _secret_scalars(document):
            start, end = scalar.start_mark, scalar.end_mark
            for number in range(start.line, end.line + (end.column > 0)):
                lines[number + 1][scalar.value.strip()] = None
        texts = {text for of_line in lines.values() for text in of_line if len(text) >= _LONG}
        return cls(
            {number: tuple(of_line) for number, of_line in lines.items()},
            sorted(texts, key=lambda text: (-len(text), text)),
            everywhere,
        )

    def shown(self, line: str, number: int) -> str | None:
        """Return a line, None if it has a secret or may have one."""
        is_hidden = self.everywhere or number in self.lines or any(t in line for t in self.long)
        return line if line and not is_hidden else None

    def masked(self, text: str, number: int) -> str:
        """Return a message about a line without the secrets in it."""
        for value in (*self.long, *self.lines.get(number, ())):
            if len(value) >= _SHORTEST and value[: _CUTS[0]] in text:
                cuts = [f"{re.escape(value[:size])}…" for size in _CUTS if len(value) > size]
                forms = "|".join([rf"{re.escape(value)}(?!\w)", *cuts])
                text = re.sub(rf"(?<!\w)(?:{forms})", MASK, text)
        return text


def _secret_scalars(document: Document) -> Iterator[Node]:
    """Yield the values below keys that look secret, which may not be shown."""
    for mapping in nodes_in(document.node, keys=False):
        for key, value in mapping.value if isinstance(mapping, yaml.MappingNode) else ():
            is_secret = key.value == "headers" or looks_secret(str(key.value))
            for node in nodes_in(value, keys=False) if is_secret else ():
                is_shown = node.tag == NULL_TAG or is_only_references(str(node.value))
                if isinstance(node, yaml.ScalarNode) and not is_shown:
                    yield node


def with_lines(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with their lines, without the secrets of the files."""
    files = {diagnostic.at.file for diagnostic in diagnostics if diagnostic.at is not None}
    secrets = {name: _Secrets.of(documents[name]) for name in files & documents.keys()}
    # A line may have megabytes and a thousand diagnostics.
    line_of = cache(lambda at: secrets[at.file].shown(documents[at.file].line(at.line), at.line))
    return tuple(
        _without_secrets(diagnostic, secrets[at.file], line_of(Mark(at.file, at.line)))
        if (at := diagnostic.at) is not None and at.file in secrets
        else diagnostic
        for diagnostic in diagnostics
    )


def _without_secrets(diagnostic: Diagnostic, secrets: _Secrets, line: str | None) -> Diagnostic:
    number = diagnostic.at.line if diagnostic.at is not None else 0
    message, hint = diagnostic.message, diagnostic.hint
    if len(secrets.lines.get(number, ())) > _MOST:
        message, hint = meaning(diagnostic.code).title, None
    message = secrets.masked(message, number)
    hint = secrets.masked(hint, number) if hint is not None else None
    return replace(diagnostic, line=line, message=message, hint=hint)


def side_of(document: Document) -> Side:
    """Return the lines of a document as one side of a change, without secrets."""
    secrets = _Secrets.of(document)
    shown = []
    for number, line in enumerate(document.lines, 1):
        known = secrets.lines.get(number, ())
        redacted = redact_line(line)
        if known and (redacted == line or any(text in redacted for text in known)):
            redacted = f"{line[: len(line) - len(line.lstrip())]}{MASK}"
        for text in secrets.long:
            redacted = redacted.replace(text, MASK)
        shown.append(redacted)
    return Side(tuple(document.text.splitlines(keepends=True)), tuple(shown))
