"""Declared resources to `Desired`: merged, filled in and checked for one environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.errors import DiagnosticCollector
from reconciler.model.address import Address
from reconciler.model.json_tree import leaves
from reconciler.model.kind import Kind
from reconciler.model.reference import UNSET, holds_reference
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.schema_files import common_properties
from reconciler.model.secret_names import holds_secret
from reconciler.model.suggestion import choice
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text, value_at
from reconciler.workspace.checks.values import check_fields
from reconciler.workspace.declarations import Declaration, Undetermined
from reconciler.workspace.environment_names import reads_environment
from reconciler.workspace.hints import NOT_FILLED
from reconciler.workspace.inputs import converted
from reconciler.workspace.references import References
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.snapshots import Snapshots
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Layer, Places, Unknown, is_misread

COMMON = frozenset(common_properties())
_PER_ENVIRONMENT = ("overrides", "environments")


@dataclass(slots=True)
class EnvironmentContext:
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
    for address in sorted(declared, key=lambda address: (address.kind, address.key)):
        declaration = declared[address]
        if not _is_in_environment(declaration, context):
            continue
        since = len(context.problems.diagnostics)
        resource = _known_or_resolved(declaration, context)
        if len(context.problems.diagnostics) > since:
            context.drop_repeated(address, since)
        if resource is not None:
            resources[address] = resource
        else:
            context.undetermined.addresses.add(address)
    return Desired(context.environment, "", "", resources)


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


def _is_in_environment(declaration: Declaration, context: EnvironmentContext) -> bool:
    """Return whether the environment has the resource. Report unknown environments."""
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
    if listed is None and overrides is None:
        return True
    names = context.workspace.environments or (context.environment,)
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


@dataclass(frozen=True, slots=True)
class Filled:
    """A resource with its layers merged and its references filled in.

    `unfilled` are the fields about environments, which are checked as they are written.
    """

    values: Mapping[str, JSON]
    unfilled: Mapping[str, JSON]
    places: Places
    check: CheckContext

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
    misread = check(kind.name, {**merged.values, **merged.unfilled}, merged.check)
    merged = merged.without(misread)
    is_reported = len(context.problems.diagnostics) > before and context.problems.failed
    if "name" not in merged.values and is_reported:
        return None
    if isinstance(merged.values.get("state"), Unknown):
        context.undetermined.states.add(declaration.address)
    spec = managed_fields(kind, merged, context)
    check_fields(kind, spec, merged.check)
    resource = _resource(kind, declaration, merged, spec)
    name_from_env = reads_environment(
        merged.places.written(("name",)), context.references.variables
    )
    return replace(resource, name_from_env=True) if name_from_env else resource


def filled(kind: Kind, declaration: Declaration, context: EnvironmentContext) -> Filled:
    """Return a declaration in the environment. Report errors in its references."""
    layers = _layers_of(kind, declaration, context)
    places = Places(layers)
    merged: Any = layers[-1].value
    for layer in reversed(layers[:-1]):
        below, above = merged, layer.value
        merged = laid_over(below, above)
        for name in _replaced(kind, below, above):
            merged[name] = above[name]
    own = {key: value for key, value in merged.items() if key not in _PER_ENVIRONMENT}
    body = declaration.body
    values = context.references.with_inputs(own, places.near)
    if context.references.has_inputs:
        values = converted(kind.name, values)
    return Filled(
        values=values,
        unfilled={name: body[name] for name in _PER_ENVIRONMENT if name in body},
        places=places,
        check=CheckContext(
            subject=str(declaration.address),
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


def _layers_of(
    kind: Kind, declaration: Declaration, context: EnvironmentContext
) -> tuple[Layer, ...]:
    """Return the layers of a resource, topmost first."""
    document, path = declaration.document, declaration.path
    layers = [Layer(document, path, "resource")]
    if isinstance(value_at(declaration.body, ("overrides", context.environment)), dict):
        override = (*path, "overrides", context.environment)
        layers.insert(0, Layer(document, override, f"override {context.environment}"))
    if context.workspace.section("defaults", kind.name):
        layers.append(Layer(context.workspace.document, ("defaults", kind.name), "defaults"))
    return tuple(layers)


def _replaced(kind: Kind, below: Any, above: Any) -> Iterator[str]:
    """Yield the fields that replace the layer below instead of being merged with it.

    These are a parent, since {name: …} and {id: …} exclude each other, and a variant with another
    tag, since the fields of one type have no meaning in another.
    """
    if kind.parent_key is not None and isinstance(above.get(kind.parent_key), dict):
        yield kind.parent_key
    for name, value in above.items():
        # Few fields are in two layers: only those are worth a closer look.
        if isinstance(value, dict) and isinstance(below.get(name), dict):
            field = kind.field_named(name)
            if field is not None and field.variant is not None:
                tags = [side.get(field.variant.tag, MISSING) for side in (below[name], value)]
                if MISSING not in tags and tags[0] != tags[1]:
                    yield name


def laid_over(below: Any, above: Any) -> Any:
    """Return two layers merged: mappings key by key, anything else is replaced.

    `${unset}` removes the value below.
    """
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = {**below, **above}
    for key, value in above.items():
        if key not in below:
            continue
        if isinstance(value, dict):
            merged[key] = laid_over(below[key], value)
        elif value == UNSET:
            del merged[key]
    return merged


def managed_fields(kind: Kind, merged: Filled, context: EnvironmentContext) -> dict[str, JSON]:
    """Return the managed fields under the kind's own names, literal secrets replaced."""
    spec: dict[str, JSON] = {}
    for name, value in merged.values.items():
        if name in COMMON or name == kind.parent_key:
            continue
        field = kind.field_named(name)
        canonical = field.name if field is not None else name
        if canonical in spec:
            message = f"{merged.check.subject} sets '{canonical}' twice, under two names"
            merged.check.error_at_key("same-field-twice", (name,), message)
            continue
        spec[canonical] = value
    secret = [path for path, _ in annotated(kind.name, "x-secret", spec)]
    for path in [*secret, *_urls_with_passwords(kind, spec)]:
        _replace_literal(spec, path, merged, context)
    return spec


def _urls_with_passwords(kind: Kind, spec: Mapping[str, JSON]) -> Iterator[Path]:
    for holder, _ in kind.variants:
        for path, text in leaves(spec.get(holder.name), (holder.name,)):
            if text.__class__ is str and "@" in text and holds_secret(text):
                yield path


def _replace_literal(
    spec: dict[str, JSON], path: Path, merged: Filled, context: EnvironmentContext
) -> None:
    """Replace a literal secret by a reference to it, or report it."""
    value = value_at(spec, path)
    if value is None or is_misread(value):
        return
    argument = f"{merged.check.subject}:{path_text(path)}"
    if isinstance(value, SecretRef):
        literal = context.references.without_literals(argument, value)
    else:
        literal = context.references.literal(argument, value) if str(value).strip() else None
    if literal is None:
        _report_literal(path, merged)
        return
    holder: Any = spec
    for part in path[:-1]:
        holder[part] = dict(holder[part])
        holder = holder[part]
    holder[path[-1]] = literal


def _report_literal(path: Path, merged: Filled) -> None:
    layer, nearest = merged.places.source_of(path)
    written = value_at(layer.value, nearest)
    named = merged.check.named(path)
    if isinstance(written, str) and "${secret:" in written:
        message = f"{named} is a secret and must not be written in a file, not even in part"
        hint = "use one reference for the whole value, such as ${secret:env:NAME}"
    elif isinstance(written, str) and holds_reference(written):
        message = f"{named} is a secret, but this reference is filled in as plain text"
        hint = "use ${secret:env:NAME} or ${secret:file:PATH}"
    else:
        message = f"{named} is a secret and must not be written in a file"
        hint = (
            "use a reference such as ${secret:env:NAME}, and rotate the secret if the file was "
            "ever shared"
        )
    merged.check.error("literal-secret", path, message, hint)


def _resource(
    kind: Kind, declaration: Declaration, merged: Filled, spec: Mapping[str, JSON]
) -> Resource:
    values = merged.values
    lifecycle = _mapping(values.get("lifecycle"))
    return Resource(
        address=declaration.address,
        spec=spec,
        parent=_parent(values.get(kind.parent_key)) if kind.parent_key else None,
        lifecycle=Lifecycle(
            protect=lifecycle.get("protect") is True,
            allow_replace=lifecycle.get("allow_replace") is True,
            ignore_changes=_texts(lifecycle.get("ignore_changes")),
            renamed_from=_texts(lifecycle.get("renamed_from")),
        ),
        state=State.ABSENT if values.get("state") == "absent" else State.PRESENT,
        pinned_id=_text(values.get("id")),
        secret_version=_text(values.get("secret_version")),
        mark=declaration.mark,
        marks=merged.places,
        written={
            known.name: alias for known in kind.fields for alias in known.aliases if alias in values
        },
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
