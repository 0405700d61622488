"""Mask the secrets in the lines of a valid YAML file, such as for a diff.

`redact_lines` masks single lines of files that may be invalid.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from reconciler.model.redaction import MASK, redact_line, secret_names
from reconciler.model.reference import is_reference_without_default
from reconciler.workspace.yaml.document import Document, Node

_LONG = 6
"""Length from which a secret is masked in other places too; shorter ones may be words."""
_NULL = "tag:yaml.org,2002:null"


def redact_file(document: Document) -> tuple[str, ...]:
    """Return the lines of a document with secrets masked.

    References stay, except those with a default, which may be a secret.
    """
    lines = list(document.lines)
    secrets = _Secrets()
    if document.node is not None:
        secrets.collect(document.node)
    # From the end, so that the columns of earlier values stay valid.
    for scalar in sorted(secrets.scalars.values(), key=_place, reverse=True):
        _mask(scalar, lines)
    for number, line in enumerate(lines):
        # The value of a secret is masked already; a comment may have an older one.
        value, sign, comment = line.partition(" #") if number in secrets.keys else ("", "", line)
        lines[number] = value + sign + redact_line(comment)
    texts = {
        text for scalar in secrets.scalars.values() if len(text := scalar.value.strip()) >= _LONG
    }
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        lines = [line.replace(text, MASK) for line in lines]
    return tuple(lines)


@dataclass(slots=True)
class _Secrets:
    """The values of secret fields without references, and the lines of the keys of such fields."""

    scalars: dict[int, yaml.ScalarNode] = field(default_factory=dict)
    keys: set[int] = field(default_factory=set)

    def collect(self, root: Node) -> None:
        seen: set[tuple[int, bool]] = set()
        pending = [(root, False)]
        while pending:
            node, secret = pending.pop()
            if (id(node), secret) in seen:
                continue
            seen.add((id(node), secret))
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    named = key.value in secret_names()
                    if named:
                        self.keys.add(key.start_mark.line)
                    pending.append((value, secret or named))
            elif isinstance(node, yaml.SequenceNode):
                pending.extend((item, secret) for item in node.value)
            elif isinstance(node, yaml.ScalarNode) and secret and not _may_be_shown(node):
                self.scalars[id(node)] = node


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line, node.start_mark.column


def _may_be_shown(scalar: yaml.ScalarNode) -> bool:
    return is_reference_without_default(scalar.value) or scalar.tag == _NULL


def _mask(scalar: yaml.ScalarNode, lines: list[str]) -> None:
    start, end = scalar.start_mark, scalar.end_mark
    if scalar.style in ("|", ">"):
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
