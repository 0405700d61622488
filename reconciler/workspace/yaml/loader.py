"""Parse strict YAML to a `Document`, and report syntax errors and ambiguous YAML.

Pausing the garbage collector while parsing is the largest speed-up that was measured.
"""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import yaml
from yaml.reader import ReaderError

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.workspace.limits import MAX_FILE_BYTES, MAX_TAG_LINES
from reconciler.workspace.sources import too_large
from reconciler.workspace.yaml.construct import TOO_DEEP, TOO_MANY, construct
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.nodes import TooDeep, TooMany, compose

Parse: TypeAlias = Callable[[bytes, str, DiagnosticCollector], Document]
"""Return the document of a file from its content and name; errors go to the collector."""

_BYTE_ORDER_MARK = "\ufeff"
_NO_BREAK_SPACE = "\xa0"
_NOT_YAML = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that YAML does not allow unescaped, and a byte order mark inside a text."""
_TAG_LINE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def parse(raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
    """Return the document of a file. Errors go to `problems`; never raises."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, unread=True)
    unread = Document(file, text=text, unread=True)
    joined = _BYTE_ORDER_MARK in text
    if joined:
        problems.error(
            "byte-order-mark",
            "byte order mark inside the file",
            at=_place(file, text, text.index(_BYTE_ORDER_MARK)),
        )
    if "%TAG" in text and len(_TAG_LINE.findall(text)) > MAX_TAG_LINES:
        message = f"invalid YAML: more than {MAX_TAG_LINES} lines with %TAG"
        problems.error(
            "bad-yaml", message, at=Mark(file), hint="remove them; tags are not supported"
        )
        return unread
    try:
        with collector_paused():
            return construct(file, text, compose(text), problems)
    except yaml.YAMLError as error:
        if not joined:
            _report_syntax(error, text, unread, problems)
    except TooDeep as error:
        problems.error("too-deep", TOO_DEEP, at=Mark(file, *error.args))
    except TooMany as error:
        problems.error("file-too-large", TOO_MANY, at=Mark(file, *error.args))
    except RecursionError:
        problems.error("too-deep", TOO_DEEP, at=Mark(file))
    return unread


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
            at=_place(file, before, len(before)),
            hint="save the file as UTF-8",
        )
        return None


def _report_syntax(
    error: yaml.YAMLError, text: str, document: Document, problems: DiagnosticCollector
) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    file, what = document.file, str(getattr(error, "problem", None) or "syntax error")
    at = Mark(file, mark.line + 1, mark.column + 1) if mark is not None else Mark(file)
    if document.lines and at.line > len(document.lines):
        # The end of the file has no line to show: use the end of the last line.
        at = Mark(file, len(document.lines), len(document.line(len(document.lines))) + 1)
    line = document.line(at.line)
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        problems.error(
            "control-character",
            f"control character U+{ord(unprintable[0]):04X} is not allowed in YAML",
            at=_place(file, text, unprintable.start()),
        )
    elif "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in what:
        problems.error(
            "tab-indent",
            "tab in the indentation",
            at=Mark(file, at.line, line.index("\t") + 1 if "\t" in line else at.column),
        )
    elif "but found another document" in what:
        problems.error(
            "several-documents",
            "a file must contain one document, but another one starts here",
            at=at,
        )
    elif "undefined alias" in what:
        problems.error("unknown-alias", "unknown alias: no anchor above it in this file", at=at)
    else:
        began = getattr(error, "context_mark", None)
        hint = _SYNTAX_HINTS.get(what, "look for an unclosed quote or bracket above")
        if what in _REPORTED_LATE and began is not None:
            what = _REPORTED_LATE[what]
            at = Mark(file, began.line + 1, began.column + 1)
        if _NO_BREAK_SPACE in document.line(at.line):
            hint = "replace the no-break space in this line by a space"
        message = f"invalid YAML: {what}"
        problems.error("bad-yaml", message, at=at, hint=hint, related=_context(error, at))


def _context(error: yaml.YAMLError, at: Mark) -> tuple[tuple[Mark, str], ...]:
    """Return the place where the invalid part starts, if the parser knows it."""
    mark, context = getattr(error, "context_mark", None), getattr(error, "context", None)
    words = _CONTEXTS.get(str(context))
    if mark is None or words is None or (mark.line + 1, mark.column + 1) == (at.line, at.column):
        return ()
    return ((Mark(at.file, mark.line + 1, mark.column + 1), f"the {words} starts here"),)


def _place(file: str, text: str, position: int) -> Mark:
    lines = _BREAK.split(text[:position])
    return Mark(file, len(lines), len(lines[-1]) + 1)


_CONTEXTS = {
    "while parsing a block mapping": "mapping",
    "while parsing a block collection": "list",
    "while parsing a flow mapping": "mapping",
    "while parsing a flow sequence": "list",
    "while parsing a quoted scalar": "quoted text",
    "while scanning a block scalar": "block of text",
}
_REPORTED_LATE = {
    "could not find expected ':'": "no colon with a space after it in this line",
    "found unexpected end of stream": "unclosed quote",
}
"""Errors that the parser notices later than they start: reported at the start."""
_SYNTAX_HINTS = {
    "mapping values are not allowed in this context": "quote a value that contains ': ', or check "
    "the indentation of this line",
    "could not find expected ':'": "add a colon and a space after the key; for text on several "
    "lines use | and indentation",
    "did not find expected key": "check the quotes on this line, and its indentation",
    "did not find expected node content": "close the list or mapping that starts with [ or {, or "
    "remove a comma",
    "did not find expected <document start>": "check the lines above: the mapping, list or "
    "document has ended there",
    "did not find expected comment or line break": "start the text after | or > on the next line, "
    "or quote it",
    "did not find expected alphabetic or numeric character": "quote a value that starts with * "
    "or &",
    "did not find expected hexdecimal number": "write four hexadecimal digits after \\u",
    "found invalid Unicode character escape code": "write the character itself",
    "found undefined tag handle": "remove the tag; tags are not supported",
    "found unknown directive name": "quote it, or remove the line; a % starts a directive",
    "found incompatible YAML document": "remove the line; YAML 1.1 and 1.2 are supported",
    "did not find expected ',' or ']'": "close the list with ], and quote items with a comma",
    "did not find expected ',' or '}'": "close the mapping with }, and quote values with { or }",
    "did not find expected '-' indicator": "start each item of a list in the same column",
    "found character that cannot start any token": "quote a value that starts with @, ` or %",
    "found unexpected end of stream": "close it, or use the other kind of quotes",
    "found unknown escape character": "double the backslash, or use single quotes",
    "block sequence entries are not allowed in this context": "start the list on the next line",
}
