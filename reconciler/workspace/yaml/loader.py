"""Strict YAML: text to `Document`, with every surprise of YAML 1.1 reported.

The text is composed once with PyYAML's C parser while the garbage collector is paused (the largest
single speed-up that was measured), then values are built from the nodes in one pass (`construct`).
"""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from yaml.reader import ReaderError

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.workspace.yaml.construct import TOO_DEEP, construct
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.nodes import TooDeep, compose

MAX_BYTES = 10_000_000
_BYTE_ORDER_MARK = "\ufeff"
_NO_BREAK_SPACE = "\xa0"
_NOT_YAML = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML does not allow as it is; a byte order mark inside a text is there by mistake."""
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def parse(raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
    """The document of a file. What is wrong with it goes to `problems`; never raises."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, unread=True)
    unread = Document(file, text=text, unread=True)
    joined = _BYTE_ORDER_MARK in text
    if joined:
        problems.error(
            "byte-order-mark",
            "there is an invisible byte order mark inside this file",
            at=_place(file, text, text.index(_BYTE_ORDER_MARK)),
        )
    try:
        with collector_paused():
            return construct(file, text, compose(text), problems)
    except yaml.YAMLError as error:
        if not joined:
            _report_syntax(error, text, unread, problems)
    except TooDeep as error:
        problems.error("too-deep", TOO_DEEP, at=Mark(file, *error.args))
    except RecursionError:
        problems.error("too-deep", TOO_DEEP, at=Mark(file))
    return unread


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


def _decoded(raw: bytes, file: str, problems: DiagnosticCollector) -> str | None:
    if len(raw) > MAX_BYTES:
        problems.error(
            "file-too-large",
            f"this file has {len(raw):,} bytes, and {MAX_BYTES:,} are allowed",
            at=Mark(file),
        )
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        wide = b"\0\0" in raw[:4]
        problems.error(
            "bad-encoding",
            f"this file is UTF-{32 if wide else 16}, or no text at all",
            at=Mark(file),
            hint="save it as UTF-8",
        )
        return None
    try:
        # One mark at the beginning is what some editors write, and harmless.
        raw = raw.removeprefix(BOM_UTF8)
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        problems.error(
            "bad-encoding",
            f"byte 0x{raw[error.start]:02x} is not UTF-8",
            at=_place(file, before, len(before)),
            hint="save the file as UTF-8",
        )
        return None


def _report_syntax(
    error: yaml.YAMLError, text: str, document: Document, problems: DiagnosticCollector
) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    file, what = document.file, str(getattr(error, "problem", None) or "this is not YAML")
    at = Mark(file, mark.line + 1, mark.column + 1) if mark is not None else Mark(file)
    if document.lines and at.line > len(document.lines):
        # The end of the file, where there is nothing to show: the end of its last line.
        at = Mark(file, len(document.lines), len(document.line(len(document.lines))) + 1)
    line = document.line(at.line)
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        problems.error(
            "control-character",
            f"there is a character here that no YAML may hold: U+{ord(unprintable[0]):04X}",
            at=_place(file, text, unprintable.start()),
        )
    elif "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in what:
        problems.error(
            "tab-indent",
            "a tab can't indent YAML",
            at=Mark(file, at.line, line.index("\t") + 1 if "\t" in line else at.column),
        )
    elif "but found another document" in what:
        problems.error(
            "several-documents",
            "a file holds one document, and here another one begins",
            at=at,
        )
    elif "undefined alias" in what:
        problems.error(
            "unknown-alias",
            "this alias has no anchor above it in this file",
            at=at,
        )
    else:
        began = getattr(error, "context_mark", None)
        if what in _REPORTED_LATE and began is not None:
            what, hint = _REPORTED_LATE[what], _SYNTAX_HINTS[what]
            at = Mark(file, began.line + 1, began.column + 1)
        else:
            hint = _SYNTAX_HINTS.get(what, "look for a quote or bracket that is not closed above")
        if _NO_BREAK_SPACE in document.line(at.line):
            hint = "there is a no-break space in this line: replace it by a space"
        message = f"this is not YAML: {what}"
        problems.error("bad-yaml", message, at=at, hint=hint, related=_context(error, at))


def _context(error: yaml.YAMLError, at: Mark) -> tuple[tuple[Mark, str], ...]:
    """Return where the broken part begins, if the parser knows."""
    mark, context = getattr(error, "context_mark", None), getattr(error, "context", None)
    words = _CONTEXTS.get(str(context))
    if mark is None or words is None or (mark.line + 1, mark.column + 1) == (at.line, at.column):
        return ()
    return ((Mark(at.file, mark.line + 1, mark.column + 1), f"the {words} begins here"),)


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
    "could not find expected ':'": "this line has no colon with a space after it",
    "found unexpected end of stream": "this quote is not closed",
}
"""What the parser notices only later: reported where it began."""
_SYNTAX_HINTS = {
    "mapping values are not allowed in this context": "quote a value that contains ': ', or check "
    "the indentation of this line",
    "could not find expected ':'": "a key needs a colon and a space after it; text over several "
    "lines needs | and indentation",
    "did not find expected key": "check the quotes on this line, and its indentation",
    "did not find expected node content": "something that begins with [ or { is not closed, or a "
    "comma is too many",
    "did not find expected <document start>": "check what is before: the mapping, list or "
    "document has ended there",
    "did not find expected comment or line break": "after | or > the text begins on the next line; "
    "or quote it",
    "did not find expected alphabetic or numeric character": "quote a value that begins with * "
    "or &",
    "did not find expected hexdecimal number": "\\u takes four hexadecimal digits",
    "found invalid Unicode character escape code": "write the character itself",
    "found undefined tag handle": "remove the tag: only plain YAML is read",
    "found unknown directive name": "quote it, or remove the line: a % in column 1 is a directive",
    "found incompatible YAML document": "remove the line: YAML 1.1 and 1.2 are read",
    "did not find expected ',' or ']'": "close the list with ], and quote what contains a comma",
    "did not find expected ',' or '}'": "close the mapping with }, and quote what contains { or }",
    "did not find expected '-' indicator": "begin each item of a list in the same column",
    "found character that cannot start any token": "quote a value that begins with @, ` or %",
    "found unexpected end of stream": "close it, or quote with the other kind",
    "found unknown escape character": "double the backslash, or use single quotes",
    "block sequence entries are not allowed in this context": "put the list on lines of its own",
}
