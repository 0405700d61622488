"""The syntax of references in text."""

from __future__ import annotations


def escaped_text(text: str) -> str:
    """Return a text as files write it: `${` is `$${`, so that it is no reference."""
    return text.replace("${", "$${")
