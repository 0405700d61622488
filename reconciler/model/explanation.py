"""What a name of the files means: a field, a kind, a code or a rule."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.dialect import Dialect
from reconciler.model.term import Term
from reconciler.model.values import JSON, MISSING, Missing


class Topic(Term):
    """What an explanation is about."""

    FIELD = "field", "A field of a file, or a group of fields."
    DIAGNOSTIC = "diagnostic", "A code of messages about files."
    CONSEQUENCE = "consequence", "A rule about a change; policy.deny names its id."
    REFUSAL = "refusal", "A change that a server refuses; policy.attempt names its id."


class Mention(Struct, frozen=True):
    """Another name, and its description."""

    name: str
    text: str


class Explanation(Struct, frozen=True):
    """The meaning of a name.

    takes
        The type of a value in words, "" if this is not about a value.
    values
        The values that are allowed, or known if `is_open`. `flagged` need a feature flag.
    dialects
        The servers that have it, () if all do. `fixed` are those that cannot change it in place.
    related
        The consequences and known refusals that concern a field.
    children
        What is below it.
    example (YAML)
        YAML, "" without one.
    """

    path: str
    topic: Topic
    text: str
    takes: str = ""
    default: JSON | Missing = MISSING
    required: bool = False
    secret: bool = False
    values: tuple[JSON, ...] = ()
    is_open: bool = False
    flagged: tuple[str, ...] = ()
    dialects: tuple[Dialect, ...] = ()
    fixed: tuple[Dialect, ...] = ()
    related: tuple[Mention, ...] = ()
    children: tuple[Mention, ...] = ()
    example: str = ""
