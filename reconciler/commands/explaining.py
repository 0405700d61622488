"""The use case `explain`: what a field, a code or a rule means. Reads no files of the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from reconciler.authoring.yaml_text import yaml_text
from reconciler.codes import codes
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.dialect import Dialect
from reconciler.model.explanation import Explanation, Mention, Topic
from reconciler.model.kind import Kind
from reconciler.model.rule import KnownRefusal, Rule
from reconciler.model.suggestion import nearest
from reconciler.model.values import JSON, MISSING, Path, put_at
from reconciler.model.vocabulary import WORKSPACE, Entry, entries
from reconciler.planning.field_effects import rules_about

_FILE = "reconciler.yaml"
_ANY = "*"
_MOST_VALUES = 4
_SAMPLE_TIMES = ("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z")


def explain(name: str) -> Explanation:
    """Return the explanation of a path of fields, a code, or the id of a rule.

    Raises BadUsage for an unknown name.
    """
    wanted = WORKSPACE if name == _FILE else name
    entry = _entry(wanted)
    if entry is not None:
        return _of_entry(entry)
    rule = _rules().get(wanted)
    if rule is not None:
        return _of_rule(rule)
    known = codes().get(wanted)
    if known is not None:
        return Explanation(wanted, Topic.DIAGNOSTIC, f"{known.title}. {known.help}")
    raise BadUsage(f"unknown name '{name}'", hint=_suggestion(name))


def overview() -> Explanation:
    """Return what can be explained, by its first word."""
    tops = [entry for name, entry in _entries().items() if "." not in name]
    return Explanation("", Topic.FIELD, "Names to explain.", children=_mentions(tops))


@cache
def _kinds() -> Mapping[str, Kind]:
    return {kind.name: kind for kind in all_kinds()}


def _entries() -> Mapping[str, Entry]:
    return entries(tuple(_kinds()))


def _rules() -> Mapping[str, Rule | KnownRefusal]:
    known: dict[str, Rule | KnownRefusal] = {}
    for kind in all_kinds():
        known |= {rule.id: rule for rule in kind.rules}
        known |= {refusal.id: refusal for refusal in kind.refusals}
    return known


def _entry(name: str) -> Entry | None:
    """Return the entry of a name. Any name stands for `*`: `environments.prod.base_url`."""
    known, path = _entries(), ""
    collections = {kind.collection: kind.name for kind in all_kinds()}
    for position, part in enumerate(name.split(".")):
        if not position:
            path = collections.get(part, part)
            continue
        exact, any_name = f"{path}.{part}", f"{path}.{_ANY}"
        path = exact if exact in known or any_name not in known else any_name
    return known.get(path)


def _suggestion(name: str) -> str:
    """Return a hint: names that end in the same word, or the closest name."""
    known = _entries()
    word = name.rpartition(".")[2]
    same = [full for full in known if full.rpartition(".")[2] == word]
    if same:
        return _choice_of(same)
    beginnings = {kind.collection: kind.name for kind in all_kinds()}
    first, dot, rest = name.partition(".")
    plain = f"{beginnings.get(first, first)}{dot}{rest}"
    close = nearest(plain, (*known, *_rules(), *codes()))
    if close:
        return f"did you mean '{close}'?"
    # A field is often written without the path around it.
    words = frozenset(full.rpartition(".")[2] for full in known) - {_ANY}
    if close := nearest(word, words):
        return _choice_of([full for full in known if full.rpartition(".")[2] == close])
    tops = [full for full in known if "." not in full]
    return f"names begin with: {', '.join(tops)}"


def _choice_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_VALUES} more" if len(names) > _MOST_VALUES else ""
    return f"did you mean {', '.join(repr(name) for name in names[:_MOST_VALUES])}{more}?"


def _of_entry(entry: Entry) -> Explanation:
    kind = _kinds().get(entry.kind or "")
    return Explanation(
        path=entry.name,
        topic=Topic.FIELD,
        text=entry.text,
        takes=entry.takes if entry.path else "",
        default=entry.node.get("default", MISSING),
        required=entry.required,
        secret=bool(entry.node.get("x-secret")),
        values=entry.values,
        is_open="x-open-enum" in entry.node,
        flagged=tuple(entry.node.get("x-feature-flag", ())),
        dialects=entry.dialects,
        fixed=_fixed(kind, entry),
        related=tuple(_related(kind, entry)) if kind is not None and entry.path else (),
        children=_mentions(entry.members()),
        example=_example(kind, entry),
    )


def _mentions(members: Iterable[Entry]) -> tuple[Mention, ...]:
    return tuple(Mention(member.name, member.text) for member in members)


def _of_rule(rule: Rule | KnownRefusal) -> Explanation:
    is_refusal = isinstance(rule, KnownRefusal)
    key = "attempt" if is_refusal else "deny"
    return Explanation(
        rule.id,
        Topic.REFUSAL if is_refusal else Topic.CONSEQUENCE,
        " ".join(rule.meaning.split()),
        example=yaml_text({"policy": {key: [rule.id]}}),
    )


def _fixed(kind: Kind | None, entry: Entry) -> tuple[Dialect, ...]:
    field = kind.field_at(entry.path, _spec(entry)) if kind is not None and entry.path else None
    return tuple(dialect for dialect in Dialect if field is not None and field.is_fixed(dialect))


def _related(kind: Kind, entry: Entry) -> Iterator[Mention]:
    rules = {
        rule.id: rule
        for spec in _specs(kind, entry)
        for rule in rules_about(kind, entry.path, _samples(entry), spec)
    }
    for rule_id, rule in rules.items():
        first, _, _ = " ".join(rule.meaning.split()).partition(". ")
        yield Mention(rule_id, f"{first.removesuffix('.')}.")


def _specs(kind: Kind, entry: Entry) -> Iterator[dict[str, JSON]]:
    """Yield the rest of a resource, also with every value of fields that are sent with this one."""
    spec = _spec(entry)
    yield spec
    field = kind.field_at(entry.path, spec)
    for name in field.sent_with if field is not None and len(entry.path) == 1 else ():
        for value in _entries()[f"{kind.name}.{name}"].values:
            yield {**spec, name: value}


def _spec(entry: Entry) -> dict[str, JSON]:
    """Return what a resource must have for an entry to count: its variant, and `x-only-with`."""
    spec: dict[str, JSON] = {}
    for name, values in entry.node.get("x-only-with", {}).items():
        spec[name] = values[0] if isinstance(values, list) else values
    for path, tag in entry.tags:
        put_at(spec, path, tag)
    return spec


def _samples(entry: Entry) -> tuple[JSON, ...]:
    """Return values of an entry, of different meaning where the schema says so."""
    types = entry.node.get("type", ())
    if entry.values:
        return entry.values[:_MOST_VALUES]
    if entry.node.get("format") == "date-time":
        return _SAMPLE_TIMES
    if "boolean" in types:
        return (True, False)
    if "integer" in types or "number" in types:
        return (entry.node.get("minimum", 1), entry.node.get("maximum", 2))
    if "array" in types:
        return (["a"], ["b"])
    return ({"a": 1}, {"b": 1}) if "object" in types else ("a", "https://b.example")


def _example(kind: Kind | None, entry: Entry) -> str:
    if not entry.path:
        return ""
    content = _example_value(entry)
    if content in ({}, []):
        return ""
    value = _spec(entry)
    put_at(value, *_in_lists(entry, content))
    return yaml_text(value if kind is None else {kind.collection: {"my-key": value}})


def _in_lists(entry: Entry, content: JSON) -> tuple[Path, JSON]:
    """Return where an example is, and its value. What is in a list is an item of it."""
    path: Path = ()
    for depth, part in reversed(list(enumerate(entry.path))):
        above = entry.name.split(".")[: depth - len(entry.path)]
        holder = _entries().get(".".join(above))
        types = holder.node.get("type", ()) if holder is not None else ()
        if part == _ANY and "array" in types:
            for name in reversed(path):
                content = {name: content}
            path, content = (), [content]
        else:
            path = ("production" if part == _ANY else part, *path)
    return path, content


def _example_value(entry: Entry) -> JSON:
    """Return a value for a reader: a reference to a secret, an example, or a plain value."""
    node = entry.node
    if node.get("x-secret"):
        return f"${{secret:env:{str(entry.path[-1]).upper()}}}"
    for values in (node.get("examples"), entry.values):
        if values:
            value: JSON = values[0]
            return value
    default = node.get("default")
    if isinstance(default, bool):
        return not default
    if default not in (None, [], {}):
        return default
    members = {
        str(member.path[-1]): _example_value(member)
        for member in entry.members()
        if member.required and not member.tags
    }
    if members:
        return members
    return _plain_sample(entry)


def _below(items: Iterable[Entry]) -> Iterator[Entry]:
    for item in items:
        yield from item.members()


def _plain_sample(entry: Entry) -> JSON:
    types = entry.node.get("type", ())
    names = (types,) if isinstance(types, str) else types
    first = names[0] if names else "string"
    if first == "string":
        if entry.node.get("format") == "date-time":
            return _SAMPLE_TIMES[1]
        return "https://example.com" if "x-url" in entry.node else "my-text"
    if first == "array":
        items = [item for item in entry.members() if item.path[-1] == _ANY]
        below = {str(member.path[-1]): _example_value(member) for member in _below(items)}
        return [below or "my-text"]
    return {"object": {}, "boolean": True}.get(first, entry.node.get("minimum", 1))
