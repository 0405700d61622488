"""Construct the values of a text from the events of the parser, and report ambiguous YAML.

Events give values in half the time of nodes. Text, the usual case, is handled first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from sys import intern
from typing import Any, Unpack

from msgspec import Struct
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from reconciler.diagnostics import Details, DiagnosticCollector, Mark
from reconciler.files.yaml_document import (
    LONG,
    MERGE_TAG,
    NOT_ALWAYS_TEXT,
    NULL_TAG,
    NUMERIC,
    PREFIX,
    TEXT_TAG,
    TOO_DEEP,
    Document,
    Parser,
    Unknown,
    tag_of,
    tagged_value,
)
from reconciler.model.values import JSON, MISSING, Path, holds_reference
from reconciler.paths import MAX_DEPTH, MAX_NODES

AMBIGUOUS = frozenset({"ambiguous-yaml", "curly-quotes"})
"""The codes of errors in YAML that the parser accepts."""
DIFFERENT = "YAML readers and editors interpret this differently"
_MERGE = object()
"""The key `<<`."""
_TOO_MANY = f"more than {MAX_NODES:,} values"
_BOOLEAN_WORDS = {"yes": True, "on": True, "y": True, "no": False, "off": False, "n": False}
_HIDDEN_VALUE = re.compile(r"[ \t]+(#[^\s#'][^\n\r']*)")
"""A comment that was probably intended as a value: most have a space after #."""
_LOOK_ALIKE = re.compile(r"[“„‘‚”’«»]|(?![\x00-\x7f])\s")
_OPENING_QUOTES = "“„‘‚”’«"
_CLOSING_QUOTES = "”“’‘»"
_QUOTES = _OPENING_QUOTES + _CLOSING_QUOTES


class Unreadable(Exception):
    """Reading stopped, since a limit is exceeded. The error is reported."""


class _Anchor(Struct, frozen=True):
    """An anchor: its place, its value, MISSING inside of it, and the values and levels in that."""

    at: Mark
    value: JSON
    nodes: int = 0
    levels: int = 0


class Constructor:
    """The values of one file. `nodes` and `keys` are what its document has of them."""

    def __init__(self, document: Document, problems: DiagnosticCollector) -> None:
        text = document.text
        self.document = document
        self.text = text
        self.problems = problems
        self.event: Callable[[], Any] = Parser(text).get_event
        self.decorated = "&" in text or "!" in text
        """Whether an anchor or a tag is possible. Few files have these characters."""
        self.looks_alike = not text.isascii() and _LOOK_ALIKE.search(text) is not None
        self.ordinary = not self.decorated and not self.looks_alike
        self.nodes = 0
        self.deepest = 0
        """The lowest level in the anchor that is read."""
        self.keys: dict[Path, Mark] = {}
        self.anchors: dict[str, _Anchor] = {}
        self.known: dict[str, str] = {}
        """Keys that are text, quoted or not. Most keys repeat."""

    def document_value(self) -> JSON:
        """Return the value of the only document. Raises yaml.YAMLError and Unreadable."""
        self.event()
        if self.event().__class__ is StreamEndEvent:
            return None
        value = self._value(self.event(), 0)
        self.event()
        another = self.event()
        if another.__class__ is not StreamEndEvent:
            message = "a file must contain one document, but another one starts here"
            self.error("several-documents", message, another)
            raise Unreadable
        return value

    def error(self, code: str, message: str, event: Any, **details: Unpack[Details]) -> None:
        """Report an error at an event."""
        details["at"] = self.document.mark_of(event)
        self.problems.error(code, message, **details)

    def _value(self, event: Any, depth: int, upper: str | None = None) -> JSON:
        """Return a value. `upper` is its key if the places of its keys are needed."""
        if event.__class__ is AliasEvent:
            return self._alias(event, depth)
        if event.__class__ is ScalarEvent:
            text: str = event.value
            is_plain = event.implicit[0] and event.tag is None
            if is_plain and text and text[0] not in NOT_ALWAYS_TEXT and not self.looks_alike:
                value: JSON = text
            else:
                value = self._scalar(event)
            if self.decorated and event.anchor is not None:
                self._define(event, value, 1)
            return value
        self._descend(depth, event)
        if event.anchor is None:
            return self._collection(event, depth, upper)
        self._define(event, MISSING)
        nodes, deepest = self.nodes, self.deepest
        self.deepest = depth
        value = self._collection(event, depth, upper)
        self._define(event, value, self.nodes - nodes, self.deepest - depth)
        self.deepest = max(deepest, self.deepest)
        return value

    def _descend(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            self.error("too-deep", TOO_DEEP, event)
            raise Unreadable
        self.deepest = max(self.deepest, depth)

    def _collection(self, start: Any, depth: int, upper: str | None) -> JSON:
        value: JSON
        if start.__class__ is MappingStartEvent:
            value = self._mapping(start, depth, upper)
            kind = "map"
        else:
            value, kind = [], "seq"
            while (event := self.event()).__class__ is not SequenceEndEvent:
                value.append(self._value(event, depth + 1))
            self._count(len(value) + 1, start, "file-too-large", _TOO_MANY)
            self._check_end(event, start)
        if start.tag not in (None, f"{PREFIX}{kind}"):
            return self._unknown_tag(start)
        return value

    def _mapping(self, start: Any, depth: int, upper: str | None) -> JSON:
        own: dict[str, JSON] = {}
        merged: dict[str, JSON] = {}
        places: dict[str, Any] = {}
        misread = False
        # Read once, since this loop takes most of the time.
        next_event, known, decorated = self.event, self.known, self.decorated
        ordinary, flow = self.ordinary, start.flow_style
        while (event := next_event()).__class__ is not MappingEndEvent:
            key = known.get(event.value) if event.__class__ is ScalarEvent else None
            if key is None or (decorated and (event.tag or event.anchor)):
                key = self._key(event, depth)
            if flow and self.text[event.start_mark.index - 1] == "?":
                hint = "quote text that begins with ?"
                self.error("ambiguous-yaml", DIFFERENT, event, hint=hint)
            if key is _MERGE:
                self._merge(next_event(), depth, into=merged)
                continue
            value_event = next_event()
            text: Any = value_event.value if value_event.__class__ is ScalarEvent else None
            if text and ordinary and value_event.implicit[0] and text[0] not in NOT_ALWAYS_TEXT:
                value: JSON = text
            else:
                value = self._value(value_event, depth + 1, None if depth else key)
            if key is None:
                misread = True
            elif key in own:
                first = ((self.document.mark_of(places[key]), "first defined here"),)
                self.error("duplicate-key", f"duplicate key '{key}'", event, related=first)
            else:
                own[key] = value
                places[key] = event
                if upper is not None:
                    self.keys[upper, key] = self.document.mark_of(event)
        self._count(len(own) + 1, start, "file-too-large", _TOO_MANY)
        self._check_end(event, start)
        if misread and not own and not merged:
            return Unknown()
        return {**merged, **own} if merged else own

    def _count(self, nodes: int, event: Any, code: str, message: str) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            self.error(code, message, event)
            raise Unreadable

    def _check_end(self, end: Any, start: Any) -> None:
        """Report a comment directly after a value in quotes or brackets."""
        if end is not start and not start.flow_style:
            return
        index = end.end_mark.index
        if self.text[index : index + 1] == "#":
            at = Mark(self.document.file, end.end_mark.line + 1, end.end_mark.column + 1)
            hint = "put a space before a comment, or quote a value that contains #"
            self.problems.error("ambiguous-yaml", DIFFERENT, at=at, hint=hint)

    def _define(self, event: Any, value: JSON, nodes: int = 0, levels: int = 0) -> None:
        """Remember the value of an anchor, MISSING while it is read. Report a second one."""
        known = self.anchors.get(event.anchor)
        at = self.document.mark_of(event)
        if known is not None and known.at != at:
            message = f"anchor '{event.anchor}' is defined twice"
            related = ((known.at, "first defined here"),)
            self.error("duplicate-anchor", message, event, related=related)
            raise Unreadable
        self.anchors[event.anchor] = _Anchor(at, value, nodes, levels)

    def _alias(self, event: Any, depth: int) -> JSON:
        anchor = self.anchors.get(event.anchor)
        if anchor is None:
            message = "unknown alias: no anchor above it in this file"
            self.error("unknown-alias", message, event)
            raise Unreadable
        if anchor.value is MISSING:
            self.problems.error("recursive-alias", "alias contains itself", at=anchor.at)
            return Unknown()
        self._count(anchor.nodes, event, "alias-bomb", f"{_TOO_MANY} after aliases are expanded")
        self._descend(depth + anchor.levels, event)
        return anchor.value

    def _merge(self, event: Any, depth: int, *, into: dict[str, JSON]) -> None:
        """Add the members of a merge key. Earlier sources take precedence."""
        is_list = event.__class__ is SequenceStartEvent
        sources: Iterable[Any] = iter(self.event, None) if is_list else [event]
        for source in sources:
            if source.__class__ is SequenceEndEvent:
                break
            value = self._value(source, depth)
            if isinstance(value, dict):
                for key, item in value.items():
                    into.setdefault(key, item)
            elif not isinstance(value, Unknown):
                message = "a merge key must have a mapping, or a list of mappings"
                self.error("bad-merge", message, source)

    def _unknown_tag(self, event: Any) -> Unknown:
        tag = event.tag.replace(PREFIX, "!!")
        fix = "write ${env:NAME}" if tag.lower() in ("!env", "!env_var") else None
        self.error("unknown-tag", f"unknown tag {tag}", event, hint=fix)
        return Unknown()

    def _key(self, event: Any, depth: int) -> Any:
        """Return a key, `_MERGE` for a merge key, None for what is no key."""
        if event.__class__ is not ScalarEvent:
            value = self._value(event, depth + 1)
            if isinstance(value, str):  # An alias.
                return value
            hint = (
                "quote a value that starts with { or [; for templates such as {{ … }}, use "
                "${var:NAME}"
            )
            self.error("bad-key", "a key must be text, not a list or a mapping", event, hint=hint)
            return None
        key: str = event.value
        tag = self._tag(event)
        if event.anchor is not None:
            self._define(event, key, 1)
        if tag == MERGE_TAG:
            return _MERGE
        if tag != TEXT_TAG and not event.style and key.lower() not in ("y", "n"):
            if key.lower() not in _BOOLEAN_WORDS:
                shown = key or "null"
                message = f"key {shown} must be text"
                self.error("bad-key", message, event, hint=f"quote it: '{shown}'")
                return None
            message = f"ambiguous key {key}: some YAML readers take it for true or false"
            self.error("ambiguous-boolean", message, event, hint=f"quote it: '{key}'")
        if self.looks_alike and not event.style and not key.isascii():
            is_odd = isinstance(self._look_alike(key, event), Unknown)
            return key.strip(_QUOTES).strip() if is_odd else key
        if holds_reference(key):
            self.error("reference-in-key", "a key must not contain a reference", event)
        elif key and event.tag is None and tag_of(key) == TEXT_TAG:
            self.known[key] = key = intern(key)
        return key

    def _tag(self, event: Any) -> str:
        if event.tag is not None:
            return str(event.tag)
        if not event.implicit[0]:
            return TEXT_TAG
        return tag_of(event.value) if event.value else NULL_TAG

    def _scalar(self, event: Any) -> JSON:
        """Return the value of a scalar, which may be other than text."""
        tag, text = self._tag(event), str(event.value)
        if event.style:
            if event.style in ("'", '"'):
                self._check_end(event, event)
            return text if tag == TEXT_TAG else self._unknown_tag(event)
        if not text and tag == NULL_TAG:
            return self._nothing(event.end_mark)
        value = tagged_value(tag, text)
        if value is not MISSING:
            is_odd = self.looks_alike and not text.isascii()
            return self._look_alike(text, event) if is_odd else value
        kind, word = tag.removeprefix(PREFIX), text.lower()
        if kind in ("int", "float") and NUMERIC.fullmatch(text):
            self._report_number(text, event)
        elif kind == "bool" and word in _BOOLEAN_WORDS:
            boolean = str(_BOOLEAN_WORDS[word]).lower()
            readers = f"some YAML readers take it for {boolean}, others for text"
            hint = f"write {boolean}, or quote it: '{text}'"
            self.error("ambiguous-boolean", f"ambiguous value {text}: {readers}", event, hint=hint)
        else:
            return self._unknown_tag(event)
        return Unknown()

    def _nothing(self, end: Any) -> JSON:
        """Return the value of no text, unknown if a comment was probably intended as one."""
        comment = _HIDDEN_VALUE.match(self.text, end.index)
        if comment is None:
            return None
        column = end.column + comment.start(1) - end.index + 1
        at = Mark(self.document.file, end.line + 1, column)
        hint = f"quote it: '{comment[1].rstrip()}'; write a space after # in a comment"
        self.problems.error("ambiguous-yaml", "no value: # begins a comment", at=at, hint=hint)
        return None if "ambiguous-yaml" in self.problems.lenient else Unknown()

    def _look_alike(self, text: str, event: Any) -> JSON:
        """Return a text, unknown if its quotes or spaces are ordinary characters to YAML."""
        if text[0] in _OPENING_QUOTES and text[-1] in _CLOSING_QUOTES and len(text) > 1:
            code, message = "curly-quotes", f"{text[0]} and {text[-1]} are not quotes in YAML"
            hint = f"write '{text[1:-1]}', or '{text}' for text with these quotes"
            self.error(code, message, event, hint=None if "'" in text else hint)
        elif text[0].isspace() or text[-1].isspace():
            code = "ambiguous-yaml"
            hint = "replace the unusual space at the edge of the text, or quote the text"
            self.error(code, DIFFERENT, event, hint=hint)
        else:
            return text
        return text if code in self.problems.lenient else Unknown()

    def _report_number(self, text: str, event: Any) -> None:
        shown = text if len(text) < LONG else f"{text[:LONG]}…"
        message = f"ambiguous number {shown}: readers of YAML and JSON interpret it differently"
        hint = f"write a finite decimal number within 64 bits, or quote it: '{shown}'"
        self.error("ambiguous-number", message, event, hint=hint)
