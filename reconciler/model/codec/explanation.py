"""The public JSON of explanations."""

from __future__ import annotations

from typing import Any, Literal

from reconciler.model.codec.base import Form, copied
from reconciler.model.codec.text import json_text
from reconciler.model.dialect import Dialect
from reconciler.model.explanation import Explanation, Mention, Topic
from reconciler.model.values import MISSING

FORMAT_VERSION: Literal[1] = 1


class MentionForm(Form, frozen=True, kw_only=True):
    """Another name, and its description."""

    name: str
    text: str


class ExplanationForm(Form, frozen=True, kw_only=True):
    """The meaning of a name of the files."""

    format_version: Literal[1]
    path: str
    topic: Topic
    text: str
    takes: str
    """The type of a value in words, empty if this is not about a value."""
    has_default: bool
    default: Any
    """Null without one, or if it is null."""
    required: bool
    secret: bool
    values: tuple[Any, ...]
    """Allowed values, or known ones if `is_open`."""
    is_open: bool
    flagged: tuple[str, ...]
    """Values that need a feature flag."""
    dialects: tuple[Dialect, ...]
    """Servers that have it, empty if all do."""
    fixed: tuple[Dialect, ...]
    """Servers that cannot change it in place."""
    related: tuple[MentionForm, ...]
    """Consequences and known refusals that concern it."""
    children: tuple[MentionForm, ...]
    example: str
    """YAML, empty without one."""


def explanation_as_json(explanation: Explanation) -> str:
    """Return the JSON of an explanation."""
    has_default = explanation.default is not MISSING
    return json_text(
        copied(
            ExplanationForm,
            explanation,
            format_version=FORMAT_VERSION,
            has_default=has_default,
            default=explanation.default if has_default else None,
            related=_forms(explanation.related),
            children=_forms(explanation.children),
        )
    )


def _forms(mentions: tuple[Mention, ...]) -> tuple[MentionForm, ...]:
    return tuple(copied(MentionForm, mention) for mention in mentions)
