"""Report settings without effect, and contradictions in one environment and between several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct

from reconciler.diagnostics import Details, DiagnosticCollector, Mark
from reconciler.files.layers import EnvironmentContext
from reconciler.files.resource_files import Declaration
from reconciler.files.validation import CheckContext
from reconciler.files.workspace_file import (
    DEFAULTS,
    Workspace,
    check_rule_words,
    consequence_ids,
)
from reconciler.files.yaml_document import Unknown, is_misread
from reconciler.kinds import all_kinds, behaviour_of, kinds_by_name
from reconciler.model.kind import containers
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.schemas import known_schema
from reconciler.model.settings import UNKNOWN_VALUE
from reconciler.model.text import choice, joined, listed, named, nearest
from reconciler.model.values import Address, Path, mapping_of, path_text, value_at
from reconciler.packaged import use_instead

_PER_ENVIRONMENT = ("environments", "overrides")
_PER_RESOURCE = (*_PER_ENVIRONMENT, "id", "name")
_NAME = ("name",)
_MOST_LISTED = 20
_UNIQUE = "x-unique-ignoring-case"


class ResolvedWorkspace(Struct, frozen=True):
    """A workspace in one environment, its resources in the order of their addresses."""

    context: EnvironmentContext
    declared: Mapping[Address, Declaration]
    desired: Desired

    def mark(self, resource: Resource, *path: str | int) -> Mark:
        """Return the place of a field of a resource."""
        return self.context.places[resource.address].near(path)

    def duplicates(
        self, claims: Iterable[tuple[tuple[Any, ...], Resource, Path]]
    ) -> Iterator[tuple[tuple[Any, ...], Resource, Resource, Details]]:
        """Yield each claim on what another resource claims: both, and the places of the fields."""
        first: dict[object, tuple[Resource, Path]] = {}
        for claim, resource, path in claims:
            other, there = first.setdefault(claim, (resource, path))
            if other is not resource:
                related = ((self.mark(other, *there), f"{path_text(there)} of {other.address}"),)
                yield claim, resource, other, {"at": self.mark(resource, *path), "related": related}


def check_consistency(resolved: ResolvedWorkspace) -> None:
    """Report errors across the workspace and between its resources."""
    context, workspace = resolved.context, resolved.context.workspace
    document = workspace.document
    check = CheckContext("the workspace", document.mark, document.key_mark, context.problems)
    name, names = workspace.value.get("default"), workspace.environments
    if isinstance(name, str) and not isinstance(name, Unknown) and names and name not in names:
        message = f"unknown environment '{name}' in `default`"
        hint = choice(name, names, "environments")
        check.error("unknown-environment", ("default",), message, hint)
    _check_defaults(context)
    for path in workspace.policies:
        _check_policy(workspace.section(*path), path, check)
    for declaration in resolved.declared.values():
        _check_environments(declaration, context.problems)
    for resource in resolved.desired.resources.values():
        if resource.lifecycle.ignore_changes:
            _check_ignored(resource, resolved)
    _check_relations(resolved)


def _check_defaults(context: EnvironmentContext) -> None:
    """Report defaults of unknown kinds, and fields of one resource. Others are checked in use."""
    for document in context.documents:
        for name, fields in mapping_of(value_at(document.value, (DEFAULTS,))).items():
            if name not in kinds_by_name():
                message, at = f"unknown kind '{name}' in `defaults`", (DEFAULTS, name)
                hint, place = choice(name, kinds_by_name()), document.key_mark(at)
                context.problems.error("unknown-field", message, at=place, hint=hint)
            for field in mapping_of(fields).keys() & _PER_RESOURCE:
                message = f"'{field}' is not allowed in `defaults.{name}`"
                place = document.key_mark((DEFAULTS, name, field))
                context.problems.error("not-a-default", message, at=place)


def _refusal_ids() -> tuple[str, ...]:
    """Return the ids that `attempt` may list. The behaviours of kinds are imported."""
    refusals = (known.id for kind in all_kinds() for known in behaviour_of(kind).refusals)
    return (*refusals, UNKNOWN_VALUE)


def _check_policy(policy: Mapping[str, Any], path: Path, check: CheckContext) -> None:
    """Report unknown ids in `deny`, `attempt` and `rules`."""
    check_rule_words(policy.get("rules"), check, (*path, "rules"))
    for key, word, ids in (
        ("deny", "consequence", consequence_ids),
        ("attempt", "refusal", _refusal_ids),
    ):
        given = policy.get(key)
        known = ids() if given else ()
        for position, rule in enumerate(given if isinstance(given, list) else ()):
            is_text = isinstance(rule, str) and not isinstance(rule, Unknown)
            if is_text and rule not in known:
                message = f"unknown {word} '{rule}' in {path_text((*path, key))}"
                hint = use_instead(rule) or choice(rule, known)
                check.error("not-allowed", (*path, key, position), message, hint)


def _check_environments(declaration: Declaration, problems: DiagnosticCollector) -> None:
    """Report overrides and lists of environments without effect."""
    body = declaration.body
    overrides, listed = body.get("overrides"), body.get("environments")
    if overrides is None and listed is None:
        return
    address, document = declaration.address, declaration.document
    if listed == []:
        at = document.mark((*declaration.path, "environments"))
        hint = "add an environment, or remove the field to include all"
        message = f"{address} is in no environment: the list is empty"
        problems.warning("no-effect", message, at=at, hint=hint)
    for environment, fields in mapping_of(overrides).items():
        path: Path = (*declaration.path, "overrides", environment)
        if isinstance(listed, list) and environment not in listed:
            hint = f"add {environment} to its `environments`, or remove the override"
            message = f"override without effect: {address} is not in environment {environment}"
            problems.warning("no-effect", message, at=document.key_mark(path), hint=hint)
        for field in mapping_of(fields).keys() & _PER_ENVIRONMENT:
            at, hint = document.key_mark((*path, field)), f"write `{field}` in the resource itself"
            message = f"'{field}' is not allowed in an override of {address}"
            problems.error("not-an-override", message, at=at, hint=hint)


def _check_ignored(resource: Resource, resolved: ResolvedWorkspace) -> None:
    """Report unknown fields in `ignore_changes`. An unknown tag may have any field."""
    kind = kinds_by_name()[resource.address.kind]
    known, depths = _known_paths(kind.name), {}
    for field, variant in kind.variants:
        is_known = str(value_at(resource.spec, (field.name, variant.tag))) in variant.variants
        depths[field.name] = 3 if is_known else 2
    for position, path in enumerate(resource.lifecycle.ignore_changes):
        names = path.split(".")
        inside = ".".join(names[: depths.get(names[0], 1)])
        if not isinstance(path, Unknown) and inside not in known and not inside.isdigit():
            message = f"unknown field '{inside}' in `ignore_changes` of {resource.address}"
            at = resolved.mark(resource, "lifecycle", "ignore_changes", position)
            hint = choice(inside, known)
            resolved.context.problems.error("unknown-field", message, at=at, hint=hint)


@cache
def _known_paths(kind: str) -> tuple[str, ...]:
    """Return the paths of fields, for `ignore_changes`: of all tags, since defaults are for all."""
    paths = list(known_schema(kind)["properties"])
    for field, variant in kinds_by_name()[kind].variants:
        extras = (extra.name for extra in variant.extras)
        paths += (f"{field.name}.{name}" for name in (variant.tag, variant.body, *extras))
        within = {item.name: None for items in variant.variants.values() for item in items}
        paths += (f"{field.name}.{variant.body}.{name}" for name in within)
    return tuple(paths)


def _check_relations(resolved: ResolvedWorkspace) -> None:
    """Report contradictions between resources."""
    problems, resources = resolved.context.problems, resolved.desired.resources.values()
    parents = containers(all_kinds())
    containing = [resource for resource in resources if resource.address.kind in parents]
    keys = {
        kind: frozenset(item.address.key for item in containing if item.address.kind == kind)
        for kind in parents
    }
    for resource in resources:
        _check_parent(resource, resolved, keys)
        if resource.lifecycle.protect and resource.state is State.ABSENT:
            message = f"{resource.address} has `protect: true` and `state: absent`"
            at = resolved.mark(resource, "state")
            problems.error("protected-and-absent", message, at=at)
    _check_names(resolved, containing)
    pins = (
        ((resource.address.kind, resource.pinned_id), resource, ("id",))
        for resource in resources
        if resource.pinned_id is not None and not is_misread(resource.pinned_id)
    )
    for _, resource, other, places in resolved.duplicates(pins):
        message = f"{resource.address} and {other.address} have the same id"
        problems.error("same-id", message, **places)
    _check_similar_names(resolved)


def _check_parent(
    resource: Resource, resolved: ResolvedWorkspace, keys: Mapping[str, frozenset[str]]
) -> None:
    """Report an unknown or absent parent. `keys` are those of the possible ones by kind."""
    kind, ref = kinds_by_name()[resource.address.kind], resource.parent
    if ref is None or ref.key is None or kind.parent is None or kind.parent_key is None:
        return
    address, problems = Address(kind.parent, ref.key), resolved.context.problems
    parent = resolved.desired.resources.get(address)
    if parent is None:
        context = resolved.context
        is_known = not context.incomplete and address not in context.unresolved
        if is_known and not isinstance(ref.key, Unknown):
            live = f"for a live {kind.parent} write {{id: …}} or {{name: …}}"
            hint = joined(_declared_hint(ref.key, keys[kind.parent]), live)
            message = f"unknown {kind.parent} '{ref.key}' in {resource.address}"
            at = resolved.mark(resource, kind.parent_key)
            problems.error("unknown-parent", message, at=at, hint=hint)
    elif resource.state is State.PRESENT and parent.state is State.ABSENT:
        message = f"{resource.address} is in {parent.address}, which has `state: absent`"
        related = ((resolved.mark(parent, "state"), f"state of {parent.address}"),)
        at = resolved.mark(resource, kind.parent_key)
        problems.error("absent-parent", message, at=at, related=related)


# Cached, since all children of a parent have the same hint.
@lru_cache(maxsize=1_000)
def _declared_hint(key: str, keys: frozenset[str]) -> str:
    """Return the closest declared key, or all of them."""
    close = nearest(key, keys)
    declared = f"declared: {listed(sorted(keys), _MOST_LISTED) or 'none'}"
    return declared if close is None else f"did you mean '{close}'?"


def _check_names(resolved: ResolvedWorkspace, containing: Sequence[Resource]) -> None:
    """Report resources with the same name in one parent, however they refer to the parent."""
    kinds = kinds_by_name()
    keys: dict[tuple[str | None, str, str | None], str] = {}
    for container in containing:
        kind, key = container.address.kind, container.address.key
        if not isinstance(container.spec.get("name"), Unknown):
            keys[kind, "name", container.name] = key
        if container.pinned_id is not None and not is_misread(container.pinned_id):
            keys[kind, "id", container.pinned_id] = key

    def parent_of(resource: Resource) -> str | ParentRef | None:
        """Return the key of a parent that is declared, else the reference to it."""
        ref, kind = resource.parent, kinds[resource.address.kind].parent
        if ref is None or ref.key:
            return ref.key if ref is not None else None
        return keys.get((kind, "id", ref.id)) or keys.get((kind, "name", ref.name)) or ref

    claims = (
        ((resource.address.kind, parent_of(resource), resource.name), resource, _NAME)
        for resource in resolved.desired.resources.values()
        if resource.pinned_id is None
        and resource.state is State.PRESENT
        and _has_known_identity(resource)
    )
    for _, resource, other, places in resolved.duplicates(claims):
        parent_kind, parent = kinds[resource.address.kind].parent, parent_of(resource)
        inside = "" if other.parent == resource.parent else f" in {parent_kind}.{parent}"
        text = f"{resource.address} and {other.address} have the same name {named(resource.name)}"
        resolved.context.problems.error("same-name", f"{text}{inside}", **places)


def _has_known_identity(resource: Resource) -> bool:
    ref = resource.parent
    if ref is not None and any(map(is_misread, (ref.key, ref.id, ref.name))):
        return False
    return not isinstance(resource.spec.get("name"), Unknown)


def _check_similar_names(resolved: ResolvedWorkspace) -> None:
    """Report names that differ only in case if newer servers refuse that."""
    kinds = {
        kind for kind in kinds_by_name() if _UNIQUE in known_schema(kind)["properties"]["name"]
    }
    claims = (
        ((resource.address.kind, str(resource.parent), resource.name.casefold()), resource, _NAME)
        for resource in resolved.desired.resources.values()
        if resource.address.kind in kinds
        and resource.state is not State.ABSENT
        and resource.pinned_id is None
    )
    for _, resource, other, places in resolved.duplicates(claims):
        if other.name != resource.name:
            text = f"the names of {resource.address} and {other.address} differ only in case; "
            text += "newer servers refuse the second"
            resolved.context.problems.warning("similar-name", text, **places)


def check_shared(workspace: Workspace, loaded: Iterable[Desired], to: DiagnosticCollector) -> None:
    """Report objects that two environments of one organization declare with different content.

    Organizations from references don't count, since the values may differ between jobs. Parents are
    compared by name, since one key may have two names.
    """
    parents = containers(all_kinds())
    first: dict[object, tuple[str, list[Resource]]] = {}
    for desired in loaded:
        entry = workspace.section("environments", desired.environment)
        service = f"{entry.get('base_url')} {entry.get('organization', '${')}"
        declared = desired.resources.values() if "${" not in service else ()
        names = {item.address.key: item.name for item in declared if item.address.kind in parents}
        for item in declared:
            parent = names.get(item.parent.key or "", str(item.parent)) if item.parent else None
            identity = (service, item.address.kind, parent, item.name, item.pinned_id)
            # One environment may have a name twice: absent under one key, or as an error.
            other, items = first.setdefault(identity, (desired.environment, []))
            if other == desired.environment:
                items.append(item)
            elif (item.spec, item.state) not in [(same.spec, same.state) for same in items]:
                text = f"{item.address} differs between {other} and {desired.environment}, which "
                text += "share an organization: each apply reverts the other one"
                to.warning("shared-object", text, at=item.mark)
