"""The codes of diagnostics, each with its meaning and its hint: `codes.toml`.

SARIF and docs/reference/diagnostics.md show them apart from the messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from msgspec import Struct


class Meaning(Struct, frozen=True):
    """What a code means.

    `hint` is the default hint of its diagnostics. `fix` is the general advice for a code whose
    diagnostics have hints of their own.
    """

    title: str
    fix: str | None = None
    hint: str | None = None

    @property
    def help(self) -> str:
        """The advice, as a sentence."""
        text = self.fix or self.hint or "see the message for the fix"
        return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


@cache
def codes() -> Mapping[str, Meaning]:
    """Return the meaning of every code. Most runs have no diagnostics, and read no file."""
    import tomllib

    from reconciler.packaged import packaged

    text = packaged("codes.toml").read_text(encoding="utf-8")
    return {code: Meaning(**words) for code, words in tomllib.loads(text).items()}


def meaning(code: str) -> Meaning:
    """Return the meaning of a code; for an unknown code, a title from its words."""
    words = code.replace("-", " ")
    return codes().get(code, Meaning(words[:1].upper() + words[1:]))
