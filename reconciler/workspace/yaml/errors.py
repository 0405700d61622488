"""Report errors in YAML: those that stop the parser, with causes and fixes, and those it accepts.

What it accepts although YAML 1.2 forbids it, or reads it differently, does not show in composed
nodes, so the tokens of the parser are compared with the text. This takes about as long as
composing, so `is_suspicious` of the loader selects the files that need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml
from msgspec import Struct, field
from yaml import tokens
from yaml.nodes import ScalarNode
from yaml.reader import ReaderError

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.workspace.yaml.document import (
    LINE_BREAK,
    OTHER_BREAK,
    Document,
    Parser,
    nodes_in,
    place,
)

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
_BLOCKS = (tokens.BlockSequenceStartToken, tokens.BlockMappingStartToken)
_OWN_BREAK = "\r"
"""A line break in YAML 1.2 too, in comments only since most tools do not show it."""
_COMMENT_IN_HEADER = re.compile(r"[|>][-+0-9]*#")
_COMMENT_BELOW = re.compile(r"\s*#")
_KEEPS_LINES = re.compile(r"[|>][0-9]*\+")
_MOST = 100
"""Errors after which a file is not checked further."""
_OPENING_QUOTES = frozenset("“„‘‚”’«")
_CLOSING_QUOTES = frozenset("”“’‘»")


def report_syntax(
    error: yaml.YAMLError, text: str, document: Document, problems: DiagnosticCollector
) -> None:
    """Report the error for which the parser stopped, at its cause if that is known."""
    unprintable = _NOT_YAML.search(text) if isinstance(error, ReaderError) else None
    if unprintable is not None:
        problems.error(
            "control-character",
            f"control character U+{ord(unprintable[0]):04X} is not allowed in YAML",
            at=place(document.file, text, unprintable.start()),
        )
        return
    stop = _Stop.of(error, document, problems)
    if not (
        stop.report_conflict()
        or stop.report_break()
        or stop.report_whitespace()
        or stop.report_anchor()
        or stop.report_text_after_value()
    ):
        stop.report_other()


class _Stop(Struct, frozen=True):
    """Why and where the parser stopped. `began` is where the part begins that it was reading."""

    document: Document
    problems: DiagnosticCollector
    what: str
    at: Mark
    mark: yaml.Mark | None
    began: Mark | None
    context: str

    @classmethod
    def of(cls, error: yaml.YAMLError, document: Document, problems: DiagnosticCollector) -> _Stop:
        """Return what an error of the parser says."""
        context = getattr(error, "context_mark", None)
        mark = getattr(error, "problem_mark", None) or context
        what = str(getattr(error, "problem", None) or "syntax error")
        at = _place_of(document, mark) or Mark(document.file)
        if document.lines and at.line > len(document.lines):
            # The end of the file has no line to show: use the end of the last line.
            at = Mark(at.file, len(document.lines), len(document.line(len(document.lines))) + 1)
        began, words = _place_of(document, context), str(getattr(error, "context", None))
        return cls(document, problems, what, at, mark, began, words)

    def report_conflict(self) -> bool:
        """Report the first marker of a merge conflict."""
        marker = _CONFLICT_MARKER.search(self.document.text)
        if marker is None:
            return False
        shown = marker["marker"] or marker["middle"]
        at = place(self.document.file, self.document.text, marker.start())
        self.problems.error("conflict-marker", f"merge conflict marker {shown}", at=at)
        return True

    def report_break(self) -> bool:
        """Report an invisible line break above the error, between the values before it."""
        file, text = self.document.file, self.document.text
        if text.isascii() and "\r" not in text:
            return False
        stop, end = self.mark.index if self.mark is not None else len(text), 0
        try:
            for token in yaml.scan(text, Loader=Parser):
                start = token.start_mark.index
                between = (end, min(start, stop))
                if start > end and report_breaks(file, text, between, self.problems):
                    return True
                end = max(end, token.end_mark.index)
        except yaml.YAMLError:
            below = _COMMENTS.match(text, end)
            last = min(below.end() if below is not None else end, stop)
            return report_breaks(file, text, (end, last), self.problems)
        return False

    def report_whitespace(self) -> bool:
        """Report a tab at the error, or an unusual space that changes the indentation."""
        at, line = self.at, self.document.line(self.at.line)
        if "\t" in line[: len(line) - len(line.lstrip())]:
            at = Mark(at.file, at.line, line.index("\t") + 1)
            self.problems.error("tab-indent", "tab in the indentation", at=at)
            return True
        if line[at.column - 1 : at.column] == "\t" and "token" in self.what:
            message = f"tab after {line[: at.column - 1].rstrip()[-1:]}"
            hint = "replace the tab by a space"
            self.problems.error("tab-indent", message, at=at, hint=hint)
            return True
        first = self.began.line if self.began is not None else at.line
        for number in range(at.line, min(first, at.line - 1) - 1, -1):
            space = _SPACE_IN_INDENT.match(self.document.line(number))
            if space is not None:
                name = "no-break space" if space["space"] == _NO_BREAK_SPACE else "unusual space"
                at = Mark(at.file, number, space.start("space") + 1)
                hint = "indent with ordinary spaces"
                self._report_invalid(f"{name} in the indentation", at, hint)
                return True
        return False

    def report_anchor(self) -> bool:
        """Report an anchor that is defined twice, or never."""
        if self.what == "second occurrence" and self.began is not None:
            named = _ANCHOR.match(self.document.line(self.at.line), self.at.column - 1)
            name = f"anchor '{named['name']}'" if named is not None else "anchor"
            message, related = f"{name} is defined twice", ((self.began, "first defined here"),)
            self.problems.error("duplicate-anchor", message, at=self.at, related=related)
        elif "undefined alias" in self.what:
            message = "unknown alias: no anchor above it in this file"
            self.problems.error("unknown-alias", message, at=self.at)
        else:
            return False
        return True

    def report_text_after_value(self) -> bool:
        """Report text that follows a value in quotes or brackets, such as in `{year}/{month}`."""
        text, mark = self.document.text, self.mark
        if self.what not in _AFTER_A_VALUE or mark is None:
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
        began = place(self.at.file, text, value.start)
        related = ((began, "the value starts here"),) if began.line != self.at.line else ()
        self._report_invalid(f"text after the closing {name}", self.at, hint, related)
        return True

    def report_other(self) -> None:
        """Report what no other method explains."""
        at, began, what = self.at, self.began, self.what
        if "but found another document" in what:
            message = "a file must contain one document, but another one starts here"
            self.problems.error("several-documents", message, at=at)
            return
        hint = _HINTS.get(what, "look for an unclosed quote or bracket above")
        if what in _REPORTED_LATE and began is not None:
            what, at = _REPORTED_LATE[what], began
        elif what in _UNCLOSED and began is not None and began.line < at.line:
            related = ((at, "it is not closed before this"),)
            self._report_invalid(_UNCLOSED[what], began, hint, related)
            return
        if _NO_BREAK_SPACE in self.document.line(at.line):
            hint = "replace the no-break space in this line by a space"
        words = _CONTEXTS.get(self.context)
        starts: tuple[tuple[Mark, str], ...] = ()
        if began is not None and words is not None and began != at:
            starts = ((began, f"the {words} starts here"),)
        self._report_invalid(what, at, hint, starts)

    def _report_invalid(
        self, what: str, at: Mark, hint: str, related: tuple[tuple[Mark, str], ...] = ()
    ) -> None:
        self.problems.error("bad-yaml", f"invalid YAML: {what}", at=at, hint=hint, related=related)


def _place_of(document: Document, mark: yaml.Mark | None) -> Mark | None:
    return Mark(document.file, mark.line + 1, mark.column + 1) if mark is not None else None


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


def check_tokens(file: str, text: str, problems: DiagnosticCollector) -> None:
    """Report what the parser should refuse in a text. The text must be valid to the parser."""
    checker = _Checker(file, text, problems)
    for token in yaml.scan(text, Loader=Parser):
        checker.take(token)
        if len(problems.diagnostics) >= _MOST:
            return


class _Checker(Struct):
    """What the tokens of a text so far say about those that follow."""

    file: str
    text: str
    problems: DiagnosticCollector
    columns: list[int] = field(default_factory=lambda: [-1])
    """The columns of the open block mappings and lists, -1 outside of them."""
    brackets: int = 0
    end: int = 0
    """Where the last token ended."""
    badly_indented: bool = False
    """Whether the indentation inside the outermost brackets is reported already."""

    def take(self, token: yaml.Token) -> None:
        """Check a token, and what is between it and the one before."""
        start, end = token.start_mark.index, token.end_mark.index
        sign = self.text.find("#", self.end, start)
        if sign > 0 and not self.text[sign - 1].isspace():
            self._error_at_comment(sign)
        if start > self.end:
            report_breaks(self.file, self.text, (self.end, start), self.problems)
        if self.brackets:
            self._check_indentation_of(token)
        if token.__class__ in _BLOCKS:
            self.columns.append(token.start_mark.column)
        elif token.__class__ is tokens.BlockEndToken:
            self.columns.pop()
        elif token.__class__ in _OPENING:
            self.brackets += 1
        elif token.__class__ in _CLOSING:
            self.brackets -= 1
            self.badly_indented = self.badly_indented and self.brackets > 0
        elif token.__class__ is tokens.ScalarToken:
            self._check_scalar(token)
        else:
            self._check_property(token, self.text[start:end], self.text[end : end + 1])
        self.end = max(self.end, end)

    def _error(self, message: str, position: int, hint: str) -> None:
        at = place(self.file, self.text, position)
        self.problems.error("ambiguous-yaml", message, at=at, hint=hint)

    def _error_at_comment(self, position: int) -> None:
        self._error(
            "no space before #",
            position,
            "put a space before a comment, or quote a value that contains #",
        )

    def _check_indentation_of(self, token: yaml.Token) -> None:
        start = token.start_mark
        before = self.text[start.index - start.column : start.index]
        if start.line and not before.strip(" \t") and start.index != token.end_mark.index:
            # Closing at the column of the key is common, and cannot be read differently.
            closes = token.__class__ in _CLOSING and self.brackets == 1
            self._check_indentation(
                start.index, before, self.columns[-1] + (not closes), "list or mapping in brackets"
            )

    def _check_indentation(self, position: int, before: str, required: int, what: str) -> None:
        """Check that `before`, the whitespace of a line, begins with enough spaces."""
        spaces = len(before) - len(before.lstrip(" "))
        if spaces >= required or self.badly_indented:
            return
        self.badly_indented = self.brackets > 0
        if "\t" in before:
            tab = position - len(before) + spaces
            self._error("tab in the indentation", tab, "indent with spaces")
        else:
            hint = "indent its lines more than the key or dash before it"
            self._error(f"this line of the {what} is not indented", position, hint)

    def _check_scalar(self, token: tokens.ScalarToken) -> None:
        start, end = token.start_mark.index, token.end_mark.index
        if token.style in ("|", ">"):
            header = _COMMENT_IN_HEADER.match(self.text, start)
            if header is not None:
                self._error_at_comment(header.end() - 1)
            self._check_end_of_block(token, end)
        elif self.brackets and token.plain and token.value == "-":
            hint = "quote it, or write the list as `- item` lines without brackets"
            self._error("a dash without a value in brackets", start, hint)
        elif token.start_mark.line != token.end_mark.line and not (
            token.plain and not self.brackets
        ):
            for position, before in self._lines_in(start, end):
                what = "text in brackets" if token.plain else "quoted text"
                self._check_indentation(position, before, self.columns[-1] + 1, what)

    def _check_end_of_block(self, token: tokens.ScalarToken, end: int) -> None:
        """Check for lines that YAML 1.2 makes part of a text after | or >."""
        comment = _COMMENT_BELOW.match(self.text, end)
        if token.value.strip() == "" and comment is not None:
            position = comment.end() - 1
            if place(self.file, self.text, position).column - 1 > self.columns[-1]:
                hint = "remove the empty lines, or write '' for an empty text"
                self._error("a comment below the empty lines of a text", position, hint)
        last = self.text.rfind("\n") + 1
        kept = end == len(self.text) or _KEEPS_LINES.match(self.text, token.start_mark.index)
        if last < len(self.text) and kept and not self.text[min(last, end) :].strip(" "):
            hint = "remove them, or add a line break"
            self._error("spaces at the end of the file continue the text above", last, hint)

    def _lines_in(self, start: int, end: int) -> Iterator[tuple[int, str]]:
        """Yield where each line after the first begins, and the whitespace before it."""
        for line_break in LINE_BREAK.finditer(self.text, start, end):
            begin = position = line_break.end()
            while position < end and self.text[position] in " \t":
                position += 1
            if position < end and not LINE_BREAK.match(self.text, position):
                yield position, self.text[begin:position]

    def _check_property(self, token: yaml.Token, written: str, follows: str) -> None:
        position = token.end_mark.index
        if isinstance(token, (tokens.AnchorToken, tokens.AliasToken)):
            if follows and follows in ("?:%@`" if self.brackets else "?:,]}%@`"):
                self._error(
                    f"{follows} after the name of an anchor",
                    position,
                    "use letters, digits, - and _ in the name, and a space after it",
                )
        elif isinstance(token, tokens.TagToken):
            if written == "!":
                self._error("! without a name", position - 1, "remove it; tags are not supported")
        elif self.brackets and written == "?" and follows.strip():
            hint = "quote text that begins with ?"
            self._error("? before a key", position - 1, hint)


def report_breaks(
    file: str, text: str, between: tuple[int, int], problems: DiagnosticCollector
) -> bool:
    """Report what only the parser takes for a line break between two tokens, before other text.

    What most tools show as the rest of a comment would be read as YAML.
    """
    start, end = between
    for match in OTHER_BREAK.finditer(text, start, end):
        began = max(text.rfind("\n", 0, match.start()) + 1, start)
        is_comment = "#" in text[began : match.start()]
        rest = text[match.end() :].partition("\n")[0].strip()
        is_own = match[0] == _OWN_BREAK and not (is_comment and "\n" in text)
        if rest and not rest.startswith("#") and not is_own:
            what = "ends this comment" if is_comment else "ends this line"
            problems.error(
                "ambiguous-yaml",
                f"U+{ord(match[0]):04X} {what}: the text after it is read as YAML",
                at=place(file, text, match.start()),
                hint="remove it, or start a new line",
            )
            return True
    return False


def check_look_alikes(document: Document, problems: DiagnosticCollector) -> None:
    """Report quotes and spaces that YAML takes for ordinary characters of a text."""
    for node in nodes_in(document.node):
        if len(problems.diagnostics) >= _MOST:
            return
        if not isinstance(node, ScalarNode) or node.style or node.value.isascii():
            continue
        text = str(node.value)
        if text[0] in _OPENING_QUOTES and text[-1] in _CLOSING_QUOTES and len(text) > 1:
            inner = text[1:-1]
            hint = f"write '{inner}', or '{text}' for text with these quotes"
            problems.error(
                "curly-quotes",
                f"{text[0]} and {text[-1]} are not quotes in YAML",
                at=document.mark_of(node),
                hint=hint if "'" not in text else None,
            )
        elif text[0].isspace() or text[-1].isspace():
            problems.error(
                "ambiguous-yaml",
                "a no-break space or another unusual space at the edge of a text",
                at=document.mark_of(node),
                hint="replace it by an ordinary space, or quote the text",
            )
