"""Escape untrusted text in messages, such as names of live objects.

Unescaped, such a name could forge lines of output, control the terminal or reverse text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

_BREAKING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_INVISIBLE = frozenset(
    {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"}
    | {*map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)))}
)
"""Letters, marks and symbols without a shape. Two that emoji contain are left out."""
_QUOTES = "'\"`"
_LONGEST_VALUE = 40
COMMAND = re.compile(r"#(?=#\w*\[)")
"""The first character of a command that a CI runner executes anywhere in a line, as `##vso[…]`."""
_NOT_PLAIN = re.compile(r"[^ -~\n]")


def several(count: int, word: str) -> str:
    """Return a count with its noun: `1 file`, `2,000 files`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def listed(names: Sequence[object], most: int) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def shortened(text: str, longest: int = 120) -> str:
    """Return at most `longest` characters of a text, with an ellipsis if it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def is_breaking(character: str) -> bool:
    """Return whether a character can affect the cursor, the line or the direction, or is hidden."""
    return unicodedata.category(character) in _BREAKING or character in _INVISIBLE


def printable(text: str) -> str:
    """Return text with control, bidi and line characters escaped."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape", errors="backslashreplace").decode()
        if is_breaking(character)
        else character
        for character in text
    )


def quoted(text: str) -> str:
    """Return printable text in the first kind of quotes that it does not contain.

    So a name cannot close its quotes. In text with all kinds of quotes, single ones are escaped.
    """
    shown = printable(text)
    for mark in _QUOTES:
        if mark not in shown:
            return f"{mark}{shown}{mark}"
    return "'" + shown.replace("'", "\\'") + "'"


def yaml_text(text: str) -> str:
    """Return text as a YAML scalar that means it, also in a file with references."""
    import json

    escaped = text.replace("${", "$${")
    is_plain = escaped.isprintable() and "'" not in escaped
    return f"'{escaped}'" if is_plain else json.dumps(escaped)


def json_shown(value: object) -> str:
    """Return a JSON value that has the wrong type, for messages: short, and scalars only.

    A long text is not cut: its beginning may be that of a secret, which is masked by value.
    """
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "a list"
    import json

    text = json.dumps(value)
    if len(text) <= _LONGEST_VALUE:
        return text
    return f"a {'text' if isinstance(value, str) else 'number'} of {len(text)} characters"


def plain_json(text: str) -> str:
    """Return the same JSON with characters escaped that could control a terminal or a CI runner.

    A lone surrogate, which JSON readers refuse, becomes the text of its escape.
    """
    if "##" in text:
        text = COMMAND.sub(r"\\u0023", text)
    return text if text.isascii() and "\x7f" not in text else _NOT_PLAIN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if not is_breaking(character):
        return character
    if "\ud800" <= character <= "\udfff":
        return f"\\\\u{ord(character):04x}"
    import json

    return json.dumps(character)[1:-1]
