"""Checks of texts by their schema: known values, addresses and placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from reconciler.model.address import choice, joined, near_miss
from reconciler.model.policy import to_send_anyway
from reconciler.workspace.schema.annotations import Annotated, OpenEnumeration

_URL = re.compile(r"\s*https?://[^/\s]", re.IGNORECASE)


class TextProblem(Struct, frozen=True):
    """What is wrong with a text."""

    code: str
    message: str
    hint: str | None = None
    is_error: bool = False


def text_problems(part: Annotated, value: str, named: str) -> Iterator[TextProblem]:
    """Yield the problems of a text. `named` are the words for its field."""
    if part.enumeration is not None:
        yield from _enumeration(part.enumeration, value, named)
    if part.is_url and value.strip() and not _URL.match(value):
        shown = "" if "@" in value else f", not '{value}'"  # It may contain a password.
        message = f"{named} must begin with http:// or https://{shown}"
        yield TextProblem("bad-url", message, "write it like https://example.com/path", True)
    if part.placeholders and ("{" in value or "}" in value):
        yield from _placeholders(part.placeholders, value, named)


def _enumeration(enumeration: OpenEnumeration, value: str, named: str) -> Iterator[TextProblem]:
    if value in enumeration.flagged:
        message = f"'{value}' for {named} requires a feature that not every organization has"
        yield TextProblem("feature-flag", message)
    elif value not in enumeration.known:
        fix = enumeration.fix(value)
        wrong = TextProblem("misspelt-value", f"invalid value '{value}' for {named}", fix, True)
        yield wrong if fix is not None else _unknown(value, enumeration.known, named)


def _unknown(value: str, known: Sequence[str], named: str) -> TextProblem:
    """Return the problem of an unknown value. A misspelt one is an error, others may be new."""
    message = f"unknown value '{value}' for {named}"
    if close := near_miss(value, known):
        hint = joined(f"did you mean '{close}'?", to_send_anyway("unknown-value"))
        return TextProblem("unknown-value", message, hint, True)
    hint = choice(value, known, "known")
    return TextProblem("unknown-value", f"{message}; the service decides", hint)


def _placeholders(known: Sequence[str], value: str, named: str) -> Iterator[TextProblem]:
    """Yield the braces that the service does not fill in, which makes every run fail."""
    from string import Formatter

    code = "unknown-placeholder"
    try:
        # The service formats the text as Python does (docs/service.md, 1.3).
        names = {name: None for _, name, _, _ in Formatter().parse(value) if name is not None}
    except ValueError:
        hint = "write {{ and }} for literal braces, and {year} for a placeholder"
        yield TextProblem(code, f"unbalanced brace in {named}: runs fail", hint)
        return
    for name in names:
        if name not in known:
            message = f"unknown placeholder {{{name}}} in {named}: runs fail"
            hint = choice(f"{{{name}}}", [f"{{{other}}}" for other in known], "placeholders")
            yield TextProblem(code, message, hint)
