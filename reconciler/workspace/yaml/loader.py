"""Parse strict YAML to a `Document`, and report syntax errors and ambiguous YAML.

The parser's events give the values of a file with nothing to report, in half the time of its nodes.
`construct` reads all other files, and finds what to report. Pausing the garbage collector while
parsing is the largest speed-up that was measured. `ParsedFiles` reads equal files once.
"""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from sys import intern
from typing import Any, TypeAlias

import yaml
from msgspec import Struct
from yaml import Node
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.model.values import JSON, MISSING, Path, leaves, value_at
from reconciler.workspace.sources import (
    MAX_DEPTH,
    MAX_FILE_BYTES,
    MAX_NODES,
    MAX_TAG_LINES,
    too_large,
)
from reconciler.workspace.yaml.document import (
    NOT_ALWAYS_TEXT,
    OTHER_BREAK,
    TEXT_TAG,
    TOO_DEEP,
    Document,
    Parser,
    TooLarge,
    Unknown,
    compose,
    place,
    plain_value,
    tag_of,
)

Parse: TypeAlias = Callable[[bytes, str, DiagnosticCollector], Document]
"""Return the document of a file from its content and name; errors go to the collector."""

AMBIGUOUS = frozenset({"ambiguous-yaml", "curly-quotes"})
"""The codes of errors in YAML that the parser accepts."""
_SUSPICIOUS = (
    # Patterns that begin with a literal are several times faster than others.
    ("#", r"""#(?<=["'\]}\[{,:|>0-9+-]#)"""),
    ("-", r"-(?<=[\s\[{,]-)[,\]}]"),
    ("!", r"!(?<![^\s\[{,]!)[\s,\]}]"),
    ("&", r"&(?<![^\s\[{,]&)[\w-]*+[?:,\]}%@`]"),
    ("*", r"\*(?<![^\s\[{,]\*)[\w-]*+[?:,\]}%@`]"),
    # A quote at the beginning of a value that does not end in the line.
    ('"', r"""(?m)["](?<![^\s\[{,:]["])[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\\?$"""),
    ("'", r"(?m)'(?<![^\s\[{,:]')[^'\n]*+(?:''[^'\n]*+)*+$"),
    # A comment below the empty lines of a text.
    ("|", r"\|[-+0-9]*[ \t]*\r?\n(?:[ \t]*\r?\n)+[ \t]+#"),
    (">", r">[-+0-9]*[ \t]*\r?\n(?:[ \t]*\r?\n)+[ \t]+#"),
    ("?", r"[\[{,]\s*\?"),
)
"""A character, and a pattern to search for if a text contains it, compiled then."""
_LOOK_ALIKE = re.compile(r"[“„‘‚”’«»]|(?![\x00-\x7f])\s")
_BYTE_ORDER_MARK = "\ufeff"
_TAG_LINE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")
_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")
_COMMENT = re.compile(r"\s+#\w")


def parse(
    raw: bytes, file: str, problems: DiagnosticCollector, *, keep_nodes: bool = False
) -> Document:
    """Return the document of a file, with its nodes if asked. Errors go to `problems`."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, unread=True)
    unread = Document(file, text=text, unread=True)
    joined = _BYTE_ORDER_MARK in text
    if joined:
        problems.error(
            "byte-order-mark",
            "byte order mark inside the file",
            at=place(file, text, text.index(_BYTE_ORDER_MARK)),
        )
    if "%TAG" in text and len(_TAG_LINE.findall(text)) > MAX_TAG_LINES:
        message = f"invalid YAML: more than {MAX_TAG_LINES} lines with %TAG"
        problems.error(
            "bad-yaml", message, at=Mark(file), hint="remove them; tags are not supported"
        )
        return unread
    try:
        with collector_paused():
            document = read_plain(file, text) if not (joined or keep_nodes) else None
            if document is None:
                document = read_nodes(file, text, compose(text), problems, keep=keep_nodes)
    except yaml.YAMLError as error:
        if not joined:
            from reconciler.workspace.yaml.errors import report_syntax

            report_syntax(error, text, unread, problems)
    except TooLarge as error:
        code, message, *place_of = error.args
        problems.error(code, message, at=Mark(file, *place_of))
    except RecursionError:
        problems.error("too-deep", TOO_DEEP, at=Mark(file))
    else:
        _check_nul(document, problems)
        return document
    return unread


def _check_nul(document: Document, problems: DiagnosticCollector) -> None:
    """Report values with U+0000, which only an escape can write, and make them unknown."""
    values = list(leaves(document.value)) if _NUL.search(document.text) else []
    for path, value in values:
        if path and isinstance(value, str) and "\0" in value:
            message = "U+0000 in a value: the service cannot store it"
            problems.error("control-character", message, at=document.mark(path), hint="remove it")
            holder: Any = value_at(document.value, path[:-1])
            holder[path[-1]] = Unknown()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector while many values without cycles are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(raw: bytes, file: str, problems: DiagnosticCollector) -> str | None:
    if len(raw) > MAX_FILE_BYTES:
        error = too_large(file, len(raw))
        problems.error(error.code, error.message, at=Mark(file))
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        wide = b"\0\0" in raw[:4]
        problems.error(
            "bad-encoding",
            f"file must be UTF-8 text, not UTF-{32 if wide else 16} or binary",
            at=Mark(file),
            hint="save the file as UTF-8",
        )
        return None
    try:
        # Some editors write one mark at the beginning, which is harmless.
        raw = raw.removeprefix(BOM_UTF8)
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        problems.error(
            "bad-encoding",
            f"byte 0x{raw[error.start]:02x} is not valid UTF-8",
            at=place(file, before, len(before)),
            hint="save the file as UTF-8",
        )
        return None


class _Unusual(Exception):
    """The file has an error, an anchor, a tag or a merge key, or very many values."""


def read_plain(file: str, text: str) -> Document | None:
    """Return the document of a file, None for one that must be read from its nodes."""
    reader = _Reader(file, text)
    try:
        value = reader.document()
    except (_Unusual, yaml.YAMLError):
        return None
    if may_look_alike(text):
        return None
    if reader.wraps or is_suspicious(text):
        misread = DiagnosticCollector()
        from reconciler.workspace.yaml.errors import check_tokens

        check_tokens(file, text, misread)
        if misread.diagnostics:
            return None
    return Document(file, value, text, False, reader.keys, reader.nodes)


def read_nodes(
    file: str, text: str, node: Node | None, problems: DiagnosticCollector, *, keep: bool = False
) -> Document:
    """Return the document of a file's nodes, which it may keep. Errors go to `problems`."""
    # Most files are read without it.
    from reconciler.workspace.yaml.construct import Constructor

    places = Document(file, text=text, composed=node)
    constructor = Constructor(places, problems)
    reported = len(problems.diagnostics)
    value = constructor.value(node, 0) if node is not None else None
    misread = DiagnosticCollector(lenient=problems.lenient)
    suspicious = constructor.wraps or is_suspicious(text)
    if suspicious or may_look_alike(text):
        from reconciler.workspace.yaml.errors import check_look_alikes, check_tokens

        if suspicious:
            check_tokens(file, text, misread)
        check_look_alikes(places, misread)
    if misread.failed:
        # Errors in values that are read wrongly would be misleading.
        problems.diagnostics[reported:] = misread.diagnostics
        return Document(file, text=text, unread=True)
    problems.diagnostics += misread.diagnostics
    kept = node if keep else None
    return Document(file, value, text, False, places.upper_keys(), constructor.nodes, kept)


def is_suspicious(text: str) -> bool:
    """Return whether a text may contain what `check_tokens` reports, except for indentation."""
    return (
        "\t" in text
        or "%YAML" in text
        or text.endswith(" ")
        or any(sign in text and re.search(pattern, text) for sign, pattern in _SUSPICIOUS)
        or (("\r" in text or not text.isascii()) and OTHER_BREAK.search(text) is not None)
    )


def may_look_alike(text: str) -> bool:
    """Return whether a text may contain what `check_look_alikes` reports."""
    return not text.isascii() and _LOOK_ALIKE.search(text) is not None


def _is_decorated(event: Any) -> bool:
    """Return whether an event has an anchor or a tag."""
    return event.tag is not None or event.anchor is not None


class _Reader:
    """The values of one file. `wraps`, `nodes` and `keys` are what a document has of them."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.event: Callable[[], Any] = Parser(text).get_event
        self.decorated = "&" in text or "!" in text
        """Whether an anchor or a tag is possible. Few files have these characters."""
        self.nodes = 0
        self.wraps = False
        self.keys: dict[Path, Mark] = {}
        self.known: dict[str, str] = {}
        """Keys that are text, quoted or not. Most keys repeat."""
        self.texts: dict[str, str] = {}
        """Values that are text. Many repeat, and one object for them takes less memory."""

    def document(self) -> JSON:
        """Return the value of the only document, which is a mapping."""
        self._expect(StreamStartEvent)
        self._expect(DocumentStartEvent)
        value = self._collection(self._expect(MappingStartEvent), 0)
        self._expect(DocumentEndEvent)
        self._expect(StreamEndEvent)
        return value

    def _expect(self, wanted: type[yaml.Event]) -> Any:
        event = self.event()
        if event.__class__ is not wanted:
            raise _Unusual
        return event

    def _collection(self, start: Any, depth: int, upper: str | None = None) -> JSON:
        """Return a mapping or a list. `upper` is its key if the places of its keys are needed."""
        if depth > MAX_DEPTH or _is_decorated(start):
            raise _Unusual
        value: dict[str, JSON] | list[JSON]
        if start.__class__ is MappingStartEvent:
            value = {}
            end = self._fill_mapping(value, depth, upper)
        else:
            value = []
            end = self._fill_list(value, depth)
        self.nodes += len(value) + 1
        if 2 * self.nodes > MAX_NODES:  # Composing counts keys too.
            raise _Unusual
        if start.flow_style and start.start_mark.line != end.end_mark.line:
            self.wraps = True
        return value

    def _fill_mapping(self, members: dict[str, JSON], depth: int, upper: str | None) -> Any:
        """Read the members of a mapping. Return the event that ends it."""
        next_event, known, texts = self.event, self.known, self.texts
        decorated = self.decorated
        while True:
            event = next_event()
            if event.__class__ is not ScalarEvent:
                if event.__class__ is MappingEndEvent:
                    return event
                raise _Unusual
            key = known.get(event.value) or self._key(event)
            if key in members or (decorated and _is_decorated(event)):
                raise _Unusual
            if upper is not None:
                self._mark(upper, key, event)
            event = next_event()
            if event.__class__ is ScalarEvent:
                text = event.value
                if decorated and _is_decorated(event):
                    raise _Unusual
                plain = text and text[0] not in NOT_ALWAYS_TEXT
                members[key] = texts.setdefault(text, text) if plain else self._scalar(event)
            elif event.__class__ is AliasEvent:
                raise _Unusual
            else:
                members[key] = self._collection(event, depth + 1, None if depth else key)

    def _fill_list(self, items: list[JSON], depth: int) -> Any:
        """Read the items of a list. Return the event that ends it."""
        while True:
            event = self.event()
            if event.__class__ is SequenceEndEvent:
                return event
            if event.__class__ is ScalarEvent:
                items.append(self._scalar(event))
            elif event.__class__ is AliasEvent:
                raise _Unusual
            else:
                items.append(self._collection(event, depth + 1))

    def _key(self, event: Any) -> str:
        key: str = event.value
        if not key or "$" in key:
            raise _Unusual
        if tag_of(key) == TEXT_TAG:
            self.known[key] = key = intern(key)
        elif event.implicit[0]:
            raise _Unusual
        return key

    def _scalar(self, event: Any) -> JSON:
        if self.decorated and _is_decorated(event):
            raise _Unusual
        text: str = event.value
        if not event.implicit[0] or (text and text[0] not in NOT_ALWAYS_TEXT):
            return self.texts.setdefault(text, text)
        if not text:
            if _COMMENT.match(self.text, event.end_mark.index):
                raise _Unusual
            return None
        value = plain_value(text)
        if value is MISSING:
            raise _Unusual
        return value

    def _mark(self, upper: str, key: str, event: Any) -> None:
        """Remember the place of the key of a resource."""
        start, end = event.start_mark, event.end_mark
        if start.line != end.line:
            raise _Unusual
        length = max(1, end.column - start.column)
        self.keys[upper, key] = Mark(self.file, start.line + 1, start.column + 1, length)


class _Parsed(Struct, frozen=True):
    """A document, and the diagnostics that a collector with these settings has of it."""

    document: Document
    diagnostics: tuple[Diagnostic, ...] = ()
    strict: bool = False
    lenient: frozenset[str] = frozenset()

    def fits(self, raw: bytes, problems: DiagnosticCollector) -> bool:
        settings = (self.strict, self.lenient) == (problems.strict, problems.lenient)
        same = self.document.text.encode() == raw.removeprefix(BOM_UTF8)
        return same and (settings or not self.diagnostics)


class ParsedFiles:
    """The documents of several loads, by file and content."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Begin with documents that have neither errors nor warnings."""
        self._parsed = {document.file: [_Parsed(document)] for document in documents}

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        parsed = self._parsed.setdefault(file, [])
        known = next((one for one in parsed if one.fits(raw, problems)), None)
        if known is None:
            own = DiagnosticCollector(strict=problems.strict, lenient=problems.lenient)
            document = parse(raw, file, own)
            known = _Parsed(document, tuple(own.diagnostics), own.strict, own.lenient)
            parsed.append(known)
        problems.diagnostics += known.diagnostics
        return known.document
