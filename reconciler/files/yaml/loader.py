"""Parse strict YAML to a `Document`, and report syntax errors and ambiguous YAML.

Pausing the garbage collector while parsing is the largest speed-up that was measured.
`ParsedFiles` reads equal files once.
"""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import yaml

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.errors import LoadingStopped
from reconciler.files.yaml.construct import DIFFERENT, Constructor, Unreadable
from reconciler.files.yaml.document import Document, Unknown, place
from reconciler.model.values import leaves, value_at
from reconciler.paths import MAX_FILE_BYTES, too_large

Parse: TypeAlias = Callable[[bytes, str, DiagnosticCollector], Document]
"""Return the document of a file from its content and name; errors go to the collector."""

_UNUSUAL_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"
_TAG_LINE = re.compile(r"^%TAG", re.MULTILINE)
_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")


def parse(raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
    """Return the document of a file. Errors go to `problems`."""
    text = _decoded(raw, file, problems)
    unread = Document(file, text=text or "", unread=True)
    if text is None or not _may_be_parsed(file, text, problems):
        return unread
    constructor = Constructor(unread, problems)
    reported = len(problems.diagnostics)
    try:
        with collector_paused():
            value = constructor.document_value()
    except Unreadable:
        return unread
    except yaml.YAMLError as error:
        from reconciler.files.yaml.errors import report_syntax

        # Errors in values that are read wrongly would be misleading.
        del problems.diagnostics[reported:]
        report_syntax(error, text, unread, problems)
        return unread
    document = Document(file, value, text, False, constructor.keys, constructor.nodes)
    _check_nul(document, problems)
    return document


def _may_be_parsed(file: str, text: str, problems: DiagnosticCollector) -> bool:
    """Report what makes a text unfit for the parser. Return whether it can be parsed."""
    if (position := text.find(_BYTE_ORDER_MARK)) >= 0:
        message = "byte order mark inside the file"
        problems.error("byte-order-mark", message, at=place(file, text, position))
        return False
    if (tag := _TAG_LINE.search(text)) is not None:
        # The parser compares each such line with all others.
        hint = "remove it; tags are not supported"
        at = place(file, text, tag.start())
        problems.error("bad-yaml", "invalid YAML: line with %TAG", at=at, hint=hint)
        return False
    is_plain = text.isascii() and "\r" not in text
    unusual = None if is_plain else _UNUSUAL_BREAK.search(text)
    if unusual is not None:
        # Most editors show what follows as the rest of a line, or of a comment.
        code, sign = "ambiguous-yaml", f"U+{ord(unusual[0]):04X}"
        hint = f"replace {sign} by an ordinary line break, or by its escape in double quotes"
        problems.error(code, DIFFERENT, at=place(file, text, unusual.start()), hint=hint)
        return code in problems.lenient
    return True


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
        bits = 32 if b"\0\0" in raw[:4] else 16
        message = f"file must be UTF-8 text, not UTF-{bits} or binary"
        at = Mark(file)
    else:
        try:
            # Some editors write one mark at the beginning, which is harmless.
            raw = raw.removeprefix(BOM_UTF8)
            return raw.decode()
        except UnicodeDecodeError as error:
            before = raw[: error.start].decode()
            message = f"byte 0x{raw[error.start]:02x} is not valid UTF-8"
            at = place(file, before, len(before))
    problems.error("bad-encoding", message, at=at, hint="save the file as UTF-8")
    return None


class ParsedFiles:
    """The documents of several loads, by file and content."""

    def __init__(self) -> None:
        self._parsed: dict[object, tuple[Document, Sequence[Diagnostic]]] = {}

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._parsed)

    def clear(self) -> None:
        """Forget all documents."""
        self._parsed.clear()

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        # Errors depend on the settings of the collector.
        keys = (file, raw), (file, raw, problems.strict, problems.lenient)
        known = next((self._parsed[key] for key in keys if key in self._parsed), None)
        if known is None:
            own = DiagnosticCollector(strict=problems.strict, lenient=problems.lenient)
            try:
                known = parse(raw, file, own), own.diagnostics
            except LoadingStopped:
                problems.diagnostics += own.diagnostics
                raise
            self._parsed[keys[bool(own.diagnostics)]] = known
        problems.diagnostics += known[1]
        return known[0]
