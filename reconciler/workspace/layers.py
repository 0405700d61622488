"""Declared resources to `Desired`: merged, filled in and checked for one environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.errors import DiagnosticCollector
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.reference import holds_reference
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.schema_files import common_properties
from reconciler.model.suggestion import choice
from reconciler.model.values import JSON, MISSING, Path, SecretRef, SecretValue, path_text, value_at
from reconciler.workspace.checks.values import check_fields
from reconciler.workspace.declarations import Declaration, Doubts
from reconciler.workspace.references import References
from reconciler.workspace.schema.annotations import annotated
from reconciler.workspace.schema.validation import Checked, check
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Layer, Places, Unknown, is_misread

COMMON = frozenset(common_properties())
_UNFILLED = ("overrides", "environments")


@dataclass(slots=True)
class Resolving:
    """What resolving the resources of one environment needs."""

    environment: str
    workspace: Workspace
    kinds: Sequence[Kind]
    references: References
    problems: DiagnosticCollector
    doubts: Doubts = field(default_factory=Doubts)
    literals: dict[str, SecretValue] = field(default_factory=dict)
    allow_literals: bool = False
    places: dict[Address, Places] = field(default_factory=dict)
    _reported: set[object] = field(default_factory=set)

    def once(self, address: Address, since: int) -> None:
        """Keep what was reported since then, unless another resource reported it of the same place.

        A mistake in defaults, or in a merged mapping, is one mistake.
        """
        new = self.problems.diagnostics[since:]
        del self.problems.diagnostics[since:]
        for diagnostic in new:
            what = (diagnostic.code, diagnostic.at, diagnostic.message.replace(str(address), ""))
            if what not in self._reported:
                self._reported.add(what)
                self.problems.diagnostics.append(diagnostic)


def resolve(declared: Mapping[Address, Declaration], given: Resolving) -> Desired:
    """The resources of one environment. The digest, base URL and organization are still empty."""
    resources: dict[Address, Resource] = {}
    kinds = {kind.name: kind for kind in given.kinds}
    for address in sorted(declared, key=lambda address: (address.kind, address.key)):
        declaration = declared[address]
        if not _is_here(declaration, given):
            continue
        since = len(given.problems.diagnostics)
        resource = _resolved(kinds[address.kind], declaration, given)
        if len(given.problems.diagnostics) > since:
            given.once(address, since)
        if resource is not None:
            resources[address] = resource
        else:
            given.doubts.addresses.add(address)
    return Desired(given.environment, "", "", resources)


def _is_here(declaration: Declaration, given: Resolving) -> bool:
    """Return whether the resource exists in this environment; unknown names are reported."""
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
    if listed is None and overrides is None:
        return True
    names = given.workspace.environments or (given.environment,)
    mentioned = [
        *(
            ((("environments", at), name) for at, name in enumerate(listed))
            if isinstance(listed, list)
            else ()
        ),
        *(
            ((("overrides", override), override) for override in overrides)
            if isinstance(overrides, dict)
            else ()
        ),
    ]
    for path, name in mentioned:
        reported = isinstance(name, Unknown) or (path[0] == "overrides" and "${" in str(name))
        if name not in names and path[0] == "environments":
            given.doubts.addresses.add(declaration.address)
        if name not in names and not reported:
            where = (*declaration.path, *path)
            place = declaration.document
            at = place.key_mark(where) if path[0] == "overrides" else place.mark(where)
            given.problems.error(
                "unknown-environment",
                f"unknown environment '{name}' in {declaration.address}",
                at=at,
                hint=choice(name, names, "there are"),
            )
    return not isinstance(listed, list) or given.environment in listed


def layers_of(declaration: Declaration, given: Resolving, kind: Kind) -> tuple[Layer, ...]:
    """Where the fields of a resource come from, topmost first."""
    document, path = declaration.document, declaration.path
    layers = [Layer(document, path, "resource")]
    if isinstance(value_at(declaration.body, ("overrides", given.environment)), dict):
        override = (*path, "overrides", given.environment)
        layers.insert(0, Layer(document, override, f"override {given.environment}"))
    if given.workspace.section("defaults", kind.name):
        layers.append(Layer(given.workspace.document, ("defaults", kind.name), "defaults"))
    return tuple(layers)


@dataclass(frozen=True, slots=True)
class Filled:
    """A resource with its layers merged and its references filled in.

    `unfilled` are fields about environments: they are checked as they are written.
    """

    values: Mapping[str, JSON]
    unfilled: Mapping[str, JSON]
    places: Places
    look: Checked


def filled(kind: Kind, declaration: Declaration, given: Resolving) -> Filled:
    """Return a declaration in the environment; errors in its references are reported."""
    layers = layers_of(declaration, given, kind)
    places = Places(layers)
    merged: Any = layers[-1].value
    for layer in reversed(layers[:-1]):
        below, above = merged, layer.value
        merged = laid_over(below, above)
        for name in _replaced(kind, below, above):
            merged[name] = above[name]
    own = {key: value for key, value in merged.items() if key not in _UNFILLED}
    body = declaration.body
    return Filled(
        values=given.references.resolved(own, places.near),
        unfilled={name: body[name] for name in _UNFILLED if name in body},
        places=places,
        look=Checked(str(declaration.address), places.near, places.key),
    )


def _replaced(kind: Kind, below: Any, above: Any) -> Iterator[str]:
    """Yield the fields that replace the layer below instead of being merged with it.

    A parent, since {name: …} and {id: …} are not one with both; and what has another tag, since the
    fields of one type mean nothing to another.
    """
    if kind.parent_key is not None and kind.parent_key in above:
        yield kind.parent_key
    for name, value in above.items():
        # Few fields are in two layers: look closer only at those.
        if isinstance(value, dict) and isinstance(below.get(name), dict):
            known = kind.field_named(name)
            if known is not None and known.variant is not None:
                tags = [side.get(known.variant.tag, MISSING) for side in (below[name], value)]
                if MISSING not in tags and tags[0] != tags[1]:
                    yield name


def _resolved(kind: Kind, declaration: Declaration, given: Resolving) -> Resource | None:
    merged = filled(kind, declaration, given)
    given.places[declaration.address] = merged.places
    before = len(given.problems.diagnostics)
    check(kind.name, {**merged.values, **merged.unfilled}, merged.look, given.problems)
    if (
        "name" not in merged.values
        and len(given.problems.diagnostics) > before
        and given.problems.failed
    ):
        return None
    if isinstance(merged.values.get("state"), Unknown):
        given.doubts.states.add(declaration.address)
    spec = managed_fields(kind, merged, given)
    check_fields(kind, spec, merged.look, given.problems)
    return _resource(kind, declaration, merged, spec)


def laid_over(below: Any, above: Any) -> Any:
    """Mappings are merged key by key, anything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = {**below, **above}
    for key, value in above.items():
        if key in below and isinstance(value, dict):
            merged[key] = laid_over(below[key], value)
    return merged


def managed_fields(kind: Kind, merged: Filled, given: Resolving) -> dict[str, JSON]:
    """The managed fields under the kind's own names, literal secrets taken out."""
    spec: dict[str, JSON] = {}
    look = merged.look
    for name, value in merged.values.items():
        if name in COMMON or name == kind.parent_key:
            continue
        known = kind.field_named(name)
        canonical = known.name if known is not None else name
        if canonical in spec:
            given.problems.error(
                "same-field-twice",
                f"{look.subject}: '{name}' is another name of a field that is set already",
                at=look.key_mark((name,)),
            )
            continue
        spec[canonical] = value
    for path, _ in list(annotated(kind.name, "x-secret", spec)):
        _take_out_literal(spec, path, merged, given)
    return spec


def _take_out_literal(spec: dict[str, JSON], path: Path, merged: Filled, given: Resolving) -> None:
    value = value_at(spec, path)
    if isinstance(value, SecretRef) or value is None or is_misread(value):
        return
    if not given.allow_literals or not str(value).strip():
        _report_literal(path, merged, given.problems)
        return
    argument = f"{merged.look.subject}:{path_text(path)}"
    given.literals[argument] = SecretValue(str(value))
    holder: Any = spec
    for part in path[:-1]:
        holder[part] = dict(holder[part])
        holder = holder[part]
    holder[path[-1]] = SecretRef.of("literal", argument)


def _report_literal(path: Path, merged: Filled, problems: DiagnosticCollector) -> None:
    source = merged.places.source_of(path)
    written = value_at(source[0].value, source[1]) if source is not None else None
    named = f"{path_text(path)} of {merged.look.subject} is a secret"
    if isinstance(written, str) and holds_reference(written):
        message = f"{named}, and this reference would be filled in as plain text"
        hint = "write ${secret:env:NAME}, or ${secret:file:PATH}"
    else:
        message = f"{named} and is written in the file"
        hint = (
            "write a reference such as ${secret:env:NAME}, and change the secret if the file was "
            "ever shared"
        )
    problems.error("literal-secret", message, at=merged.look.value_mark(path), hint=hint)


def _resource(
    kind: Kind,
    declaration: Declaration,
    merged: Filled,
    spec: Mapping[str, JSON],
) -> Resource:
    values = merged.values
    lifecycle = values.get("lifecycle")
    lifecycle = lifecycle if isinstance(lifecycle, dict) else {}
    pinned, version = values.get("id"), values.get("secret_version")
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
        pinned_id=_text(pinned),
        secret_version=_text(version),
        mark=declaration.mark,
        marks=merged.places,
    )


def _texts(value: JSON) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    # As it is, where it is text: what is not known is a sort of it.
    return tuple(item if isinstance(item, str) else str(item) for item in value)


def _text(value: JSON) -> str | None:
    """Text as it is, since a value that is not known is a sort of text."""
    return value if value is None or isinstance(value, str) else str(value)


def _parent(value: JSON) -> ParentRef | None:
    if isinstance(value, dict):
        return ParentRef(id=_text(value.get("id")), name=_text(value.get("name")))
    return ParentRef(key=value) if isinstance(value, str) else None
