"""Text of messages: untrusted text, harmless for terminals and CI runners, and suggested names.

Unescaped, the name of a live object could forge lines of output, control the terminal or reverse
text. GitHub Actions executes lines that begin with `::` after whitespace, and `##[…]` anywhere in a
line; Azure Pipelines executes `##vso[…]` anywhere, TeamCity `##teamcity[…]`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from heapq import nsmallest
from itertools import groupby
from math import ceil
from typing import NamedTuple

_BREAKING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_INVISIBLE = frozenset(
    {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"}
    | {*map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))}
)
"""Letters, marks and symbols without a shape."""
_FOREIGN = re.compile(
    "[\u0370-\u03ff\u0400-\u058f\u10a0-\u10ff\u13a0-\u167f\u16a0-\u16ff\u1c80-\u1cbf\u1d26-\u1d2b\u1d78"
    "\u1f00-\u1fff\u2100-\u214f\u2c00-\u2c5f\u2c80-\u2dff\ua4d0-\ua63f\ua640-\ua69f\uab65\uab70-\uabbf"
    "\U00010280-\U0001034f\U00010400-\U000104ff\U000118a0-\U000118ff\U0001d400-\U0001d7ff]"
)
"""Letters for mathematics, and of scripts with letters like Latin ones: Cyrillic, Greek, Armenian,
Georgian, Cherokee, Coptic, Lisu and others."""
_LATIN = re.compile(
    "[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1d2c-\u1d77\u1d79-\u1dbf"
    "\u1e00-\u1eff\u2160-\u2188\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab64\ufb00-\ufb06\uff21-\uff5a]"
)
_ESCAPE_OR_WORD = re.compile(
    r"\\(?:[abfnrtv]|x[\da-f]{2}|u[\da-f]{4}|U[\da-f]{8})|([^\s!-/:-@\[-^`{-~]+)"
)
"""An escape, whose letter is no part of the next word, or what may be a word."""
_QUOTES = "'\"`"
_LONGEST_VALUE = 40
IMPLICIT_ENVIRONMENT = "default"
"""The environment of a workspace that declares none."""
COMMAND = re.compile(r"#(?=#\w*\[)")
"""The first character of a command that a CI runner executes anywhere in a line, as `##vso[…]`."""
_NOT_PLAIN = re.compile(r"[^ -~\n\t]")
_KEPT = re.compile(r"(\x1b\[[\d;]*m|\r\x1b\[K|\r?\n|\t)")
"""What the output contains besides text: colours, the progress line, line ends, tabs."""
_BREAK = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# A colour code before a command does not hide it from a runner that removes colours.
_AT_START = rf"((?:^|[{_BREAK}])(?:[^\S{_BREAK}]|\x1b\[[\d;]*[A-Za-z])*):(?=:)"
_MOST_LISTED = 16
_MANY = 50
"""Names from which only those with similar letters are compared, which takes 20 us each."""
_LONGEST_NAME = 60
_SHORTEST = 5


def several(count: int, word: str) -> str:
    """Return a count with its noun: `1 file`, `2,000 files`."""
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def counted_nouns(count: int, one: str, more: str) -> str:
    """Return a number with thousands separators, and its noun."""
    return f"{count:,} {one if count == 1 else more}"


def duration_as_text(seconds: float) -> str:
    """Return `41 s`, `1 min 20 s` or `2 h 5 min`, rounded up."""
    whole = max(0, ceil(seconds))
    if whole < 60:
        return f"{whole} s"
    large, small = ("min", "s") if whole < 3_600 else ("h", "min")
    first, second = divmod(whole if whole < 3_600 else ceil(whole / 60), 60)
    return f"{first} {large} {second} {small}" if second else f"{first} {large}"


def estimate_as_text(
    calls: int, seconds: float, *, limit: object = None, beyond_hour: bool = False
) -> str:
    """Return `606 calls, about 1 min 20 s at 480 a minute`.

    `limit` is the limit that slows the calls down, if any. `beyond_hour`: they are more than may be
    sent in an hour.
    """
    text = f"{several(calls, 'call')}, about {duration_as_text(seconds)}"
    text += f" at {limit}" if limit is not None else ""
    return f"{text}; more than the hourly limit allows at once" if beyond_hour else text


def short_count(count: int) -> str:
    """Return a number with at most four digits: 950, 1.2 k, 28 M."""
    for size, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return str(count)


def listed(names: Iterable[object], most: int) -> str:
    """Return the first names, and the number of the others: `a, b and 3 more`."""
    texts = [*map(str, names)]
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def shortened(text: str, longest: int = 120) -> str:
    """Return at most `longest` characters of a text, with an ellipsis if it is cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def cut_inside(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text: its beginning, and more of its end.

    What a host or a query differs by is often at its end.
    """
    end = longest * 2 // 3
    return text if len(text) <= longest else f"{text[: longest - 1 - end]}…{text[-end:]}"


def command_text(*words: object, environment: str, more: Iterable[str] = ()) -> str:
    """Return a command to paste into a shell. It selects an environment that is not the default."""
    import shlex  # Few messages have a command.

    command, *rest = map(str, words)
    chosen = () if environment == IMPLICIT_ENVIRONMENT else ("-e", environment)
    return printable(shlex.join(["reconciler", command, *chosen, *rest, *more]))


def is_breaking(character: str) -> bool:
    """Return whether a character can affect the cursor, the line or the direction, or is hidden."""
    return unicodedata.category(character) in _BREAKING or character in _INVISIBLE


def _is_hidden(character: str) -> bool:
    is_space = character != " " and unicodedata.category(character) == "Zs"
    return is_space or is_breaking(character)


def misleading(text: str) -> frozenset[int]:
    """Return the positions of characters that can mislead a reader, which all text escapes.

    They affect the cursor, the line or the direction, or are hidden, or are spaces but the plain
    one, or letters in a word with Latin ones that may look like these.
    """
    if text.isascii() and text.isprintable():
        return frozenset()
    hidden = {character for character in set(text) if _is_hidden(character)}
    places = {number for number, character in enumerate(text) if character in hidden}
    if _FOREIGN.search(text):
        for match in _ESCAPE_OR_WORD.finditer(text):
            places.update(_foreign(match[1] or "", match.start()))
    return frozenset(places)


def _foreign(text: str, start: int) -> Iterator[int]:
    """Yield the positions of letters that may look like Latin ones, in words that have these."""
    if not (_FOREIGN.search(text) and _LATIN.search(text)):
        return
    # Between ASCII signs can be other signs, such as dashes.
    for is_sign, word in groupby(text, _is_sign):
        letters = "".join(word)
        if not is_sign and _LATIN.search(letters):
            yield from (start + match.start() for match in _FOREIGN.finditer(letters))
        start += len(letters)


def _is_sign(character: str) -> bool:
    return unicodedata.category(character)[0] in "PSZ" and character != "_"


def shown_characters(text: str) -> list[str]:
    """Return each character as it is shown: one that can mislead a reader as an escape."""
    places = misleading(text)
    return [
        character.encode("unicode_escape", errors="backslashreplace").decode()
        if number in places
        else character
        for number, character in enumerate(text)
    ]


def printable(text: str) -> str:
    """Return text on one line, with characters escaped that can mislead a reader."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(shown_characters(text))


def in_ascii(text: str) -> str:
    """Return an address with all letters escaped that only look like those of ASCII."""
    return text.encode("ascii", "backslashreplace").decode()


def quoted(text: str) -> str:
    """Return printable text in the first kind of quotes that it does not contain.

    So a name cannot close its quotes. In text with all kinds of quotes, single ones are escaped.
    """
    shown = printable(text)
    for mark in _QUOTES:
        if mark not in shown:
            return f"{mark}{shown}{mark}"
    return "'" + shown.replace("'", "\\'") + "'"


def named(name: str) -> str:
    """Return the printable name of an object in double quotes, which it cannot close."""
    return '"' + printable(name).replace('"', '\\"') + '"'


def yaml_text(text: str) -> str:
    """Return text as a YAML scalar that means it, also in a file with references."""
    import json

    escaped = text.replace("${", "$${")
    is_plain = escaped.isprintable() and "'" not in escaped
    return f"'{escaped}'" if is_plain else json.dumps(escaped)


def shown_in(body: Mapping[str, object], name: str) -> str:
    """Return the member of a JSON object that has the wrong type, for messages."""
    return json_shown(body[name]) if name in body else "missing"


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
    """Return the same JSON with characters escaped that could mislead a reader or a CI runner.

    A lone surrogate, which JSON readers refuse, becomes the text of its escape.
    """
    if "##" in text:
        text = COMMAND.sub(r"\\u0023", text)
    if not _NOT_PLAIN.search(text):
        return text
    # By line: JSON has a million lines for 10,000 exports, few of which have such characters.
    return "\n".join(map(_plain_line, text.split("\n")))


def _plain_line(line: str) -> str:
    places = misleading(line)
    if not places:
        return line
    characters = enumerate(line)
    return "".join(_json_escape(item) if number in places else item for number, item in characters)


def _json_escape(character: str) -> str:
    if "\ud800" <= character <= "\udfff":
        return f"\\\\u{ord(character):04x}"
    import json

    return json.dumps(character)[1:-1]


class Command(NamedTuple):
    """A command that we mean: an annotation of GitHub."""

    name: str
    properties: Mapping[str, str]
    message: tuple[str, ...]
    """Each item is a line."""

    def __str__(self) -> str:
        listed = ",".join(f"{name}={_property(value)}" for name, value in self.properties.items())
        return f"::{self.name} {listed}::{'%0A'.join(map(_data, self.message))}"


class Annotations(str):
    """Lines of output, some of which are commands that we mean. All other text is broken."""

    __slots__ = ()

    @classmethod
    def of(cls, lines: Iterable[Command | str]) -> Annotations:
        """Return the lines, each with a line end."""
        return cls("".join(f"{_line(line)}\n" for line in lines))


def safe_output(text: str) -> str:
    r"""Return text in which no runner reads a command: `#\x23[…]` and `\x3a:` at a line's start.

    Characters that can mislead are escaped, except line ends, colours and the progress line.
    Annotations keep their commands. A text derived from them, such as a concatenation, does not.
    """
    if isinstance(text, Annotations):
        return text
    if _NOT_PLAIN.search(text):
        parts = _KEPT.split(text)
        parts[::2] = map(printable, parts[::2])
        text = "".join(parts)
    return re.sub(_AT_START, r"\1\\x3a", _broken(text)) if "::" in text else _broken(text)


def _line(line: Command | str) -> str:
    return _broken(str(line)) if isinstance(line, Command) else safe_output(line)


def _broken(text: str) -> str:
    return COMMAND.sub(r"\\x23", text) if "##" in text else text


def _data(text: str) -> str:
    """Return text for the message of a command, without line ends, which begin a new command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def fits_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether any of the patterns fits the whole text, case-sensitively."""
    return any(fnmatchcase(text, glob) for glob in globs)


def nearest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to the given one, which may be cut short or misspelt."""
    return _nearest(given, tuple(known))


# Cached, since the same mistake is often in many resources.
@lru_cache(maxsize=10_000)
def _nearest(given: str, known: tuple[str, ...]) -> str | None:
    from difflib import get_close_matches

    names = {plain_name(name): name for name in known}
    wanted = plain_name(given)
    if wanted in names:
        return names[wanted]
    longer = [name for name in names if len(wanted) > 2 and name.startswith(wanted)]
    near: Iterable[str] = names
    if len(names) > _MANY:
        letters = set(wanted)
        near = nsmallest(_MANY, names, key=lambda name: len(letters ^ set(name)))
    close = longer if len(longer) == 1 else get_close_matches(wanted, near, n=1)
    return names[close[0]] if close else None


def plain_name(name: str) -> str:
    """Return a name without the differences of case, `-`, `_` and spaces."""
    return name.casefold().replace("-", "_").replace(" ", "_")


def near_miss(given: object, known: Sequence[str]) -> str | None:
    """Return the known value that a text of five letters or more misspells, None without one.

    At most two letters are missing, added or others.
    """
    if not isinstance(given, str) or not given.isalpha() or given in known:
        return None
    fits = _SHORTEST <= len(given) <= _LONGEST_NAME
    pairs = ((name, most) for most in (1, 2) for name in known if fits)
    return next((name for name, most in pairs if _are_near(given, name, most)), None)


def _are_near(first: str, second: str, most: int) -> bool:
    """Return whether at most some letters have to be added, removed or replaced."""
    if most < 0 or not first or not second:
        return len(first) + len(second) <= most
    if first[0].casefold() == second[0].casefold():
        return _are_near(first[1:], second[1:], most)
    shorter = ((first[1:], second), (first, second[1:]), (first[1:], second[1:]))
    return any(_are_near(*pair, most - 1) for pair in shorter)


def joined(*hints: str | None) -> str:
    """Return hints as one text. A question such as `did you mean 'x'?` ends a sentence."""
    text = ""
    for hint in filter(None, hints):
        separator = (" " if text.endswith("?") else "; ") if text else ""
        text += f"{separator}{hint}"
    return text


def choice(given: object, known: Iterable[str], word: str = "allowed") -> str:
    """Return a hint: the closest known name, or a list of the known names."""
    names = sorted(known) if isinstance(known, frozenset) else tuple(known)
    close = nearest(str(given), names)
    if close is not None:
        return f"did you mean '{close}'?"
    return f"{word}: {listed(names, _MOST_LISTED)}"
