"""Replace the names of integrations by their ids. Names are resolved nowhere else.

Live state has the integrations of the parents that were read. A plan that needs others says which,
so that nothing is read for files without names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from reconciler.errors import ReconcilerError
from reconciler.model.address import Address
from reconciler.model.change import Change, FieldChange
from reconciler.model.integration import IntegrationField, Integrations
from reconciler.model.kind import Kind
from reconciler.model.live import Live
from reconciler.model.resource import Resource, State
from reconciler.model.text import listed, printable, quoted, several
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text, put_at, value_at
from reconciler.planning.ambiguity import Ambiguities
from reconciler.planning.differ import is_ignored
from reconciler.planning.matcher import Match, Matching

_MOST = 8


class IntegrationsNotRead(ReconcilerError):
    """Resources name integrations of parents whose list was not read: `parent_ids`."""

    def __init__(self, parent_ids: frozenset[str]) -> None:
        super().__init__("integrations are named, and their list was not read")
        self.parent_ids = parent_ids


def with_integrations(matching: Matching, live: Live, addresses: Collection[Address]) -> Matching:
    """Return a matching whose resources have ids in place of names.

    Names that cannot be resolved stay in resources that `addresses` lack, and in those of a parent
    that does not exist yet.

    Raises:
        IntegrationsNotRead: the list of a parent is needed.
        AmbiguousIdentity: names are unknown, ambiguous or not visible to the key.

    """
    problems, unread = Ambiguities(), set[str]()
    matches: dict[Address, Match] = {}
    for address, match in matching.matches.items():
        names = list(_names(match.kind, match.resource.spec))
        parent_id = parent_of(match)
        if not names or parent_id is None:
            continue
        if address in addresses and match.resource.state is State.PRESENT:
            if parent_id not in live.integrations:
                unread.add(parent_id)
                continue
            for path, taken, name in names:
                _check(match, path, taken, name, live.integrations[parent_id], problems)
        matches[address] = replace(match, resource=resolved(match, match.resource, live))
    if unread:
        raise IntegrationsNotRead(frozenset(unread))
    problems.raise_any()
    return replace(matching, matches={**matching.matches, **matches}) if matches else matching


def parent_of(match: Match) -> str | None:
    """Return the id of the parent in which a resource is, None if that does not exist yet."""
    if match.resource.parent is None and match.live is not None:
        return match.live.parent_id
    return match.parent_id


def resolved(match: Match, version: Resource, live: Live) -> Resource:
    """Return a version of a matched resource with ids in place of the names that are known."""
    table = live.integrations.get(parent_of(match) or "")
    if table is None:
        return version
    spec = version.spec
    for path, taken, name in _names(match.kind, spec):
        items = table.named(taken.kind, name)
        if len(items) == 1:
            number = items[0].id
            spec = with_value(spec, path, int(number) if number.isdigit() else number)
    return version if spec is version.spec else replace(version, spec=spec)


def as_in_live(match: Match, version: Resource, live: Live) -> Resource:
    """Return a version of the git base with the ids that the live object has by its names.

    A name that means another integration today stays: nobody approved that one.
    """
    body, known = match.live.body if match.live is not None else {}, resolved(match, version, live)
    if known is version:
        return version
    spec = known.spec
    for path, _, _ in _names(match.kind, version.spec):
        if str(value_at(spec, path)) != str(value_at(body, path)):
            spec = with_value(spec, path, value_at(version.spec, path))
    return replace(version, spec=spec)


def named(
    kind: Kind, body: JSONObject, table: Integrations, *, like: JSONObject | None = None
) -> JSONObject:
    """Return a live body with the names of integrations as files have them, as far as known.

    With `like`, the spec of a resource, only where that has a name.
    """
    names = None if like is None else {path for path, _, _ in _names(kind, like)}
    for path, taken in kind.integration_fields(body):
        value = value_at(body, path)
        if value not in (None, MISSING) and (names is None or path in names):
            body = with_value(body, path, taken.written(table, value))
    return body


def with_value(value: JSON, path: Path, new: JSON) -> Any:
    """Return a copy of nested mappings with another value at a path."""
    if not path:
        return new
    return {**value, path[0]: with_value(value.get(path[0], {}), path[1:], new)}


def _names(kind: Kind, spec: JSONObject) -> Iterator[tuple[Path, IntegrationField, str]]:
    for path, taken in kind.integration_fields(spec):
        name = taken.name_in(value_at(spec, path))
        if name is not None:
            yield path, taken, name


def _check(
    match: Match,
    path: Path,
    taken: IntegrationField,
    name: str,
    table: Integrations,
    problems: Ambiguities,
) -> None:
    """Add a problem unless a name is that of one integration."""
    items, resource = table.named(taken.kind, name), match.resource
    if len(items) == 1 or (match.live is not None and is_ignored(path, resource.lifecycle)):
        return
    at = resource.near(path)
    place = f"{resource.address}{f' ({printable(str(at))})' if at is not None else ''}: "
    what, field = f"{taken.kind} integration {quoted(name)}", path_text(path)
    if table.hidden:
        problem = f"{what} is not visible to this key: {printable(table.hidden)}"
        hint = f"use a key with the scope `integration:read`, or set `{field}` to an id"
    elif items:
        ids = listed([str(item) for item in items], _MOST)
        problem = f"{several(len(items), 'integration')} of kind {taken.kind} have the name "
        problem += f"{quoted(name)}: {printable(ids)}"
        hint = f"set `{field}` to one of the ids"
    else:
        others = [str(item) for item in table.items if item.kind == taken.kind]
        same = [item.kind for item in table.items if item.name == name]
        problem = f"unknown {what} in {match.kind.parent_key} {parent_of(match)}"
        problem += f" (an integration of that name has the kind {same[0]})" if same else ""
        known = f"one of {listed(others, _MOST)}" if others else "one that exists"
        hint = f"set `{field}` to {printable(known)}, or create it in the service"
    problems.add(place + problem, hint)


def with_labels(change: Change, kind: Kind, live: Live) -> Change:
    """Return a change with the names of the integrations in it, for readers."""
    parents = (change.parent_id, change.old_parent_id)
    tables = [live.integrations[item] for item in parents if item and item in live.integrations]
    if not tables:
        return change
    sides: list[dict[str, JSON]] = [{}, {}, dict(change.body or {})]
    for item in change.fields:
        put_at(sides[0], item.path, item.before)
        put_at(sides[1], item.path, item.after)
    values = (value_at(side, path) for side in sides for path in kind.integration_paths)
    pairs = ((value, table.of_id(value)) for value in values for table in tables)
    labels: Mapping[str, str] = {
        item.id: printable(str(item)) for _, item in pairs if item is not None and item.name
    }
    if not labels:
        return change
    fields = tuple(_with_ids(item, kind, labels) for item in change.fields)
    return replace(change, fields=fields, integrations=dict(sorted(labels.items())))


def _with_ids(field: FieldChange, kind: Kind, labels: Mapping[str, str]) -> FieldChange:
    """Return a change with ids inside objects as numbers: text could be a secret, and is masked."""
    sides = {"before": field.before, "after": field.after}
    for path in kind.integration_paths:
        inside = path[len(field.path) :]
        for name, side in sides.items() if inside and path[: len(field.path)] == field.path else ():
            if (text := value_at(side, inside)) in labels:
                sides[name] = with_value(side, inside, int(text))
    return replace(field, **sides)
