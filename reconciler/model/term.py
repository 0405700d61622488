"""Enumerations whose members carry their description."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Term(StrEnum):
    """A word of the public JSON with its meaning, for the schemas and for printed plans."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """Create a member from its word and its meaning."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member
