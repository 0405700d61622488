"""Report contradictions in a workspace, and settings without effect, for one environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address, choice, joined, nearest
from reconciler.model.kind import Kind, containers
from reconciler.model.policy import POSSIBLE_DUPLICATE, UNKNOWN_VALUE
from reconciler.model.resource import Desired, ParentRef, Resource, State
from reconciler.model.schemas import known_schema, schema
from reconciler.model.values import Path, mapping_of, path_text, value_at
from reconciler.workspace.layers import EnvironmentContext, default_layer
from reconciler.workspace.resource_files import Declaration
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import CheckContext, check, converted
from reconciler.workspace.schema.values import OF_ONE_VALUE, check_fields
from reconciler.workspace.workspace_file import DEFAULTS, Workspace, check_rule_words
from reconciler.workspace.yaml.document import Layer, Places, Unknown, is_misread

_PER_ENVIRONMENT = ("environments", "overrides")
_PER_RESOURCE = (*_PER_ENVIRONMENT, "id", "name")
_MOST_COMPARED = 1000
"""Keys that are compared to suggest one: a comparison is slow, and there may be many keys."""
_MOST_LISTED = 20
_UNIQUE = "x-unique-ignoring-case"


def check_consistency(resolved: ResolvedWorkspace) -> None:
    """Report errors across the workspace and between its resources."""
    _check_default_environment(resolved.context.workspace, resolved.context.problems)
    _check_defaults(resolved)
    _check_policy(resolved)
    for declaration in resolved.declared.values():
        _check_environments(declaration, resolved.context.problems)
    for resource in resolved.desired.resources.values():
        if resource.lifecycle.ignore_changes:
            _check_ignored(resource, resolved)
    check_relations(resolved)


def _check_default_environment(workspace: Workspace, problems: DiagnosticCollector) -> None:
    name, names = workspace.value.get("default"), workspace.environments
    if isinstance(name, str) and not isinstance(name, Unknown) and names and name not in names:
        problems.error(
            "unknown-environment",
            f"unknown environment '{name}' in `default`",
            at=workspace.mark(("default",)),
            hint=choice(name, names, "environments"),
        )


def _check_defaults(resolved: ResolvedWorkspace) -> None:
    context, problems = resolved.context, resolved.context.problems
    # An error in a default is reported by the resources that use it.
    reported = {
        (diagnostic.code, diagnostic.at)
        for diagnostic in problems.diagnostics
        if problems.environment in (*diagnostic.environments, "")
    }
    for document in context.documents:
        for name in mapping_of(value_at(document.value, (DEFAULTS,))):
            layer = default_layer(document, name)
            if name not in context.kinds:
                problems.error(
                    "unknown-field",
                    f"unknown kind '{name}' in `defaults`",
                    at=document.key_mark((DEFAULTS, name)),
                    hint=choice(name, context.kinds),
                )
            elif layer is not None:
                _check_default_fields(context, name, layer, reported)


def _check_default_fields(
    context: EnvironmentContext, kind: str, layer: Layer, reported: set[Any]
) -> None:
    problems = context.problems
    known = (schema(kind) or {}).get("properties", {})
    if context.snapshots is None:  # An old mistake in a default does not prevent a plan.
        check_default_values(layer, context.kinds[kind], context, reported)
    for field in mapping_of(layer.value):
        at = layer.document.key_mark((*layer.path, field))
        if field in _PER_RESOURCE:
            message = f"'{field}' is not allowed in `defaults.{kind}`"
            problems.error("not-a-default", message, at=at)
        elif field not in known and ("unknown-field", at) not in reported:
            message = f"unknown field '{field}' in `defaults.{kind}`"
            problems.error("unknown-field", message, at=at, hint=choice(field, known))


def _known_ids(key: str, kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """Return the ids that a key of the policy may list."""
    if key == "deny":
        return tuple(rule for kind in kinds.values() for rule in kind.consequences)
    return (
        *(known.id for kind in kinds.values() for known in kind.refusals),
        POSSIBLE_DUPLICATE,
        UNKNOWN_VALUE,
    )


def _check_policy(resolved: ResolvedWorkspace) -> None:
    """Report unknown ids in `deny`, `attempt` and `rules`, and unknown scopes of `prune`."""
    workspace, kinds, problems = (
        resolved.context.workspace,
        resolved.context.kinds,
        resolved.context.problems,
    )
    words = {"deny": "consequence", "attempt": "refusal"}
    document = workspace.document
    context = CheckContext("the workspace", document.mark, document.key_mark, problems)
    for path in workspace.policies:
        own = workspace.section(*path, "rules")
        if own:
            known_words = {"consequence": _known_ids("deny", kinds), "kind": tuple(kinds)}
            check_rule_words(own, known_words, context, (*path, "rules"))
        for key, word in words.items():
            listed = workspace.section(*path).get(key)
            known = _known_ids(key, kinds) if listed else ()
            for position, rule in enumerate(listed if isinstance(listed, list) else ()):
                is_text = isinstance(rule, str) and not isinstance(rule, Unknown)
                if is_text and rule not in known:
                    problems.error(
                        "not-allowed",
                        f"unknown {word} '{rule}' in {path_text((*path, key))}",
                        at=workspace.mark((*path, key, position)),
                        hint=choice(rule, known),
                    )
        for scope in workspace.section(*path, "prune"):
            code, scopes = _unknown_scope(scope, resolved)
            if code is not None:
                problems.error(
                    code,
                    f"unknown scope '{scope}' in {path_text((*path, 'prune'))}",
                    at=workspace.document.key_mark((*path, "prune", scope)),
                    hint=choice(scope, scopes),
                )


def _unknown_scope(scope: str, resolved: ResolvedWorkspace) -> tuple[str | None, Sequence[str]]:
    """Return the code of an unknown scope of `prune`, None for a known one, and the known ones."""
    kinds = resolved.context.kinds
    kind, dot, key = scope.partition(".")
    if kind not in kinds or (dot and not key):
        return "unknown-field", tuple(kinds)
    address = Address(kind, key)
    if not dot or address in resolved.declared or resolved.context.undetermined.about(address):
        return None, ()
    return "unknown-scope", [str(known) for known in resolved.declared if known.kind == kind]


def _check_environments(declaration: Declaration, problems: DiagnosticCollector) -> None:
    """Report overrides and lists of environments without effect."""
    body = declaration.body
    overrides, listed = body.get("overrides"), body.get("environments")
    if overrides is None and listed is None:
        return
    address, document = declaration.address, declaration.document
    if listed == []:
        problems.warning(
            "no-effect",
            f"{address} is in no environment: the list is empty",
            at=document.mark((*declaration.path, "environments")),
            hint="add an environment, or remove the field to include all",
        )
    for environment, fields in overrides.items() if isinstance(overrides, dict) else ():
        path: Path = (*declaration.path, "overrides", environment)
        if isinstance(listed, list) and environment not in listed:
            problems.warning(
                "no-effect",
                f"override without effect: {address} is not in environment {environment}",
                at=document.key_mark(path),
                hint=f"add {environment} to its `environments`, or remove the override",
            )
        for field in _PER_ENVIRONMENT:
            if isinstance(fields, dict) and field in fields:
                problems.error(
                    "not-an-override",
                    f"'{field}' is not allowed in an override of {address}",
                    at=document.key_mark((*path, field)),
                    hint=f"write `{field}` in the resource itself",
                )


def _check_ignored(resource: Resource, resolved: ResolvedWorkspace) -> None:
    """Report paths in `ignore_changes` that start with an unknown field."""
    for position, path in enumerate(resource.lifecycle.ignore_changes):
        known = (schema(resource.address.kind) or {}).get("properties", {})
        first = path.partition(".")[0]
        if not isinstance(path, Unknown) and first not in known and not first.isdigit():
            resolved.context.problems.error(
                "unknown-field",
                f"unknown field '{first}' in `ignore_changes` of {resource.address}",
                at=resolved.mark(resource, "lifecycle", "ignore_changes", position),
                hint=choice(first, known),
            )


class ResolvedWorkspace(Struct, frozen=True):
    """A workspace in one environment, its resources in the order of their addresses."""

    context: EnvironmentContext
    declared: Mapping[Address, Declaration]
    desired: Desired

    def mark(self, resource: Resource, *path: str | int) -> Mark:
        """Return the place of a field of a resource."""
        return self.context.places[resource.address].near(path)

    def related(self, resource: Resource, name: str) -> tuple[tuple[Mark, str], ...]:
        """Return a field of another resource as a related place of an error."""
        return ((self.mark(resource, name), f"{name} of {resource.address}"),)


Claim: TypeAlias = tuple[object, Resource]
"""Something that only one resource may have, and a resource that has it."""


def check_relations(resolved: ResolvedWorkspace) -> None:
    """Report contradictions between resources."""
    hints = _ParentHints(resolved.desired)
    for resource in resolved.desired.resources.values():
        _check_parent(resource, resolved, hints)
        if resource.lifecycle.protect and resource.state is State.ABSENT:
            resolved.context.problems.error(
                "protected-and-absent",
                f"{resource.address} has `protect: true` and `state: absent`",
                at=resolved.mark(resource, "state"),
            )
    _check_names(resolved)
    _check_pins(resolved)
    _check_former_names(resolved)
    _check_beside(resolved)
    _check_similar_names(resolved)


def check_shared(
    workspace: Workspace, loaded: Iterable[Desired], kinds: Iterable[Kind], to: DiagnosticCollector
) -> None:
    """Report objects that two environments of one organization declare with different content.

    Organizations from references don't count, since the values may differ between jobs. Parents are
    compared by name, since one key may have two names.
    """
    parents = containers(kinds)
    first: dict[object, tuple[str, Resource]] = {}
    for desired in loaded:
        entry = workspace.section("environments", desired.environment)
        service = f"{entry.get('base_url')} {entry.get('organization', '${')}"
        declared = desired.resources.values() if "${" not in service else ()
        names = {item.address.key: item.name for item in declared if item.address.kind in parents}
        for item in declared:
            parent = names.get(item.parent.key or "", str(item.parent)) if item.parent else None
            identity = (service, item.address.kind, parent, item.name, item.pinned_id)
            other, same = first.setdefault(identity, (desired.environment, item))
            if (same.spec, same.state) != (item.spec, item.state):
                text = f"{item.address} differs between {other} and {desired.environment}, which "
                text += "share an organization: each apply reverts the other one"
                to.warning("shared-object", text, at=item.mark)


def _duplicates(claims: Iterable[Claim]) -> Iterator[tuple[Resource, Resource]]:
    """Yield each resource with the one that has claimed the same before."""
    first: dict[object, Resource] = {}
    for claim, resource in claims:
        other = first.setdefault(claim, resource)
        if other is not resource:
            yield resource, other


class _ParentHints:
    """Hints for unknown parents, cached since all children of a parent have the same."""

    def __init__(self, desired: Desired) -> None:
        self._desired = desired
        self._hints: dict[Address, str] = {}

    @cached_property
    def _keys(self) -> Mapping[str, list[str]]:
        keys: dict[str, list[str]] = {}
        for address in sorted(self._desired.resources, key=lambda address: address.key):
            keys.setdefault(address.kind, []).append(address.key)
        return keys

    def hint(self, parent: Address) -> str:
        """Return the closest declared key, or all of them."""
        if parent not in self._hints:
            keys = self._keys.get(parent.kind, [])
            close = nearest(parent.key, keys) if len(keys) <= _MOST_COMPARED else None
            more = f" and {len(keys) - _MOST_LISTED} more" if len(keys) > _MOST_LISTED else ""
            listed = f"declared: {', '.join(keys[:_MOST_LISTED]) or 'none'}{more}"
            self._hints[parent] = f"did you mean '{close}'?" if close else listed
        return self._hints[parent]


def _check_parent(resource: Resource, resolved: ResolvedWorkspace, hints: _ParentHints) -> None:
    kind, ref = resolved.context.kinds[resource.address.kind], resource.parent
    if ref is None or ref.key is None or kind.parent is None or kind.parent_key is None:
        return
    address = Address(kind.parent, ref.key)
    parent = resolved.desired.resources.get(address)
    if parent is None:
        if not isinstance(ref.key, Unknown) and not resolved.context.undetermined.about(address):
            resolved.context.problems.error(
                "unknown-parent",
                f"unknown {kind.parent} '{ref.key}' in {resource.address}",
                at=resolved.mark(resource, kind.parent_key),
                hint=joined(
                    hints.hint(address), f"for a live {kind.parent} write {{id: …}} or {{name: …}}"
                ),
            )
    elif _is_wanted(resource, resolved) and parent.state is State.ABSENT:
        resolved.context.problems.error(
            "absent-parent",
            f"{resource.address} is in {parent.address}, which has `state: absent`",
            at=resolved.mark(resource, kind.parent_key),
            related=resolved.related(parent, "state"),
        )


def _is_wanted(resource: Resource, resolved: ResolvedWorkspace) -> bool:
    """Return whether the resource shall exist for certain."""
    is_unknown = resource.address in resolved.context.undetermined.states
    return resource.state is State.PRESENT and not is_unknown


def _check_names(resolved: ResolvedWorkspace) -> None:
    """Report resources with the same name in one parent, however they refer to the parent."""
    keys = _keys_by_identity(resolved)
    claims = (
        ((resource.address.kind, _parent_of(resource, resolved, keys), resource.name), resource)
        for resource in resolved.desired.resources.values()
        if resource.pinned_id is None
        and _is_wanted(resource, resolved)
        and _has_known_identity(resource)
    )
    for resource, other in _duplicates(claims):
        kind = resolved.context.kinds[resource.address.kind]
        parent = _parent_of(resource, resolved, keys)
        place = "" if other.parent == resource.parent else f" in {kind.parent}.{parent}"
        resolved.context.problems.error(
            "same-name",
            f"{resource.address} and {other.address} have the same name '{resource.name}'{place}",
            at=resolved.mark(resource, "name"),
            related=resolved.related(other, "name"),
        )


def _has_known_identity(resource: Resource) -> bool:
    ref = resource.parent
    if ref is not None and (is_misread(ref.key) or is_misread(ref.id) or is_misread(ref.name)):
        return False
    return not isinstance(resource.spec.get("name"), Unknown)


_KeysByIdentity: TypeAlias = Mapping[tuple[str | None, str, str | None], str]
"""Keys of parents by kind and by name or pinned id."""


def _keys_by_identity(resolved: ResolvedWorkspace) -> _KeysByIdentity:
    keys: dict[tuple[str | None, str, str | None], str] = {}
    parents = containers(resolved.context.kinds.values())
    for resource in resolved.desired.resources.values():
        kind, key = resource.address.kind, resource.address.key
        if kind not in parents:
            continue
        if not isinstance(resource.spec.get("name"), Unknown):
            keys[(kind, "name", resource.name)] = key
        if resource.pinned_id is not None and not is_misread(resource.pinned_id):
            keys[(kind, "id", resource.pinned_id)] = key
    return keys


def _parent_of(
    resource: Resource, resolved: ResolvedWorkspace, keys: _KeysByIdentity
) -> str | ParentRef | None:
    """Return the key of a parent that is declared, else the reference to it."""
    ref, parent = resource.parent, resolved.context.kinds[resource.address.kind].parent
    if ref is None or ref.key:
        return ref.key if ref is not None else None
    return keys.get((parent, "id", ref.id)) or keys.get((parent, "name", ref.name)) or ref


def _check_pins(resolved: ResolvedWorkspace) -> None:
    claims = (
        ((resource.address.kind, resource.pinned_id), resource)
        for resource in resolved.desired.resources.values()
        if resource.pinned_id is not None and not is_misread(resource.pinned_id)
    )
    for resource, other in _duplicates(claims):
        resolved.context.problems.error(
            "same-id",
            f"{resource.address} and {other.address} have the same id",
            at=resolved.mark(resource, "id"),
            related=resolved.related(other, "id"),
        )


def _check_former_names(resolved: ResolvedWorkspace) -> None:
    """Report former names that two resources share: which one was renamed would be a guess."""
    first: dict[object, Resource] = {}
    for resource in resolved.desired.resources.values():
        for position, name in enumerate(resource.lifecycle.renamed_from):
            claim = (resource.address.kind, str(resource.parent), name)
            other = first.setdefault(claim, resource)
            if not name or other is resource:
                continue
            resolved.context.problems.error(
                "same-former-name",
                f"{resource.address} and {other.address} have the same former name '{name}'",
                at=resolved.mark(resource, "lifecycle", "renamed_from", position),
                related=((other.mark, str(other.address)),) if other.mark is not None else (),
            )


def _check_beside(resolved: ResolvedWorkspace) -> None:
    """Report globs in `beside`, which names single objects. Brackets are common in names."""
    for resource in resolved.desired.resources.values():
        for position, text in enumerate(resource.lifecycle.beside):
            if "*" in text or "?" in text:
                resolved.context.problems.warning(
                    "no-glob",
                    f"'{text}' in lifecycle.beside of {resource.address} is not a glob: it matches "
                    "only an object with exactly this name",
                    at=resolved.mark(resource, "lifecycle", "beside", position),
                )


def _check_similar_names(resolved: ResolvedWorkspace) -> None:
    """Report names that differ only in case, for kinds whose newer servers refuse that."""
    kinds = {
        kind
        for kind in resolved.context.kinds
        if _UNIQUE in known_schema(kind)["properties"]["name"]
    }
    claims = (
        ((resource.address.kind, str(resource.parent), resource.name.casefold()), resource)
        for resource in resolved.desired.resources.values()
        if resource.address.kind in kinds
        and resource.state is not State.ABSENT
        and resource.pinned_id is None
    )
    for resource, other in _duplicates(claims):
        if other.name != resource.name:
            resolved.context.problems.warning(
                "similar-name",
                f"the names of {resource.address} and {other.address} differ only in case; newer "
                "servers refuse the second",
                at=resolved.mark(resource, "name"),
                related=resolved.related(other, "name"),
            )


def check_default_values(
    layer: Layer, kind: Kind, context: EnvironmentContext, reported: set[Any]
) -> None:
    """Report wrong values in the defaults of a kind in a file, each field by itself.

    Required fields may be missing, and fields may contradict each other, since resources add and
    replace fields. `reported` are the codes and places of errors, to which new ones are added.
    """
    layers, problems, places = context.layers_of(kind), context.problems, Places((layer,))
    # An error in a reference is reported by the resources that use it.
    references = replace(context.references, problems=DiagnosticCollector(), _cached={})
    fields = mapping_of(layer.value).items()
    own = {name: value for name, value in fields if name not in _PER_RESOURCE}
    values: Any = references.with_inputs(own, places.near)
    if references.has_inputs:
        values = converted(kind.name, values)
    own_problems = DiagnosticCollector(problems.strict, problems.lenient)
    own_problems.environment = problems.environment
    checked = CheckContext(
        f"`defaults.{kind.name}`", places.near, places.key, own_problems, places.written
    )
    misread = {path[:1] for path in check(kind.name, values, checked)}
    spec = {
        layers.canonical.get(name, name): value
        for name, value in values.items()
        if (name,) not in misread
    }
    check_fields(kind, spec, checked, annotated(kind.name, OF_ONE_VALUE, spec))
    for diagnostic in own_problems.diagnostics:
        identity = (diagnostic.code, diagnostic.at)
        if diagnostic.code != "missing-field" and identity not in reported:
            reported.add(identity)
            problems.diagnostics.append(diagnostic)
