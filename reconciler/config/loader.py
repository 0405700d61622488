"""Strict YAML: text to `Document`, with every surprise of YAML 1.1 told instead of taken.

The text is composed once with PyYAML's C parser while the garbage collector is paused (the largest
single speed-up that was measured), then values are built from the nodes in one pass (`building`).
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

import yaml
from yaml.reader import ReaderError

from reconciler.config.building import TOO_DEEP, build
from reconciler.config.composing import TooDeep, compose
from reconciler.config.document import Document
from reconciler.errors import Mark, Problems

MAX_BYTES = 10_000_000
_BYTE_ORDER_MARK = "\ufeff"
_NOT_YAML = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML does not allow as it is; a byte order mark inside a text is there by mistake."""


def parse(raw: bytes, file: str, problems: Problems) -> Document:
    """The document of a file. What is wrong with it goes to `problems`; never raises."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, unread=True)
    unread = Document(file, text=text, unread=True)
    joined = _BYTE_ORDER_MARK in text
    if joined:
        problems.error(
            "byte-order-mark",
            "there is a byte order mark inside this file, which nobody sees",
            at=_place(file, text, text.index(_BYTE_ORDER_MARK)),
            hint="remove it; it comes from joining two files",
        )
    try:
        with collector_paused():
            return build(file, text, compose(text), problems)
    except yaml.YAMLError as error:
        if not joined:
            _tell_syntax(error, text, unread, problems)
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


def _decoded(raw: bytes, file: str, problems: Problems) -> str | None:
    if len(raw) > MAX_BYTES:
        problems.error(
            "file-too-large",
            f"this file has {len(raw):,} bytes, and {MAX_BYTES:,} are allowed",
            at=Mark(file),
            hint="split it: resources may stand in any number of files",
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


def _tell_syntax(error: yaml.YAMLError, text: str, document: Document, problems: Problems) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    file, what = document.file, str(getattr(error, "problem", None) or "this is not YAML")
    at = Mark(file, mark.line + 1, mark.column + 1) if mark is not None else Mark(file)
    line = document.line(at.line)
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        problems.error(
            "control-character",
            f"there is a character here that no YAML may hold: U+{ord(unprintable[0]):04X}",
            at=_place(file, text, unprintable.start()),
            hint="remove it, or write it as an escape inside double quotes",
        )
    elif "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in what:
        problems.error(
            "tab-indent",
            "a tab can't indent YAML",
            at=Mark(file, at.line, line.index("\t") + 1 if "\t" in line else at.column),
            hint="indent with spaces",
        )
    elif "but found another document" in what:
        problems.error(
            "several-documents",
            "a file holds one document, and here another one begins",
            at=at,
            hint="put it into a file of its own",
        )
    elif "undefined alias" in what:
        problems.error(
            "unknown-alias", what, at=at, hint="define the anchor (&name) above its use (*name)"
        )
    else:
        problems.error(
            "bad-yaml",
            f"this is not YAML: {what}",
            at=at,
            hint=_SYNTAX_HINTS.get(what),
            related=_context(error, file),
        )


def _context(error: yaml.YAMLError, file: str) -> tuple[tuple[Mark, str], ...]:
    """Where what is broken began, if the parser tells."""
    mark, told = getattr(error, "context_mark", None), getattr(error, "context", None)
    if mark is None or told is None:
        return ()
    return ((Mark(file, mark.line + 1, mark.column + 1), str(told)),)


def _place(file: str, text: str, position: int) -> Mark:
    lines = text[: position + 1].splitlines()
    return Mark(file, len(lines), max(1, len(lines[-1])))


_SYNTAX_HINTS = {
    "mapping values are not allowed in this context": "quote a value that contains ': '",
    "could not find expected ':'": "a key needs a colon and a blank after it",
    "did not find expected key": "check the indentation of this line and the one above",
    "did not find expected node content": "something that begins with [ or { is not closed",
    "did not find expected ',' or ']'": "close the list with ], and quote what contains a comma",
    "did not find expected ',' or '}'": "close the mapping with }, and quote what contains { or }",
    "did not find expected '-' indicator": "begin each item of a list in the same column",
    "found character that cannot start any token": "quote a value that begins with @, ` or %",
    "found unexpected end of stream": "a quote is not closed",
    "found unknown escape character": "double the backslash, or use single quotes",
    "block sequence entries are not allowed in this context": "put the list on lines of its own",
}
