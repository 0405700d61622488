"""Resource files to `Desired`: collected, merged, filled in and checked for one environment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from reconciler.config.checks import check_fields, check_together
from reconciler.config.document import Document, Layer, Places, Unknown, UnknownText
from reconciler.config.loader import parse
from reconciler.config.references import References
from reconciler.config.schema import Checked, annotated, check
from reconciler.config.sources import WORKSPACE_FILE, Source, leaves_workspace, matching
from reconciler.config.workspace import Workspace
from reconciler.errors import Mark, Problems
from reconciler.model.address import Address
from reconciler.model.kind import Kind
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.values import JSON, Path, SecretRef, SecretValue, path_text, value_at

COMMON = ("id", "state", "environments", "overrides", "lifecycle", "secret_version")
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_EVERYTHING = ("**/*.yaml", "**/*.yml")


@dataclass(frozen=True, slots=True)
class Declaration:
    """Where a resource stands."""

    address: Address
    document: Document
    path: Path

    @property
    def body(self) -> Mapping[str, Any]:
        """What stands there."""
        found: Mapping[str, Any] = value_at(self.document.value, self.path)
        return found

    @property
    def mark(self) -> Mark:
        """The place of its key."""
        return self.document.key_mark(self.path)


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
    places: dict[Address, Places] = field(default_factory=dict)


def documents(source: Source, workspace: Workspace, problems: Problems) -> list[Document]:
    """Every resource file, parsed, by name."""
    return [parse(raw, name, problems) for name, raw in contents(source, workspace, problems)]


def contents(
    source: Source, workspace: Workspace, problems: Problems
) -> Iterator[tuple[str, bytes]]:
    """The name and bytes of every resource file, by name."""
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    globs = workspace.value.get("resources")
    wanted: set[str] = set()
    if not isinstance(globs, list):
        wanted = {name for glob in resource_globs(workspace) for name in matching(names, glob)}
    else:
        for position, glob in enumerate(globs):
            wanted |= _matched(names, str(glob), workspace.mark(("resources", position)), problems)
    for name in sorted(wanted):
        raw = source.read(name)
        if raw is None:
            problems.error(
                "unreadable-file",
                f"{name} can't be read: it is a broken link, leads outside, or is protected",
                at=Mark(name),
            )
            continue
        yield name, raw


def resource_globs(workspace: Workspace) -> tuple[str, ...]:
    """Which files hold resources: what the workspace says, else every YAML file."""
    globs = workspace.value.get("resources")
    return tuple(map(str, globs)) if isinstance(globs, list) else _EVERYTHING


def _matched(names: Sequence[str], glob: str, at: Mark, problems: Problems) -> set[str]:
    if leaves_workspace(glob):
        problems.error(
            "outside-workspace",
            f"'{glob}' leads out of the workspace",
            at=at,
            hint="resource files stand below reconciler.yaml",
        )
        return set()
    found = set(matching(names, glob))
    if not found:
        problems.warning("no-files", f"no file fits '{glob}'", at=at)
    return found


def declarations(
    files: Sequence[Document], kinds: Sequence[Kind], problems: Problems
) -> dict[Address, Declaration]:
    """Every resource by address. One that is declared twice is told with both places."""
    collections = {kind.collection: kind for kind in kinds}
    found: dict[Address, Declaration] = {}
    for document in files:
        if not isinstance(document.value, dict):
            _tell_odd_file(document, problems)
            continue
        for collection, members in document.value.items():
            kind = collections.get(collection)
            if kind is None:
                close = get_close_matches(collection, list(collections), n=1)
                known = ", ".join(collections)
                problems.error(
                    "unknown-field",
                    f"unknown field '{collection}' in a resource file",
                    at=document.key_mark((collection,)),
                    hint=f"did you mean '{close[0]}'?" if close else f"allowed: {known}",
                )
            elif not isinstance(members, dict):
                if members is not None and not isinstance(members, Unknown):
                    problems.error(
                        "not-a-mapping",
                        f"{collection} is a mapping from a key to a resource",
                        at=document.mark((collection,)),
                        hint="write each as `key:` with its fields below",
                    )
            else:
                _collect(kind, document, collection, members, found, problems)
    return found


def _tell_odd_file(document: Document, problems: Problems) -> None:
    if document.unread or isinstance(document.value, Unknown):
        return
    if document.value is None:
        if document.node is None and not any(document.lines):
            problems.warning("empty-file", "this file is empty", at=Mark(document.file))
        return
    problems.error(
        "not-a-mapping",
        "a resource file holds a mapping",
        at=document.mark(()),
        hint="begin it with a line such as `batch_exports:`",
    )


def _collect(
    kind: Kind,
    document: Document,
    collection: str,
    members: Mapping[str, Any],
    found: dict[Address, Declaration],
    problems: Problems,
) -> None:
    for key, body in members.items():
        each = Declaration(Address(kind.name, key), document, (collection, key))
        if not _KEY.fullmatch(key):
            problems.error(
                "bad-key",
                f"'{key}' can't be the key of a resource",
                at=each.mark,
                hint="use letters, digits, _ - and . only; the `name:` may be anything",
            )
        elif isinstance(body, Unknown):
            continue
        elif not isinstance(body, dict):
            problems.error(
                "not-a-mapping",
                f"{each.address} has no fields",
                at=each.mark,
                hint="write its fields below the key, indented",
            )
        elif each.address in found:
            problems.error(
                "declared-twice",
                f"{each.address} is declared twice",
                at=each.mark,
                hint="give one of them another key",
                related=((found[each.address].mark, "it is declared here first"),),
            )
        else:
            found[each.address] = each


def resolve(found: Mapping[Address, Declaration], given: Resolving) -> Desired:
    """The resources of one environment. The digest, base URL and organization are still empty."""
    resources: dict[Address, Resource] = {}
    checked: dict[object, Checked] = {}
    kinds = {kind.name: kind for kind in given.kinds}
    for address in sorted(found):
        declaration = found[address]
        if not _is_here(declaration, given):
            continue
        look = _resolved(kinds[address.kind], declaration, given)
        if look is not None:
            resources[address], checked[address] = look
    desired = Desired(given.environment, "", "", resources)
    check_together(desired, kinds, checked, given.problems)
    return desired


def _is_here(declaration: Declaration, given: Resolving) -> bool:
    """Whether the resource exists in this environment; unknown names are told."""
    names = given.workspace.environments or (given.environment,)
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
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
        if each not in names and not isinstance(each, Unknown):
            where = (*declaration.path, *path)
            place = declaration.document
            at = place.key_mark(where) if path[0] == "overrides" else place.mark(where)
            close = get_close_matches(str(each), names, n=1)
            given.problems.error(
                "unknown-environment",
                f"{declaration.address} names the environment '{each}', which there is not",
                at=at,
                hint=f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(names)}",
            )
    return not isinstance(listed, list) or given.environment in listed


def layers_of(declaration: Declaration, given: Resolving, kind: Kind) -> tuple[Layer, ...]:
    """Where the fields of a resource come from, topmost first."""
    document, path = declaration.document, declaration.path
    override = (*path, "overrides", given.environment)
    layers = [Layer(document, path, "resource")]
    if isinstance(value_at(document.value, override), dict):
        layers.insert(0, Layer(document, override, f"override {given.environment}"))
    if given.workspace.section("defaults", kind.name):
        layers.append(Layer(given.workspace.document, ("defaults", kind.name), "defaults"))
    return tuple(layers)


def _resolved(
    kind: Kind, declaration: Declaration, given: Resolving
) -> tuple[Resource, Checked] | None:
    layers = layers_of(declaration, given, kind)
    places = Places(layers)
    given.places[declaration.address] = places
    merged: Any = {}
    for layer in reversed(layers):
        above = value_at(layer.document.value, layer.path)
        merged = _merge(merged, above)
        if kind.parent_key is not None and kind.parent_key in above:
            # A parent is one thing: {name: …} below and {id: …} above are not one with both.
            merged[kind.parent_key] = above[kind.parent_key]
    values = given.references.resolved(
        {key: value for key, value in merged.items() if key not in ("overrides", "environments")},
        places.near,
    )
    look = Checked(str(declaration.address), places.near, places.key)
    own = {
        name: declaration.body[name]
        for name in ("overrides", "environments")
        if name in declaration.body
    }
    before = len(given.problems.found)
    check(kind.name, {**values, **own}, look, given.problems)
    if len(given.problems.found) > before and given.problems.failed and "name" not in values:
        return None
    spec = _spec(kind, values, look, given)
    check_fields(kind, spec, look, given.problems)
    return _resource(kind, declaration, values, spec, places), look


def _merge(below: Any, above: Any) -> Any:
    """Mappings are merged key by key, anything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _merge(below.get(key), value) for key, value in above.items()}}


def _spec(
    kind: Kind, values: Mapping[str, JSON], look: Checked, given: Resolving
) -> dict[str, JSON]:
    """The managed fields under the kind's own names, literal secrets taken out."""
    spec: dict[str, JSON] = {}
    for name, value in values.items():
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
    values: Mapping[str, JSON],
    spec: Mapping[str, JSON],
    places: Places,
) -> Resource:
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
        marks=places,
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
    return ParentRef(key=str(value)) if value is not None else None
