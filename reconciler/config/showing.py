"""The lines of a whole file as they may be shown, such as in a difference: secrets masked.

`snippets` masks single lines of files that may be broken. Here the file is known to be YAML, and
where a value begins and ends is known with it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import yaml

from reconciler.config.document import Document, Node
from reconciler.config.snippets import MASK, masked_assignments, secret_names

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_LONG = 6
"""Characters from which a secret is looked for in other places too; shorter ones are words."""
_NULL = "tag:yaml.org,2002:null"


def shown_lines(document: Document) -> tuple[str, ...]:
    """The lines of a document, without a value that stands for a secret.

    References stay, since a reader has to see them; one with a default does not, which may be one.
    """
    lines = list(document.lines)
    found = _Found()
    if document.node is not None:
        found.look(document.node)
    # From the end, so that the columns of what stands before stay right.
    for scalar in sorted(found.scalars.values(), key=_place, reverse=True):
        _mask(scalar, lines)
    for number, line in enumerate(lines):
        # Beside a secret its value is masked already; there may be an older one in a comment.
        value, sign, comment = line.partition(" #") if number in found.keys else ("", "", line)
        lines[number] = value + sign + masked_assignments(comment)
    texts = {text for each in found.scalars.values() if len(text := each.value.strip()) >= _LONG}
    for text in sorted(texts, key=lambda each: (-len(each), each)):
        lines = [line.replace(text, MASK) for line in lines]
    return tuple(lines)


@dataclass(slots=True)
class _Found:
    """The values of secret fields that are no reference, and the lines of such fields' names."""

    scalars: dict[int, yaml.ScalarNode] = field(default_factory=dict)
    keys: set[int] = field(default_factory=set)

    def look(self, root: Node) -> None:
        seen: set[tuple[int, bool]] = set()
        left = [(root, False)]
        while left:
            node, secret = left.pop()
            if (id(node), secret) in seen:
                continue
            seen.add((id(node), secret))
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    named = key.value in secret_names()
                    if named:
                        self.keys.add(key.start_mark.line)
                    left.append((value, secret or named))
            elif isinstance(node, yaml.SequenceNode):
                left.extend((item, secret) for item in node.value)
            elif isinstance(node, yaml.ScalarNode) and secret and not _may_be_shown(node):
                self.scalars[id(node)] = node


def _place(node: Node) -> tuple[int, int]:
    return node.start_mark.line, node.start_mark.column


def _may_be_shown(scalar: yaml.ScalarNode) -> bool:
    reference = _REFERENCE.fullmatch(scalar.value) is not None and ":-" not in scalar.value
    return reference or scalar.tag == _NULL


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
