"""Report YAML that the parser accepts although YAML 1.2 forbids it or reads it differently.

Composed nodes no longer show these places, so the tokens of the parser are compared with the
text. This takes about as long as composing, so `is_suspicious` selects the files that need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from msgspec import Struct, field
from yaml import tokens
from yaml.nodes import ScalarNode

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.workspace.yaml.document import Nodes, Parser, nodes_in

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
AMBIGUOUS = frozenset({"ambiguous-yaml", "curly-quotes"})
"""The codes of errors in YAML that the parser accepts."""
# Patterns that begin with a literal are several times faster than others.
_COMMENT = r"""#(?<=["'\]}\[{,:|>0-9+-]#)"""
_COMMENTS_IN_BLOCKS = tuple(
    rf"{start}[-+0-9]*[ \t]*\r?\n(?:[ \t]*\r?\n)+[ \t]+#" for start in (r"\|", ">")
)
_QUESTION = r"[\[{,]\s*\?"
_DASH = r"-(?<=[\s\[{,]-)[,\]}]"
_TAG = r"!(?<![^\s\[{,]!)[\s,\]}]"
_ANCHORS = tuple(rf"{start}(?<![^\s\[{{,]{start})[\w-]*+[?:,\]}}%@`]" for start in ("&", r"\*"))
_OPEN_QUOTES = (
    r"""(?m)["](?<![^\s\[{,:]["])[^"\\\n]*+(?:\\.[^"\\\n]*+)*+\\?$""",
    r"(?m)'(?<![^\s\[{,:]')[^'\n]*+(?:''[^'\n]*+)*+$",
)
"""A quote at the beginning of a value that does not end in the line."""
_SUSPICIOUS = tuple(
    zip(
        "#-!&*\"'|>?",
        (_COMMENT, _DASH, _TAG, *_ANCHORS, *_OPEN_QUOTES, *_COMMENTS_IN_BLOCKS, _QUESTION),
        strict=True,
    )
)
"""A character, and a pattern to search for if a text contains it, compiled then."""
_OTHER_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_OWN_BREAK = "\r"
"""A line break in YAML 1.2 too, in comments only since most tools do not show it."""
_COMMENT_IN_HEADER = re.compile(r"[|>][-+0-9]*#")
_MOST = 100
"""Errors after which a file is not checked further."""
_KEEPS_LINES = re.compile(r"[|>][0-9]*\+")
_OPENING_QUOTES = frozenset("“„‘‚”’«")
_CLOSING_QUOTES = frozenset("”“’‘»")
_LOOK_ALIKE = re.compile(r"[“„‘‚”’«»]|(?![\x00-\x7f])\s")
_COMMENT_BELOW = re.compile(r"\s*#")
_OPENING = (tokens.FlowSequenceStartToken, tokens.FlowMappingStartToken)
_CLOSING = (tokens.FlowSequenceEndToken, tokens.FlowMappingEndToken)
_BLOCKS = (tokens.BlockSequenceStartToken, tokens.BlockMappingStartToken)


def is_suspicious(text: str) -> bool:
    """Return whether a text may contain what `check_tokens` reports, except for indentation."""
    return (
        "\t" in text
        or "%YAML" in text
        or text.endswith(" ")
        or any(sign in text and re.search(pattern, text) for sign, pattern in _SUSPICIOUS)
        or (("\r" in text or not text.isascii()) and _OTHER_BREAK.search(text) is not None)
    )


def check_tokens(file: str, text: str, problems: DiagnosticCollector) -> None:
    """Report what the parser should refuse in a text. The text must be valid to the parser."""
    checker = _Checker(file, text, problems)
    for token in yaml.scan(text, Loader=Parser):
        checker.take(token)
        if len(problems.diagnostics) >= _MOST:
            return


class _Checker(Struct):
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
        self._check_comment(start)
        self._check_breaks(start)
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

    def _check_comment(self, start: int) -> None:
        position = self.text.find("#", self.end, start)
        if position > 0 and not self.text[position - 1].isspace():
            self._error_at_comment(position)

    def _check_breaks(self, start: int) -> None:
        if start > self.end:
            report_breaks(self.file, self.text, (self.end, start), self.problems)

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
    for match in _OTHER_BREAK.finditer(text, start, end):
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


def may_look_alike(text: str) -> bool:
    """Return whether a text may contain what `check_look_alikes` reports."""
    return not text.isascii() and _LOOK_ALIKE.search(text) is not None


def check_look_alikes(nodes: Nodes, problems: DiagnosticCollector) -> None:
    """Report quotes and spaces that YAML takes for ordinary characters of a text."""
    for node in nodes_in(nodes.top):
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
                at=nodes.mark_of(node),
                hint=hint if "'" not in text else None,
            )
        elif text[0].isspace() or text[-1].isspace():
            problems.error(
                "ambiguous-yaml",
                "a no-break space or another unusual space at the edge of a text",
                at=nodes.mark_of(node),
                hint="replace it by an ordinary space, or quote the text",
            )


def place(file: str, text: str, position: int) -> Mark:
    """Return the place of a position in a text."""
    lines = LINE_BREAK.split(text[:position])
    return Mark(file, len(lines), len(lines[-1]) + 1)
