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
from yaml.reader import ReaderError

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.errors import LoadingStopped
from reconciler.files.yaml_construct import DIFFERENT, Constructor, Unreadable
from reconciler.files.yaml_document import TOO_DEEP, Document, Unknown, place
from reconciler.model.values import leaves, value_at
from reconciler.paths import MAX_FILE_BYTES, too_large

Parse: TypeAlias = Callable[[bytes, str, DiagnosticCollector], Document]
"""Return the document of a file from its content and name; errors go to the collector."""

_UNUSUAL_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_BYTE_ORDER_MARK = "\ufeff"
_TAG_LINE = re.compile(r"^%TAG", re.MULTILINE)
_NUL = re.compile(r"\\(?:0|x00|u0000|U00000000)")
_NOT_YAML = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that YAML does not allow unescaped."""
_CONFLICT_MARKER = re.compile(r"^(?:(<{7}|\|{7}|>{7})(?= |\r?$)|={7}\r?$)", re.MULTILINE)
_SPACE_IN_INDENT = re.compile(r"[ \t]*?([\t\xa0\u1680\u2000-\u200b\u202f\u205f\u3000])")
_VALUE = re.compile(r"""(?:^|[:,\[{-])\s*(?P<value>['"\[{].*['"\]}])$""")
"""A value in quotes or brackets that ends a text."""
_ENDS_WITH_COMMENT = re.compile(r"\s+#.*")


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


def report_syntax(
    error: yaml.YAMLError, text: str, document: Document, problems: DiagnosticCollector
) -> None:
    """Report the error for which the parser stopped."""
    file = document.file
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        message = f"control character U+{ord(unprintable[0]):04X} is not allowed in YAML"
        problems.error("control-character", message, at=place(file, text, unprintable.start()))
    elif (marker := _CONFLICT_MARKER.search(text)) is not None:
        at = place(file, text, marker.start())
        problems.error("conflict-marker", f"merge conflict marker {marker[0].strip()}", at=at)
    else:
        _report(error, document, problems)


_Cause: TypeAlias = tuple[str, str, Mark, str]
"""The code of an error, what is wrong, where, and the fix."""


def _report(error: yaml.YAMLError, document: Document, problems: DiagnosticCollector) -> None:
    """Report the error of the parser under the code of its cause."""
    what = str(getattr(error, "problem", None) or "syntax error")
    began = _place_of(document, getattr(error, "context_mark", None))
    at = _place_of(document, getattr(error, "problem_mark", None)) or began or Mark(document.file)
    if "nesting depth" in what:
        problems.error("too-deep", TOO_DEEP, at=at)
        return
    related: tuple[tuple[Mark, str], ...] = ()
    cause = _whitespace(document, what, at, began) or _text_after_value(document, what, at)
    if cause is None:
        hint = _HINTS.get(what, "look for an unclosed quote or bracket above")
        is_above = began is not None and began.line < at.line
        if began is not None and what in _NOTICED_LATE and (is_above or what == _END):
            what, at = _NOTICED_LATE[what], began
        elif began is not None and is_above:
            related = ((began, str(getattr(error, "context", None))),)
        if "\xa0" in document.line(at.line):
            hint = "replace the no-break space in this line by a space"
        cause = ("bad-yaml", f"invalid YAML: {what}", at, hint)
    code, message, at, hint = cause
    problems.error(code, message, at=at, hint=hint, related=related)


def _whitespace(document: Document, what: str, at: Mark, began: Mark | None) -> _Cause | None:
    """Return the tab at the error, or a tab or an unusual space that changes the indentation."""
    tab = "tab-indent", "tab where YAML allows only spaces", at, "replace the tab by spaces"
    if document.line(at.line)[at.column - 1 : at.column] == "\t" and "token" in what:
        return tab
    first = min(at.line - 1, began.line if began is not None else at.line)
    for number in range(at.line, first - 1, -1):
        space = _SPACE_IN_INDENT.match(document.line(number))
        if space is None or (space[1] == "\t" and number < at.line):
            continue
        there = Mark(at.file, number, space.end())
        if space[1] == "\t":
            return *tab[:2], there, tab[3]
        message = "invalid YAML: no-break or other unusual space in the indentation"
        return "bad-yaml", message, there, "indent with ordinary spaces"
    return None


def _text_after_value(document: Document, what: str, at: Mark) -> _Cause | None:
    """Return the text that follows a value in quotes or brackets, such as in `{year}/{month}`."""
    line, column = document.line(at.line), at.column - 1
    value = _VALUE.search(line[:column].rstrip(" "))
    if not what.startswith("did not find expected") or value is None:
        return None
    if line[column : column + 1] in ",]}#":  # Or at the end of the line.
        return None
    rest = _ENDS_WITH_COMMENT.sub("", line[value.start("value") :]).rstrip()
    closing = value["value"][-1]
    if closing in "]}":
        hint = f"quote a value that begins with {rest[0]}"
        hint += "" if "'" in rest else f": '{rest}'"
    elif closing == "'":
        hint = "write an apostrophe inside single quotes twice, or use double quotes"
    else:
        hint = 'write \\" for a quote inside double quotes, or use single quotes'
    name = closing if closing in "]}" else "quote"
    return "bad-yaml", f"invalid YAML: text after the closing {name}", at, hint


def _place_of(document: Document, mark: yaml.Mark | None) -> Mark | None:
    if mark is None:
        return None
    last = len(document.lines)
    if last and mark.line >= last:
        # The end of the file has no line to show: use the end of the last line.
        return Mark(document.file, last, len(document.line(last)) + 1)
    return Mark(document.file, mark.line + 1, mark.column + 1)


_END = "found unexpected end of stream"
_NOTICED_LATE = {
    "could not find expected ':'": "no colon with a space after it in this line",
    _END: "unclosed quote",
    "did not find expected ',' or ']'": "this list is not closed, or lacks a comma",
    "did not find expected ',' or '}'": "this mapping is not closed, or lacks a comma",
}
"""Errors that the parser notices in a later line: reported at the start of the part it reads."""
_HINTS = {
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
