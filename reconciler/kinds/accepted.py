"""What servers do not accept, by the words `x-since`, `x-until` and `x-accepts` of schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.kinds.behaviour import KnownRefusal, Objection, RuleContext
from reconciler.model.kind import Action, Dialect, Field, Variant
from reconciler.model.text import json_shown
from reconciler.model.values import JSON, MISSING, Path, mapping_of, path_text, value_at


def not_accepted(context: RuleContext) -> Objection | None:
    """The server does not have a field, a type or a value: it refuses or ignores it.

    Such as destination type S3 on servers of 2026, and `timezone` on older ones. Use what the
    message proposes, or `${unset}` in `overrides` of this environment.
    """
    if context.dialect is None:
        return None
    parts = list(_unaccepted(context, context.dialect))
    if not parts:
        return None
    listed = ", ".join(part.message for part in parts)
    message = f"the server (dialect {context.dialect}) does not accept {listed}"
    return Objection(message, parts[0].fix, parts[0].path)


def _unaccepted(context: RuleContext, dialect: Dialect) -> Iterator[Objection]:
    live = context.live.body if context.live is not None else {}
    for name in dict.fromkeys(str(change.path[0]) for change in context.change.fields):
        field, value = context.kind.field_named(name), context.sent(name)
        if field is None or value in (MISSING, None):
            continue
        if field.variant is not None:
            yield from _inside(field.variant, (name,), value, dialect)
        elif field.has(dialect):
            yield from _values(field, (name,), value, dialect)
        # A live object with the field proves that the server has it. A default changes nothing.
        elif field.until is not None or (name not in live and value != field.default):
            fix = "remove it, or set it to ${unset} in `overrides` of this environment"
            yield Objection(name, fix, (name,))


def _inside(variant: Variant, path: Path, value: JSON, dialect: Dialect) -> Iterator[Objection]:
    """Yield the tag, or else the fields of the body."""
    tag_path = (*path, variant.tag)
    tag = str(value_at(value, (variant.tag,)))
    if dialect not in variant.dialects.get(tag, (dialect,)):
        others = [other for other, has in variant.dialects.items() if dialect in has]
        fix = variant.instead.get(tag) or _one_of(others)
        yield Objection(f"{path_text(tag_path)} {tag}", f"use {fix}", tag_path)
        return
    fields = variant.named_fields_of(value)
    for name, inner in mapping_of(value_at(value, (variant.body,))).items():
        if (field := fields.get(name)) is None:
            continue
        if field.has(dialect):
            yield from _values(field, (*path, variant.body, name), inner, dialect)
        else:
            fix = "remove it and use an `integration`" if field.secret else "remove it"
            yield Objection(name, fix, (*path, variant.body, name))


def _values(field: Field, path: Path, value: JSON, dialect: Dialect) -> Iterator[Objection]:
    accepted = field.accepts.get(dialect, (value,))
    if value not in accepted:
        what = f"{path_text(path)} {json_shown(value)}"
        yield Objection(what, f"use {_one_of(map(json_shown, accepted))}", path)


def _one_of(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


NOT_ACCEPTED = KnownRefusal(
    "not-accepted",
    str(not_accepted.__doc__),
    not_accepted,
    (Action.CREATE, Action.REPLACE, Action.UPDATE),
)
