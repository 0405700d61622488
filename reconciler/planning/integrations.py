"""Replace the names of integrations by their ids. Names are resolved nowhere else.

Live state has the integrations of the parents that were read. `parents_of_names` says which are
needed, so that nothing is read for files without names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec.structs import replace

from reconciler.model.kind import IntegrationField, Integrations, Kind
from reconciler.model.live import Live
from reconciler.model.plan import AMBIGUOUS, UNRESOLVED, Change, FieldChange, Refusal
from reconciler.model.resource import Resource, State
from reconciler.model.text import listed, printable, quoted
from reconciler.model.values import (
    JSON,
    MISSING,
    Address,
    JSONObject,
    Path,
    path_text,
    put_at,
    value_at,
)
from reconciler.planning.compare import is_ignored
from reconciler.planning.match import Match, Matching

_MOST = 8
_NOT_READ = Integrations(hidden="their list was not read")


def parents_of_names(matching: Matching, addresses: AbstractSet[Address]) -> frozenset[str]:
    """Return the ids of the parents whose integrations some resources name, or named."""
    parents: set[str] = set()
    for address in addresses & matching.matches.keys():
        match = matching.matches[address]
        parent_id = parent_of(match) if any(names_in(match.kind, match.resource.spec)) else None
        if parent_id is None:
            parents |= _of_former_names(match, matching)
        elif match.resource.state is State.PRESENT:
            old_parent = match.live.parent_id if match.live is not None else None
            parents |= {parent_id, old_parent or parent_id}
    return frozenset(parents)


def with_integrations(matching: Matching, addresses: AbstractSet[Address]) -> Matching:
    """Return a matching whose resources have ids in place of names.

    Names that cannot be resolved stay in resources that `addresses` lack, and in those of a parent
    that does not exist yet. Otherwise names that are unknown, ambiguous or not visible to the key
    make the resource ambiguous.
    """
    problems, live = list[Refusal](), matching.live
    matches: dict[Address, Match] = {}
    for address, match in matching.matches.items():
        has_names = any(names_in(match.kind, match.resource.spec))
        parent_id = parent_of(match) if has_names else None
        if parent_id is None:
            continue
        matches[address] = replace(match, resource=resolved(match, match.resource, live))
        if address in addresses and match.resource.state is State.PRESENT:
            problems += _problems(match, live.integrations.get(parent_id, _NOT_READ))
    if not matches:
        return matching
    refused = {refusal.addresses[0] for refusal in problems}
    every = {**matching.matches, **matches}
    ambiguous = {address: every.pop(address) for address in sorted(refused)}
    undecided = {
        match.live.identity: (address,)
        for address, match in ambiguous.items()
        if match.live is not None
    }
    return replace(
        matching,
        matches=every,
        ambiguous={**matching.ambiguous, **ambiguous},
        undecided={**matching.undecided, **undecided},
        unclear=(*matching.unclear, *problems),
    )


def _of_former_names(match: Match, matching: Matching) -> set[str]:
    """Return the parent in which the base names an integration, if the files have an id now."""
    live, spec = match.live, match.resource.spec
    if live is None or live.parent_id is None or not uses_any(match.kind, spec):
        return set()
    was = matching.declared(match.resource, live).applied
    return {live.parent_id} if was is not None and any(names_in(match.kind, was.spec)) else set()


def parent_of(match: Match) -> str | None:
    """Return the id of the parent in which a resource is, None if that does not exist yet."""
    live = match.live if match.resource.parent is None else None
    return live.parent_id if live is not None else match.parent_id


def resolved(match: Match, version: Resource, live: Live, *, as_live: bool = False) -> Resource:
    """Return a version of a matched resource with ids in place of the names that are known.

    `as_live`: only ids that the live object has. For a version that was applied, since a name that
    means another integration today is a new address.
    """
    table, spec = live.integrations.get(parent_of(match) or "", Integrations()), version.spec
    body = match.live.body if match.live is not None else {}
    for path, taken, name in names_in(match.kind, spec) if table.items else ():
        ids = [item.id for item in table.named(taken.kind, name)]
        if len(ids) == 1 and (not as_live or ids[0] == str(value_at(body, path))):
            spec = with_value(spec, path, int(ids[0]))
    return version if spec is version.spec else replace(version, spec=spec)


def named(
    kind: Kind, body: JSONObject, table: Integrations, *, like: JSONObject | None = None
) -> JSONObject:
    """Return a live body with the names of integrations as files have them, as far as known.

    With `like`, the spec of a resource, only where that has a name.
    """
    names = None if like is None else {path for path, _, _ in names_in(kind, like)}
    for path, taken in kind.integration_fields(body):
        value = value_at(body, path)
        if value not in (None, MISSING) and (names is None or path in names):
            body = with_value(body, path, taken.written(table, value))
    return body


def uses_any(kind: Kind, body: JSONObject) -> bool:
    """Return whether a body has the id of an integration."""
    values = (value_at(body, path) for path, _ in kind.integration_fields(body))
    return any(str(value).isdigit() for value in values)


def with_value(value: JSON, path: Path, new: JSON) -> Any:
    """Return a copy of nested mappings with another value at a path."""
    if not path:
        return new
    return {**value, path[0]: with_value(value.get(path[0], {}), path[1:], new)}


def names_in(kind: Kind, spec: JSONObject) -> Iterator[tuple[Path, IntegrationField, str]]:
    """Yield the paths of names in the spec of a resource, with their fields and the names."""
    for path, taken in kind.integration_fields(spec):
        name = taken.name_in(value_at(spec, path))
        if name is not None:
            yield path, taken, name


def _problems(match: Match, table: Integrations) -> Iterator[Refusal]:
    """Yield a refusal for every name that is not that of one integration."""
    resource = match.resource
    for path, taken, name in names_in(match.kind, resource.spec):
        items = [str(item) for item in table.named(taken.kind, name)]
        is_kept = match.live is not None and is_ignored(path, resource.lifecycle)
        if len(items) == 1 or is_kept:
            continue
        what, field = f"{taken.kind} integration {quoted(name)}", path_text(path)
        if table.hidden:
            problem = f"{what} is not visible to this key: {table.hidden}"
            hint = f"use a key with the scope `integration:read`, or set `{field}` to an id"
        elif items:
            problem = f"ambiguous {what}: {listed(items, _MOST)}"
            hint = f"set `{field}` to one of the ids"
        else:
            others = [str(item) for item in table.items if item.kind == taken.kind]
            same = [item.kind for item in table.items if item.name == name]
            problem = f"unknown {what} in {match.kind.parent_key} {parent_of(match)}"
            problem += f" (an integration of that name has the kind {same[0]})" if same else ""
            known = f"one of {listed(others, _MOST)}" if others else "one that exists"
            hint = f"set `{field}` to {known}, or create it in the service"
        yield Refusal(
            AMBIGUOUS if items else UNRESOLVED,
            printable(f"{resource.address}: {problem}"),
            (resource.address,),
            resource.near(path),
            printable(hint),
        )


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
    fields = tuple(_with_ids(item, kind, labels) for item in change.fields)
    return replace(change, fields=fields, integrations=dict(sorted(labels.items())))


def _with_ids(field: FieldChange, kind: Kind, labels: Mapping[str, str]) -> FieldChange:
    """Return a change with ids inside objects as numbers: text could be a secret, and is masked."""
    sides = {"before": field.before, "after": field.after}
    for path in kind.integration_paths:
        inside = path[len(field.path) :]
        for name, side in sides.items() if inside and path[: len(field.path)] == field.path else ():
            text = value_at(side, inside)
            if isinstance(text, str) and text in labels:
                sides[name] = with_value(side, inside, int(text))
    return replace(field, **sides)
