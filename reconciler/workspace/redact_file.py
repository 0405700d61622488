"""Mask the secrets in the lines of a valid YAML file, such as for a diff.

`redact_lines` masks single lines of files that may be invalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import yaml
from yaml.nodes import Node

from reconciler.model.file_change import Side
from reconciler.model.redaction import MASK, redact_line
from reconciler.model.schemas import looks_secret
from reconciler.model.values import is_reference_without_default
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.nodes import NULL_TAG, is_block_text, nodes_in

_LONG = 6
"""Length from which a secret is masked in other places too; shorter ones may be words."""


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
