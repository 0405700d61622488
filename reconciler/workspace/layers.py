"""Declared resources to `Desired`: merged, filled in and checked for one environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address, choice
from reconciler.model.kind import Kind
from reconciler.model.resource import (
    DEFAULT_LIFECYCLE,
    Desired,
    Lifecycle,
    ParentRef,
    Resource,
    State,
)
from reconciler.model.values import JSON, MISSING, Path, holds_reference, value_at
from reconciler.workspace.checks.values import check_fields
from reconciler.workspace.declarations import Declaration, Undetermined
from reconciler.workspace.environment_names import reads_environment
from reconciler.workspace.hints import NOT_FILLED
from reconciler.workspace.inputs import converted
from reconciler.workspace.literal_secrets import replace_literals
from reconciler.workspace.managed_fields import ManagedFields
from reconciler.workspace.merging import KindLayers
from reconciler.workspace.references import References
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.workspace_file import Workspace, policy_of
from reconciler.workspace.yaml.document import Places, Unknown

if TYPE_CHECKING:
    from reconciler.workspace.snapshots import Snapshots

_PER_ENVIRONMENT = ("overrides", "environments")


class EnvironmentContext(Struct):
    """What resolving the resources of one environment needs, and what it collects."""

    environment: str
    workspace: Workspace
    kinds: Mapping[str, Kind]
    references: References
    problems: DiagnosticCollector
    undetermined: Undetermined = field(default_factory=Undetermined)
    snapshots: Snapshots | None = None
    places: dict[Address, Places] = field(default_factory=dict)
    _reported: set[object] = field(default_factory=set)
    _kind_layers: dict[str, KindLayers] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all environments."""
        return self.workspace.environments or (self.environment,)

    def layers_of(self, kind: Kind) -> KindLayers:
        """Return what the resources of a kind share."""
        if kind.name not in self._kind_layers:
            layers = KindLayers.of(kind, self.workspace, self.environment, self._filled)
            self._kind_layers[kind.name] = layers
        return self._kind_layers[kind.name]

    def _filled(self, text: str) -> JSON:
        """Return a text with its references filled in. What is wrong is reported elsewhere."""
        quiet = replace(self.references, problems=DiagnosticCollector(), _cached={})
        return quiet.resolved(text, lambda path, part=None: Mark(""))  # noqa: ARG005

    def drop_repeated(self, address: Address, since: int) -> None:
        """Remove new diagnostics that another resource has reported at the same place.

        A mistake in defaults, or in a merged mapping, is one mistake.
        """
        new = self.problems.diagnostics[since:]
        del self.problems.diagnostics[since:]
        for diagnostic in new:
            message = diagnostic.message.replace(str(address), "")
            identity = (diagnostic.code, diagnostic.at, message)
            if identity not in self._reported:
                self._reported.add(identity)
                self.problems.diagnostics.append(diagnostic)


def resolve(declared: Mapping[Address, Declaration], context: EnvironmentContext) -> Desired:
    """Return the resources of one environment, without base URL and organization."""
    resources: dict[Address, Resource] = {}
    names = context.names
    for address in sorted(declared, key=attrgetter("kind", "key")):
        declaration = declared[address]
        if not _is_in_environment(declaration, names, context):
            continue
        since = len(context.problems.diagnostics)
        resource = _known_or_resolved(declaration, context)
        if len(context.problems.diagnostics) > since:
            context.drop_repeated(address, since)
        if resource is not None:
            resources[address] = resource
        else:
            context.undetermined.addresses.add(address)
    policy = policy_of(context.workspace, context.environment, tuple(context.kinds.values()))
    return Desired(context.environment, "", "", resources, policy, context.references.declared)


def _known_or_resolved(declaration: Declaration, context: EnvironmentContext) -> Resource | None:
    """Return the resource, resolved at another commit if its documents are the same."""
    kind = context.kinds[declaration.address.kind]
    if context.snapshots is None:
        return _resolved(kind, declaration, context)
    documents = (context.workspace.document, declaration.document)
    known = context.snapshots.known(*documents, declaration.address)
    if known is not None:
        resource, context.places[declaration.address] = known
        return resource
    before = len(context.problems.diagnostics)
    resolved = _resolved(kind, declaration, context)
    if resolved is not None and len(context.problems.diagnostics) == before:
        context.snapshots.keep(*documents, resolved, context.places[declaration.address])
    return resolved


def _is_in_environment(
    declaration: Declaration, names: Sequence[str], context: EnvironmentContext
) -> bool:
    """Return whether the environment has the resource. Report unknown environments."""
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
    if listed is None and overrides is None:
        return True
    listed_names = enumerate(listed if isinstance(listed, list) else ())
    mentioned: list[tuple[Path, Any]] = [(("environments", at), name) for at, name in listed_names]
    mentioned += [(("overrides", name), name) for name in _mapping(overrides)]
    for path, name in mentioned:
        if name in names:
            continue
        is_key = path[0] == "overrides"
        if not is_key:
            context.undetermined.addresses.add(declaration.address)
        if isinstance(name, Unknown) or (is_key and "${" in name):
            continue  # It is reported already.
        mark = declaration.document.key_mark if is_key else declaration.document.mark
        context.problems.error(
            "unknown-environment",
            f"unknown environment '{name}' in {declaration.address}",
            at=mark((*declaration.path, *path)),
            hint=NOT_FILLED if holds_reference(str(name)) else choice(name, names, "environments"),
        )
    return not isinstance(listed, list) or context.environment in listed


class Filled(Struct, frozen=True):
    """A resource with its layers merged and its references filled in.

    `unfilled` are the fields about environments, which are checked as they are written. `name` is
    the name as it is written.
    """

    values: Mapping[str, JSON]
    unfilled: Mapping[str, JSON]
    name: JSON
    places: Places
    check: CheckContext

    @property
    def checked(self) -> Mapping[str, JSON]:
        """All fields."""
        return {**self.values, **self.unfilled} if self.unfilled else self.values

    def without(self, paths: Iterable[Path]) -> Filled:
        """Return the resource with unknown values at paths whose errors are reported."""
        values: Any = self.values
        for path in paths:
            if value_at(values, path) is not MISSING:
                values = _with_unknown(values, path)
        return replace(self, values=values) if values is not self.values else self


def _resolved(kind: Kind, declaration: Declaration, context: EnvironmentContext) -> Resource | None:
    """Return the resource: merge, fill in, check. None if it has no name because of an error."""
    merged = filled(kind, declaration, context)
    context.places[declaration.address] = merged.places
    before = len(context.problems.diagnostics)
    layers = context.layers_of(kind)
    checked = merged.checked
    managed = layers.managed(checked)
    misread = check(kind.name, checked, merged.check, parts=managed.outline)
    if misread:
        merged = merged.without(misread)
        managed = layers.managed(merged.checked)
    is_reported = len(context.problems.diagnostics) > before
    if is_reported and "name" not in merged.values and context.problems.failed:
        return None
    if isinstance(merged.values.get("state"), Unknown):
        context.undetermined.states.add(declaration.address)
    spec = managed_values(merged, managed, context)
    check_fields(kind, spec, merged.check, managed.carriers)
    return _resource(kind, declaration, merged, spec, managed.written, context)


def filled(kind: Kind, declaration: Declaration, context: EnvironmentContext) -> Filled:
    """Return a declaration in the environment. Report errors in its references."""
    layers = context.layers_of(kind)
    override, body = layers.override(declaration), declaration.body
    places = Places(layers.layers_of(declaration, override))
    own = layers.merged(body, override)
    if not own.keys().isdisjoint(_PER_ENVIRONMENT):
        own = dict(own)
        for key in _PER_ENVIRONMENT:
            own.pop(key, None)
    values = context.references.with_inputs(own, places.near)
    if context.references.has_inputs:
        values = converted(kind.name, values)
    return Filled(
        values=values,
        unfilled={name: body[name] for name in _PER_ENVIRONMENT if name in body},
        name=own.get("name"),
        places=places,
        check=CheckContext(
            subject=declaration.address,
            value_mark=places.near,
            key_mark=places.key,
            problems=context.problems,
            written=places.written,
        ),
    )


def _with_unknown(value: Any, path: Path) -> JSON:
    if not path:
        return Unknown()
    copied = value.copy()
    copied[path[0]] = _with_unknown(value[path[0]], path[1:])
    return copied


def managed_values(
    merged: Filled, managed: ManagedFields, context: EnvironmentContext
) -> dict[str, JSON]:
    """Return the managed fields under the kind's own names, literal secrets replaced."""
    for name, canonical in managed.repeated:
        message = f"{merged.check.subject} sets '{canonical}' twice, under two names"
        merged.check.error_at_key("same-field-twice", (name,), message)
    values = merged.values
    spec = {canonical: values[name] for canonical, name in managed.names}
    if managed.secret or managed.with_at:
        replace_literals(spec, managed, context.references, merged.places, merged.check)
    return spec


def _resource(
    kind: Kind,
    declaration: Declaration,
    merged: Filled,
    spec: Mapping[str, JSON],
    written: Mapping[str, str],
    context: EnvironmentContext,
) -> Resource:
    values = merged.values
    return Resource(
        address=declaration.address,
        spec=spec,
        parent=_parent(values.get(kind.parent_key)) if kind.parent_key else None,
        lifecycle=_lifecycle(values.get("lifecycle")),
        state=State.ABSENT if values.get("state") == "absent" else State.PRESENT,
        pinned_id=_text(values.get("id")),
        secret_version=_text(values.get("secret_version")),
        mark=declaration.mark,
        marks=merged.places,
        written=written,
        name_from_env=reads_environment(merged.name, context.references.variables),
        unset=tuple(
            (known.name, *path[1:])
            for path in merged.places.unset()
            if (known := kind.field_named(str(path[0]))) is not None
        ),
    )


def _lifecycle(value: JSON) -> Lifecycle:
    if not isinstance(value, dict):
        return DEFAULT_LIFECYCLE
    return Lifecycle(
        protect=value.get("protect") is True,
        allow_replace=value.get("allow_replace") is True,
        ignore_changes=_texts(value.get("ignore_changes")),
        renamed_from=_texts(value.get("renamed_from")),
        beside=_texts(value.get("beside")),
    )


def _mapping(value: JSON) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _as_text(value: JSON) -> str:
    # Text stays as it is, since an unknown value is a subclass of text.
    return value if isinstance(value, str) else str(value)


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(_as_text(item) for item in value) if isinstance(value, list) else ()


def _text(value: JSON) -> str | None:
    return None if value is None else _as_text(value)


def _parent(value: JSON) -> ParentRef | None:
    if isinstance(value, dict):
        return ParentRef(id=_text(value.get("id")), name=_text(value.get("name")))
    return ParentRef(key=value) if isinstance(value, str) else None
