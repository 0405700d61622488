"""Find what a YAML file contains besides its values: comments, anchors, aliases and merge keys."""

from __future__ import annotations

from collections.abc import Iterator

import yaml
from msgspec import Struct

from reconciler.workspace.yaml.nodes import Parser

_MERGE_KEY = "<<"


class Extra(Struct, frozen=True):
    """A comment, or another part of a text that its values do not show. Lines count from 1."""

    line: int
    text: str


def extras_in(text: str) -> Iterator[Extra]:
    """Yield the comments, anchors, aliases and merge keys of a valid text, line by line."""
    lines = text.splitlines()
    ends: dict[int, int] = {}
    inside: set[int] = set()
    extras: list[Extra] = []
    for token in yaml.scan(text, Loader=Parser):
        start, end = token.start_mark, token.end_mark
        if end.index == start.index:
            continue
        written = lines[start.line][start.column : end.column] if start.line == end.line else ""
        if isinstance(token, (yaml.AnchorToken, yaml.AliasToken)) or written == _MERGE_KEY:
            extras.append(Extra(start.line + 1, written))
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            last = end.line if end.column else end.line - 1
            inside.update(range(start.line + 1, last + 1))
            ends[start.line] = start.column + 1
            continue
        inside.update(range(start.line, end.line))
        ends[end.line] = max(ends.get(end.line, 0), end.column)
    for number, line in enumerate(lines):
        rest = line[ends.get(number, 0) :]
        _, sign, comment = rest.partition("#")
        if sign and number not in inside:
            extras.append(Extra(number + 1, f"#{comment}".rstrip()))
    yield from sorted(extras, key=lambda extra: extra.line)
