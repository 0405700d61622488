"""Break text that a CI runner would execute as a command, or a terminal obey.

GitHub Actions executes lines that begin with `::` after whitespace, and `##[…]` anywhere in a line;
Azure Pipelines executes `##vso[…]` anywhere, TeamCity `##teamcity[…]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconciler.model.wording import COMMAND, printable

_BREAK = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
# A colour code before a command does not hide it from a runner that removes colours.
_AT_START = rf"((?:^|[{_BREAK}])(?:[^\S{_BREAK}]|\x1b\[[\d;]*[A-Za-z])*):(?=:)"
_CONTROL = r"\x1b\[[\d;]*m|\r\x1b\[K|\r\n|[^ -~\n\t]"


class Command(NamedTuple):
    """A command that we mean: an annotation of GitHub. Each item of `message` is a line of it."""

    name: str
    properties: Mapping[str, str]
    message: tuple[str, ...]

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

    Control characters are escaped, except line ends, colours and those of the progress line.
    Annotations keep their commands. A text derived from them, such as a concatenation, does not.
    """
    if isinstance(text, Annotations):
        return text
    text = re.sub(_CONTROL, _shown, text)
    return re.sub(_AT_START, r"\1\\x3a", _broken(text)) if "::" in text else _broken(text)


def _shown(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) > 1 else printable(match[0])


def _line(line: Command | str) -> str:
    return _broken(str(line)) if isinstance(line, Command) else safe_output(line)


def _broken(text: str) -> str:
    return COMMAND.sub(r"\\x23", text) if "##" in text else text


def _data(text: str) -> str:
    """Return text for the message of a command, without line ends, which begin a new command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
