"""Text of others inside our messages: names of live objects, values, what a server said.

Whoever may name an object could else write lines of our output, steer the terminal that shows it,
or turn the direction of what follows. Stands below everything that makes messages, since a
message also goes where nothing is drawn: into plan files, logs and what others make of them.
"""

from __future__ import annotations

import json
import re
import unicodedata

_BREAKING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_QUOTES = "'\"`"
_NOT_PLAIN = re.compile(r"[^ -~\n]")


def several(count: int, word: str) -> str:
    """`1 file`, `2 files`: for words that take an s."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def is_breaking(character: str) -> bool:
    """Whether a character could move the cursor, the line or the direction of what follows."""
    return unicodedata.category(character) in _BREAKING


def printable(text: str) -> str:
    """Text that can't forge output: control, bidi and line characters are shown as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape", errors="backslashreplace").decode()
        if is_breaking(character)
        else character
        for character in text
    )


def quoted(text: str) -> str:
    """Printable text in the first kind of quotes that it does not contain.

    So a name can't end its quotes and go on as if the message did. One with all sorts of quotes
    has its single ones escaped.
    """
    shown = printable(text)
    for mark in _QUOTES:
        if mark not in shown:
            return f"{mark}{shown}{mark}"
    return "'" + shown.replace("'", "\\'") + "'"


def plain_json(text: str) -> str:
    """JSON that a terminal can show, of the same value: what could steer one is an escape.

    JSON itself only asks that of what is below U+0020. Half a surrogate pair, which is no text, is
    written in plain text and not as a character that readers of JSON refuse.
    """
    return text if text.isascii() and "\x7f" not in text else _NOT_PLAIN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if not is_breaking(character):
        return character
    if "\ud800" <= character <= "\udfff":
        return f"\\\\u{ord(character):04x}"
    return json.dumps(character)[1:-1]
