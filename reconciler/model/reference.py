"""Parse references: `${provider:argument}` and `${secret:provider:argument}`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

SECRET = "secret"  # noqa: S105 - a word of the syntax
UNSET = "${unset}"
"""The value that removes a field of a lower layer."""
_PART = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_START = re.compile(r"[^{}\r\n]*[{}]?")
_DEFAULT = ":-"


class Reference(Struct, frozen=True):
    """The text between `${` and `}`.

    An unclosed one has all the text after `${`.
    """

    inside: str
    closed: bool = True

    @property
    def is_secret(self) -> bool:
        """Whether it is written `${secret:…}`."""
        return self.inside.partition(":")[0] == SECRET

    @property
    def provider(self) -> str:
        """The name before the argument, for example `env`."""
        text = self.inside.partition(":")[2] if self.is_secret else self.inside
        return text.partition(":")[0]

    @property
    def argument(self) -> str:
        """The argument: a name, a path or a command. Empty without one."""
        text = self.inside.partition(":")[2] if self.is_secret else self.inside
        return text.partition(":")[2]

    @property
    def start(self) -> str:
        """The reference as it is written, up to a brace or a line break in an unclosed one."""
        return str(self) if self.closed else "${" + (_START.match(self.inside) or [""])[0]

    @property
    def has_default(self) -> bool:
        """Whether a default follows the argument: `${env:NAME:-default}`."""
        return _DEFAULT in self.inside

    def without_default(self, mask: str) -> str:
        """Return the reference as text, with a mask in place of its default."""
        name, sign, _ = self.inside.partition(_DEFAULT)
        return f"${{{name}{sign}{mask}}}" if sign else str(self)

    def __str__(self) -> str:
        return f"${{{self.inside}}}" if self.closed else f"${{{self.inside}"


def with_default(argument: str) -> tuple[str, str | None]:
    """Split `NAME:-default` into the name and the default, None where there is none."""
    name, sign, default = argument.partition(_DEFAULT)
    return name, default if sign else None


def text_parts(text: str) -> Iterator[str | Reference]:
    """Yield the plain text and the references of a text, in order; `$${` is the plain text `${`.

    An unclosed reference is the last part.
    """
    end = 0
    for match in _PART.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        if match[0] == "$${":
            yield "${"
        elif match[2]:
            yield Reference(match[1])
        else:
            yield Reference(text[match.start() + 2 :], closed=False)
            return
    if end < len(text):
        yield text[end:]


def references_in(text: str) -> tuple[Reference, ...]:
    """Return the closed references of a text, in order."""
    return tuple(Reference(match[1]) for match in _PART.finditer(text) if match[2])


def is_only_references(text: str) -> bool:
    """Return whether a text consists of references without defaults."""
    references = references_in(text)
    plain = "".join(map(str, references)) == text != ""
    return plain and not any(reference.has_default for reference in references)


def is_reference_without_default(text: str) -> bool:
    """Return whether a text is one reference without a default, which may be a secret."""
    match references_in(text):
        case (only,):
            return str(only) == text and not only.has_default
    return False


def holds_reference(text: str) -> bool:
    """Return whether a reference begins in a text."""
    return "${" in text.replace("$${", "")


def escaped_text(text: str) -> str:
    """Return a text with `$${` in place of `${`."""
    return text.replace("${", "$${")
