"""Report the syntax errors of the parser with their causes and fixes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from yaml import tokens
from yaml.reader import ReaderError

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.workspace.yaml.document import Document, Parser
from reconciler.workspace.yaml.strictness import place, report_breaks

_NOT_YAML = re.compile(
    r"[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Characters that YAML does not allow unescaped, and a byte order mark inside a text."""
_CONFLICT_MARKER = re.compile(
    r"^(?P<marker><{7}|\|{7}|>{7})(?= |\r?$)|^(?P<middle>={7})\r?$", re.MULTILINE
)
_SPACE_IN_INDENT = re.compile(r"[ \t]*(?P<space>[\xa0\u1680\u2000-\u200b\u202f\u205f\u3000])")
_NO_BREAK_SPACE = "\xa0"
_ANCHOR = re.compile(r"&(?P<name>[\w-]+)")
_COMMENTS = re.compile("\\s*(?:#[^\n\r\x85\u2028\u2029]*\\s*)*")
_ENDS_WITH_COMMENT = re.compile(r"\s+#.*")
_AFTER_A_VALUE = frozenset(
    {
        "did not find expected '-' indicator",
        "did not find expected key",
        "did not find expected <document start>",
        "did not find expected ',' or ']'",
        "did not find expected ',' or '}'",
    }
)
"""What the parser reports at text directly after a value in quotes or brackets."""
_OPENING = (tokens.FlowSequenceStartToken, tokens.FlowMappingStartToken)
_CLOSING = (tokens.FlowSequenceEndToken, tokens.FlowMappingEndToken)


def report_syntax(
    error: yaml.YAMLError, text: str, document: Document, problems: DiagnosticCollector
) -> None:
    """Report the error for which the parser stopped, at its cause if that is known."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    file, what = document.file, str(getattr(error, "problem", None) or "syntax error")
    at = Mark(file, mark.line + 1, mark.column + 1) if mark is not None else Mark(file)
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        problems.error(
            "control-character",
            f"control character U+{ord(unprintable[0]):04X} is not allowed in YAML",
            at=place(file, text, unprintable.start()),
        )
        return
    if document.lines and at.line > len(document.lines):
        # The end of the file has no line to show: use the end of the last line.
        at = Mark(file, len(document.lines), len(document.line(len(document.lines))) + 1)
    if not (
        _report_conflict(text, file, problems)
        or _report_break(mark, text, file, problems)
        or _report_whitespace(error, what, at, document, problems)
        or _report_anchor(error, what, at, document, problems)
        or _report_text_after_value(what, at, mark, text, problems)
    ):
        _report_other(error, what, at, document, problems)


def _report_conflict(text: str, file: str, problems: DiagnosticCollector) -> bool:
    marker = _CONFLICT_MARKER.search(text)
    if marker is None:
        return False
    shown = marker["marker"] or marker["middle"]
    at = place(file, text, marker.start())
    problems.error("conflict-marker", f"merge conflict marker {shown}", at=at)
    return True


def _report_break(
    mark: yaml.Mark | None, text: str, file: str, problems: DiagnosticCollector
) -> bool:
    """Report an invisible line break above the error, between the values before it."""
    if text.isascii() and "\r" not in text:
        return False
    stop, end = mark.index if mark is not None else len(text), 0
    try:
        for token in yaml.scan(text, Loader=Parser):
            start = token.start_mark.index
            if start > end and report_breaks(file, text, (end, min(start, stop)), problems):
                return True
            end = max(end, token.end_mark.index)
    except yaml.YAMLError:
        below = _COMMENTS.match(text, end)
        last = min(below.end() if below is not None else end, stop)
        return report_breaks(file, text, (end, last), problems)
    return False


def _report_whitespace(
    error: yaml.YAMLError, what: str, at: Mark, document: Document, problems: DiagnosticCollector
) -> bool:
    """Report a tab at the error, or an unusual space that changes the indentation."""
    line = document.line(at.line)
    if "\t" in line[: len(line) - len(line.lstrip())]:
        at = Mark(at.file, at.line, line.index("\t") + 1)
        problems.error("tab-indent", "tab in the indentation", at=at)
        return True
    if line[at.column - 1 : at.column] == "\t" and "token" in what:
        message = f"tab after {line[: at.column - 1].rstrip()[-1:]}"
        problems.error("tab-indent", message, at=at, hint="replace the tab by a space")
        return True
    began = getattr(error, "context_mark", None)
    first = began.line + 1 if began is not None else at.line
    for number in range(at.line, min(first, at.line - 1) - 1, -1):
        space = _SPACE_IN_INDENT.match(document.line(number))
        if space is not None:
            name = "no-break space" if space["space"] == _NO_BREAK_SPACE else "unusual space"
            here = Mark(at.file, number, space.start("space") + 1)
            message = f"invalid YAML: {name} in the indentation"
            problems.error("bad-yaml", message, at=here, hint="indent with ordinary spaces")
            return True
    return False


def _report_anchor(
    error: yaml.YAMLError, what: str, at: Mark, document: Document, problems: DiagnosticCollector
) -> bool:
    first = getattr(error, "context_mark", None)
    if what == "second occurrence" and first is not None:
        named = _ANCHOR.match(document.line(at.line), at.column - 1)
        name = f"anchor '{named['name']}'" if named is not None else "anchor"
        related = ((Mark(at.file, first.line + 1, first.column + 1), "first defined here"),)
        problems.error("duplicate-anchor", f"{name} is defined twice", at=at, related=related)
    elif "undefined alias" in what:
        problems.error("unknown-alias", "unknown alias: no anchor above it in this file", at=at)
    else:
        return False
    return True


class _Value(NamedTuple):
    """The positions of a value in quotes or brackets, and the character that closes it."""

    start: int
    end: int
    closing: str


def _values(text: str) -> Iterator[_Value]:
    """Yield the values in quotes or brackets that the parser reads before it stops."""
    opened: list[int] = []
    try:
        for token in yaml.scan(text, Loader=Parser):
            start, end = token.start_mark.index, token.end_mark.index
            if isinstance(token, _OPENING):
                opened.append(start)
            elif isinstance(token, _CLOSING):
                yield _Value(opened.pop() if opened else start, end, text[start])
            elif isinstance(token, tokens.ScalarToken) and token.style in ("'", '"'):
                yield _Value(start, end, token.style)
    except yaml.YAMLError:
        return


def _report_text_after_value(
    what: str, at: Mark, mark: yaml.Mark | None, text: str, problems: DiagnosticCollector
) -> bool:
    """Report text that follows a value in quotes or brackets, such as in `{year}/{month}`."""
    if what not in _AFTER_A_VALUE or mark is None:
        return False
    ended = [value for value in _values(text) if value.end <= mark.index]
    if not ended or text[ended[-1].end : mark.index].strip(" "):
        return False
    if text[mark.index : mark.index + 1] in ",]}":  # Or at the end of the text.
        return False
    value = ended[-1]
    rest = _ENDS_WITH_COMMENT.sub("", text[value.start :].splitlines()[0])
    if value.closing in "]}":
        hint = f"quote a value that begins with {rest[0]}"
        hint += "" if "'" in rest else f": '{rest.rstrip()}'"
    elif value.closing == "'":
        hint = "write an apostrophe inside single quotes twice, or use double quotes"
    else:
        hint = 'write \\" for a quote inside double quotes, or use single quotes'
    name = value.closing if value.closing in "]}" else "quote"
    began = place(at.file, text, value.start)
    related = ((began, "the value starts here"),) if began.line != at.line else ()
    message = f"invalid YAML: text after the closing {name}"
    problems.error("bad-yaml", message, at=at, hint=hint, related=related)
    return True


def _report_other(
    error: yaml.YAMLError, what: str, at: Mark, document: Document, problems: DiagnosticCollector
) -> None:
    if "but found another document" in what:
        problems.error(
            "several-documents",
            "a file must contain one document, but another one starts here",
            at=at,
        )
        return
    began = getattr(error, "context_mark", None)
    hint = _HINTS.get(what, "look for an unclosed quote or bracket above")
    if what in _REPORTED_LATE and began is not None:
        what = _REPORTED_LATE[what]
        at = Mark(at.file, began.line + 1, began.column + 1)
    elif what in _UNCLOSED and began is not None and began.line + 1 < at.line:
        related = ((at, "it is not closed before this"),)
        at = Mark(at.file, began.line + 1, began.column + 1)
        message = f"invalid YAML: {_UNCLOSED[what]}"
        problems.error("bad-yaml", message, at=at, hint=hint, related=related)
        return
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
_UNCLOSED = {
    "did not find expected ',' or ']'": "this list is not closed, or lacks a comma",
    "did not find expected ',' or '}'": "this mapping is not closed, or lacks a comma",
}
"""Errors that are reported at the start if the parser notices them in a later line."""
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
