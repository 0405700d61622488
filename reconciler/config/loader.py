"""Strict YAML: text to `Document`, with every surprise of YAML 1.1 told instead of taken.

The text is composed once with PyYAML's C parser while the garbage collector is paused (the largest
single speed-up that was measured), then values are built from the nodes in one pass.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import yaml

from reconciler.config.document import MERGE_TAG, Document
from reconciler.errors import Mark, Problems
from reconciler.model.values import JSON

MAX_BYTES = 10_000_000
MAX_NODES = 2_000_000
"""Nodes after aliases are followed: an alias bomb is small as text and huge as a value."""
MAX_DEPTH = 60

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX = "tag:yaml.org,2002:"
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*)?\.?[0-9]+([eE][-+]?[0-9]+)?$|[-+]?[0-9]+\.$")
_OCTAL = re.compile(r"[-+]?0o?[0-7_]+$")
_YAML_1_1_WORDS = frozenset({"yes", "no", "on", "off", "y", "n"})


@dataclass(slots=True)
class _Building:
    """One document on its way from nodes to values."""

    document: Document
    problems: Problems
    nodes: int = 0
    above: set[int] = field(default_factory=set)
    gave_up: bool = False

    def error(self, code: str, message: str, node: yaml.Node, hint: str | None = None) -> None:
        self.problems.error(code, message, at=self.document.mark_of(node), hint=hint)


def parse(raw: bytes, file: str, problems: Problems) -> Document:
    """The document of a file. What is wrong with it goes to `problems`; never raises."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, None, None, ())
    lines = tuple(text.splitlines())
    try:
        with collector_paused():
            node = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        _tell_syntax(error, file, lines, problems)
        return Document(file, None, None, lines)
    except RecursionError:
        problems.error("too-deep", "this is nested too deeply", at=Mark(file))
        return Document(file, None, None, lines)
    document = Document(file, None, node, lines)
    if node is None:
        return document
    with collector_paused():
        value = _value(node, _Building(document, problems), depth=0)
    return Document(file, value, node, lines)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector where many values are made and none is a cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(raw: bytes, file: str, problems: Problems) -> str | None:
    if len(raw) > MAX_BYTES:
        problems.error(
            "file-too-large",
            f"this file has {len(raw):,} bytes, and {MAX_BYTES:,} are allowed",
            at=Mark(file),
            hint="split it: resources may stand in any number of files",
        )
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        problems.error(
            "bad-encoding", "this file is UTF-16", at=Mark(file), hint="save it as UTF-8"
        )
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        problems.error(
            "bad-encoding",
            f"byte 0x{raw[error.start]:02x} is not UTF-8",
            at=Mark(file, line, column),
            hint="save the file as UTF-8",
        )
        return None


def _tell_syntax(
    error: yaml.YAMLError, file: str, lines: tuple[str, ...], problems: Problems
) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = Mark(file, mark.line + 1, mark.column + 1) if mark is not None else Mark(file)
    what = str(getattr(error, "problem", None) or "this is not YAML")
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in what:
        column = line.index("\t") + 1 if "\t" in line else at.column
        problems.error(
            "tab-indent",
            "a tab can't indent YAML",
            at=Mark(file, at.line, column),
            hint="indent with spaces",
        )
    elif "but found another document" in what:
        problems.error(
            "several-documents",
            "a file holds one document, and here another one begins",
            at=at,
            hint="put it into a file of its own",
        )
    elif "special characters" in str(error) or "control characters" in str(error):
        problems.error(
            "control-character",
            "there is a control character in this file",
            at=at,
            hint="remove it, or write it as an escape inside double quotes",
        )
    elif "undefined alias" in what:
        problems.error(
            "unknown-alias", what, at=at, hint="define the anchor (&name) above its use (*name)"
        )
    else:
        problems.error("bad-yaml", f"this is not YAML: {what}", at=at, hint=_SYNTAX_HINTS.get(what))


_SYNTAX_HINTS = {
    "mapping values are not allowed in this context": "quote a value that contains ': '",
    "could not find expected ':'": "a key needs a colon and a blank after it",
    "did not find expected key": "check the indentation of this line and the one above",
    "found character that cannot start any token": "quote a value that begins with @, ` or %",
}


def _value(node: yaml.Node, building: _Building, *, depth: int) -> JSON:
    building.nodes += 1
    if building.gave_up or not _bounded(node, building, depth):
        return None
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, building)
    building.above.add(id(node))
    value: JSON
    if isinstance(node, yaml.SequenceNode):
        _check_tag(node, building, "seq")
        value = [_value(item, building, depth=depth + 1) for item in node.value]
    else:
        value = _mapping(node, building, depth)
    building.above.discard(id(node))
    return value


def _bounded(node: yaml.Node, building: _Building, depth: int) -> bool:
    if id(node) in building.above:
        building.error("recursive-alias", "this alias contains itself", node)
        return False
    if depth > MAX_DEPTH:
        building.error("too-deep", f"this is nested more than {MAX_DEPTH} levels deep", node)
        return False
    if building.nodes > MAX_NODES:
        building.error(
            "alias-bomb",
            f"with its aliases followed this file has more than {MAX_NODES:,} values",
            node,
            hint="use fewer aliases",
        )
        building.gave_up = True
        return False
    return True


def _check_tag(node: yaml.Node, building: _Building, expected: str) -> None:
    if node.tag != f"{_PREFIX}{expected}":
        building.error(
            "unknown-tag",
            f"the tag {node.tag.replace(_PREFIX, '!!')} is not known here",
            node,
            hint="remove it: only plain YAML is read",
        )


def _mapping(node: yaml.Node, building: _Building, depth: int) -> dict[str, JSON]:
    _check_tag(node, building, "map")
    own: dict[str, JSON] = {}
    merged: dict[str, JSON] = {}
    first: dict[str, yaml.Node] = {}
    for key_node, value_node in node.value:
        if key_node.tag == MERGE_TAG:
            merged = {**_merged(value_node, building, depth), **merged}
            continue
        key = _key(key_node, building)
        if key is None:
            continue
        if key in first:
            building.problems.error(
                "duplicate-key",
                f"the key '{key}' stands here twice",
                at=building.document.mark_of(key_node),
                hint="remove one of them, or merge them",
                related=((building.document.mark_of(first[key]), "it stands here first"),),
            )
            continue
        first[key] = key_node
        own[key] = _value(value_node, building, depth=depth + 1)
    return {**merged, **own} if merged else own


def _merged(node: yaml.Node, building: _Building, depth: int) -> dict[str, JSON]:
    """What a merge key brings: an earlier source wins over a later one."""
    sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
    found: dict[str, JSON] = {}
    for source in sources:
        value = _value(source, building, depth=depth + 1)
        if isinstance(value, dict):
            found = {**value, **found}
        else:
            building.error("bad-merge", "a merge key takes a mapping or a list of them", source)
    return found


def _key(node: yaml.Node, building: _Building) -> str | None:
    if not isinstance(node, yaml.ScalarNode):
        building.error("bad-key", "a key is text, not a list or mapping", node)
        return None
    plain_text = bool(node.style) or node.tag == f"{_PREFIX}str"
    key = str(node.value)
    if not plain_text and key.lower() not in _YAML_1_1_WORDS:
        building.error("bad-key", f"the key {key} is not text", node, hint=f"quote it: '{key}'")
        return None
    if not plain_text:
        building.error(
            "ambiguous-boolean",
            f"the key {key} is true or false to some readers of YAML, and text to others",
            node,
            hint=f"quote it: '{key}'",
        )
    if "${" in key.replace("$${", ""):
        building.error(
            "reference-in-key",
            "a key can't hold a reference",
            node,
            hint="write the key out; only values are filled in",
        )
    return key


def _scalar(node: yaml.ScalarNode, building: _Building) -> JSON:
    kind = node.tag.removeprefix(_PREFIX)
    text = str(node.value)
    # A plain scalar has the style None or "", depending on the parser.
    if node.style or kind == "str":
        if kind != "str":
            _check_tag(node, building, "str")
        return text if node.style else _plain_word(text, node, building)
    match kind:
        case "null":
            return None
        case "bool":
            return _boolean(text, node, building)
        case "int" | "float":
            return _number(text, node, building)
        case "timestamp" | "value":
            return text
        case _:
            _check_tag(node, building, "str")
            return text


def _plain_word(text: str, node: yaml.ScalarNode, building: _Building) -> JSON:
    """Plain text as YAML 1.1 reads it, which newer readers take for a number."""
    if text in ("y", "n", "Y", "N"):
        return _boolean(text, node, building)
    if re.fullmatch(r"[-+]?[0-9]+[eE][-+]?[0-9]+", text) or re.fullmatch(r"0o[0-7]+", text):
        return _ambiguous_number(text, node, building)
    return text


def _boolean(text: str, node: yaml.ScalarNode, building: _Building) -> JSON:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    meant = text.lower() in ("yes", "on", "y")
    building.error(
        "ambiguous-boolean",
        f"{text} is {str(meant).lower()} to some readers of YAML, and text to others",
        node,
        hint=f"write {str(meant).lower()}, or quote it: '{text}'",
    )
    return None


def _number(text: str, node: yaml.ScalarNode, building: _Building) -> JSON:
    if _DECIMAL.match(text):
        return int(text)
    if ":" in text or "_" in text or _OCTAL.match(text) or not _FLOAT.match(text):
        return _ambiguous_number(text, node, building)
    return float(text)


def _ambiguous_number(text: str, node: yaml.ScalarNode, building: _Building) -> JSON:
    if text.lower().lstrip("+-") in (".inf", ".nan"):
        building.error("not-a-number", f"{text} is no number that JSON knows", node)
        return None
    building.error(
        "ambiguous-number",
        f"{text} is a different number, or text, to different readers of YAML",
        node,
        hint=f"write it in plain decimals, or quote it: '{text}'",
    )
    return None
