"""Declared resources to `Desired`: merged, filled in and checked for one environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.config.annotations import annotated
from reconciler.config.checks import check_fields, check_together
from reconciler.config.declarations import Declaration
from reconciler.config.document import Layer, Places, Unknown, UnknownText
from reconciler.config.references import References
from reconciler.config.schema import Checked, check
from reconciler.config.wording import choice
from reconciler.config.workspace import Workspace
from reconciler.errors import Problems
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.values import JSON, Path, SecretRef, SecretValue, path_text, value_at

COMMON = ("id", "state", "environments", "overrides", "lifecycle", "secret_version")
_UNFILLED = ("overrides", "environments")


@dataclass(slots=True)
class Resolving:
    """What resolving the resources of one environment needs."""

    environment: str
    workspace: Workspace
    kinds: Sequence[Kind]
    references: References
    problems: Problems
    literals: dict[str, SecretValue] = field(default_factory=dict)
    allow_literals: bool = False
    complete: bool = True
    """Whether every file could be read: else what is not declared may stand in one that was not."""
    places: dict[Address, Places] = field(default_factory=dict)
    _told: set[object] = field(default_factory=set)

    def once(self, address: Address, since: int) -> None:
        """Keep what was told since then if no other resource told it of the same place.

        A mistake in defaults, or in what a merge key brings, is one mistake.
        """
        new = self.problems.found[since:]
        del self.problems.found[since:]
        for each in new:
            what = (each.code, each.at, each.message.replace(str(address), ""))
            if what not in self._told:
                self._told.add(what)
                self.problems.found.append(each)


def resolve(found: Mapping[Address, Declaration], given: Resolving) -> Desired:
    """The resources of one environment. The digest, base URL and organization are still empty."""
    resources: dict[Address, Resource] = {}
    checked: dict[object, Checked] = {}
    doubtful: set[Address] | None = set() if given.complete else None
    kinds = {kind.name: kind for kind in given.kinds}
    for address in sorted(found, key=lambda each: (each.kind, each.key)):
        declaration = found[address]
        if not _is_here(declaration, given):
            continue
        since = len(given.problems.found)
        look = _resolved(kinds[address.kind], declaration, given)
        if len(given.problems.found) > since:
            given.once(address, since)
        if look is not None:
            resources[address], checked[address] = look
        elif doubtful is not None:
            doubtful.add(address)
    desired = Desired(given.environment, "", "", resources)
    check_together(desired, kinds, checked, given.problems, doubtful=doubtful)
    return desired


def _is_here(declaration: Declaration, given: Resolving) -> bool:
    """Whether the resource exists in this environment; unknown names are told."""
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
    if listed is None and overrides is None:
        return True
    names = given.workspace.environments or (given.environment,)
    mentioned = [
        *(
            ((("environments", at), each) for at, each in enumerate(listed))
            if isinstance(listed, list)
            else ()
        ),
        *(
            ((("overrides", each), each) for each in overrides)
            if isinstance(overrides, dict)
            else ()
        ),
    ]
    for path, each in mentioned:
        told = isinstance(each, Unknown) or (path[0] == "overrides" and "${" in str(each))
        if each not in names and not told:
            where = (*declaration.path, *path)
            place = declaration.document
            at = place.key_mark(where) if path[0] == "overrides" else place.mark(where)
            given.problems.error(
                "unknown-environment",
                f"{declaration.address} names the environment '{each}', which there is not",
                at=at,
                hint=choice(each, names, "there are"),
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
    """A declaration in the environment; what is wrong with its references is told."""
    layers = layers_of(declaration, given, kind)
    places = Places(layers)
    merged: Any = layers[-1].value
    for layer in reversed(layers[:-1]):
        above = layer.value
        merged = laid_over(merged, above)
        if kind.parent_key is not None and kind.parent_key in above:
            # A parent is one thing: {name: …} below and {id: …} above are not one with both.
            merged[kind.parent_key] = above[kind.parent_key]
    own = {key: value for key, value in merged.items() if key not in _UNFILLED}
    body = declaration.body
    return Filled(
        values=given.references.resolved(own, places.near),
        unfilled={name: body[name] for name in _UNFILLED if name in body},
        places=places,
        look=Checked(str(declaration.address), places.near, places.key),
    )


def _resolved(
    kind: Kind, declaration: Declaration, given: Resolving
) -> tuple[Resource, Checked] | None:
    each = filled(kind, declaration, given)
    given.places[declaration.address] = each.places
    before = len(given.problems.found)
    check(kind.name, {**each.values, **each.unfilled}, each.look, given.problems)
    if "name" not in each.values and len(given.problems.found) > before and given.problems.failed:
        return None
    spec = managed_fields(kind, each, given)
    check_fields(kind, spec, each.look, given.problems)
    return _resource(kind, declaration, each, spec), each.look


def laid_over(below: Any, above: Any) -> Any:
    """Mappings are merged key by key, anything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = {**below, **above}
    for key, value in above.items():
        if key in below and isinstance(value, dict):
            merged[key] = laid_over(below[key], value)
    return merged


def managed_fields(kind: Kind, each: Filled, given: Resolving) -> dict[str, JSON]:
    """The managed fields under the kind's own names, literal secrets taken out."""
    spec: dict[str, JSON] = {}
    look = each.look
    for name, value in each.values.items():
        if name in COMMON or name == kind.parent_key:
            continue
        known = kind.field_named(name)
        canonical = known.name if known is not None else name
        if canonical in spec:
            given.problems.error(
                "same-field-twice",
                f"{look.subject}: '{name}' is another name of a field that is set already",
                at=look.key_mark((name,)),
                hint="write one of the two",
            )
            continue
        spec[canonical] = value
    for path, _ in list(annotated(kind.name, "x-secret", spec)):
        _take_out_literal(spec, path, look, given)
    return spec


def _take_out_literal(spec: dict[str, JSON], path: Path, look: Checked, given: Resolving) -> None:
    value = value_at(spec, path)
    misread = isinstance(value, Unknown) and not isinstance(value, UnknownText)
    if isinstance(value, SecretRef) or value is None or misread:
        return
    if not given.allow_literals or not str(value).strip():
        given.problems.error(
            "literal-secret",
            f"{path_text(path)} of {look.subject} is a secret and stands in the file",
            at=look.value_mark(path),
            hint="write a reference such as ${secret:env:NAME}, and change the secret if the file "
            "was ever shared",
        )
        return
    argument = f"{look.subject}:{path_text(path)}"
    given.literals[argument] = SecretValue(str(value))
    holder: Any = spec
    for part in path[:-1]:
        holder[part] = dict(holder[part])
        holder = holder[part]
    holder[path[-1]] = SecretRef.of("literal", argument)


def _resource(
    kind: Kind,
    declaration: Declaration,
    each: Filled,
    spec: Mapping[str, JSON],
) -> Resource:
    values = each.values
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
        pinned_id=str(pinned) if pinned is not None else None,
        secret_version=str(version) if version is not None else None,
        mark=declaration.mark,
        marks=each.places,
    )


def _texts(value: JSON) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _parent(value: JSON) -> ParentRef | None:
    if isinstance(value, dict):
        identity, name = value.get("id"), value.get("name")
        return ParentRef(
            id=str(identity) if identity is not None else None,
            name=str(name) if name is not None else None,
        )
    if isinstance(value, str):
        # As it is, since a value that is not known is a sort of text.
        return ParentRef(key=value)
    return None
