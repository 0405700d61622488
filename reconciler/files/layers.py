"""Resolve declared resources for one environment: merge their layers, fill in, check.

`OriginContext` finds the layer, the line and the references of each field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector
from reconciler.files.field_checks import ANNOTATIONS, check_fields
from reconciler.files.references import References
from reconciler.files.resource_files import Declaration
from reconciler.files.validation import NOT_FILLED, SECRET, Carriers, CheckContext, annotated, check
from reconciler.files.workspace_file import DEFAULTS, Workspace, policy_of
from reconciler.files.yaml_document import RESOURCE, Document, Layer, Places, Unknown, is_misread
from reconciler.kinds import kinds_by_name
from reconciler.model.kind import Kind
from reconciler.model.resource import (
    DEFAULT_LIFECYCLE,
    Desired,
    Lifecycle,
    ParentRef,
    PublicField,
    PublicOrigin,
    PublicOverridden,
    PublicReference,
    Resource,
    State,
)
from reconciler.model.schemas import common_properties, credential_spans, looks_like_address
from reconciler.model.text import choice
from reconciler.model.values import (
    CLEARED,
    JSON,
    MASK,
    MISSING,
    UNSET,
    Address,
    FieldOrigin,
    JSONObject,
    Path,
    SecretRef,
    holds_reference,
    is_only_references,
    leaves,
    map_leaves,
    mapped_leaves,
    mapping_of,
    path_text,
    references_in,
    value_at,
)
from reconciler.paths import WORKSPACE_FILE
from reconciler.providers import providers
from reconciler.providers.provider import flaw_of
from reconciler.providers.var import PROVIDER as VARIABLES

_PER_ENVIRONMENT = ("overrides", "environments")
COMMON = frozenset(common_properties())
"""The fields of all kinds, which are not sent."""
_ANNOTATIONS = ANNOTATIONS | {SECRET}
_NO_TEXT: frozenset[type] = frozenset({int, bool, float, type(None), SecretRef})
_HOST = r"https?://([\w.-]+(?::\d+)?)(?:/|$)"
LITERAL_SECRET = "(literal secret)"  # noqa: S105 - a placeholder
"""Replaces a secret that is written in the files."""

_MAPPING = "(a mapping)"
_SECRET = frozenset({"x-secret"})


class EnvironmentContext(Struct):
    """What resolving the resources of one environment needs, and what it collects.

    `documents` are all files, that of the workspace included. `incomplete`: because of an error in
    the files, not all resources are known. `unresolved` are those with an error of their own.
    """

    environment: str
    workspace: Workspace
    references: References
    problems: DiagnosticCollector
    documents: Collection[Document] = ()
    incomplete: bool = False
    unresolved: set[Address] = field(default_factory=set)
    places: dict[Address, Places] = field(default_factory=dict)
    _reported: set[object] = field(default_factory=set)
    _kind_layers: dict[str, KindLayers] = field(default_factory=dict)

    def layers_of(self, kind: Kind) -> KindLayers:
        """Return what the resources of a kind share."""
        if kind.name not in self._kind_layers:
            document, filled = self.workspace.document, self.references.quiet
            layers = KindLayers(kind, self.environment, document, filled)
            self._kind_layers[kind.name] = layers
        return self._kind_layers[kind.name]

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
    names = context.workspace.environments or (context.environment,)
    for address in sorted(declared, key=attrgetter("kind", "key")):
        declaration = declared[address]
        if not _is_in_environment(declaration, names, context):
            continue
        since = len(context.problems.diagnostics)
        resource = _resolved(kinds_by_name()[address.kind], declaration, context)
        if len(context.problems.diagnostics) > since:
            context.drop_repeated(address, since)
        if resource is not None:
            resources[address] = resource
        else:
            context.unresolved.add(address)
    policy = policy_of(context.workspace, context.environment)
    return Desired(context.environment, "", "", resources, policy, context.references.declared)


def _is_in_environment(
    declaration: Declaration, names: Sequence[str], context: EnvironmentContext
) -> bool:
    """Return whether the environment has the resource. Report unknown environments."""
    listed = declaration.body.get("environments")
    overrides = declaration.body.get("overrides")
    if listed is None and overrides is None:
        return True
    chosen = listed if isinstance(listed, list) else []
    mentioned: list[tuple[Path, Any]] = [(("environments", at), it) for at, it in enumerate(chosen)]
    # An unknown one in both is one mistake.
    mentioned += [(("overrides", it), it) for it in mapping_of(overrides) if it not in chosen]
    for path, name in mentioned:
        if name in names:
            continue
        is_key = path[0] == "overrides"
        if not is_key:
            context.unresolved.add(declaration.address)
        if isinstance(name, Unknown) or (is_key and "${" in name):
            continue  # It is reported already.
        mark = declaration.document.key_mark if is_key else declaration.document.mark
        message = f"unknown environment '{name}' in {declaration.address}"
        hint = NOT_FILLED if holds_reference(str(name)) else choice(name, names, "environments")
        at = mark((*declaration.path, *path))
        context.problems.error("unknown-environment", message, at=at, hint=hint)
    return not isinstance(listed, list) or context.environment in listed


def _with_unknown(value: Any, path: Path) -> Any:
    """Return a value with an unknown part, whose error is reported."""
    if not path:
        return Unknown()
    if value_at(value, path) is MISSING:
        return value
    copied = value.copy()
    copied[path[0]] = _with_unknown(value[path[0]], path[1:])
    return copied


def _resolved(kind: Kind, declaration: Declaration, context: EnvironmentContext) -> Resource | None:
    """Return the resource: merge, fill in, check. None if an error hides its name or state."""
    address, references = declaration.address, context.references
    layered = context.layers_of(kind).merged(declaration)
    context.places[address] = places = Places(layered.layers)
    subject = CheckContext(
        address, places.near, places.key, context.problems, places.written, words=_ANNOTATIONS
    )
    own = {name: value for name, value in layered.values.items() if name not in _PER_ENVIRONMENT}
    values: Mapping[str, Any] = references.typed(kind.name, own, places.near)
    before = len(context.problems.diagnostics)
    # The fields about environments are checked as they are written.
    per_environment = {
        name: declaration.body[name] for name in _PER_ENVIRONMENT if name in declaration.body
    }
    misread = check(kind.name, {**values, **per_environment}, subject)
    for path in misread:
        values = _with_unknown(values, path)
    is_reported = len(context.problems.diagnostics) > before
    is_nameless = is_reported and "name" not in values and context.problems.failed
    if is_nameless or isinstance(values.get("state"), Unknown):
        return None
    spec, written = managed_fields(values, kind, subject)
    carriers: Carriers = subject.carriers
    if misread or written:
        carriers = annotated(kind.name, _ANNOTATIONS, spec)
    documents = (layer.document for layer in places.layers)
    may_hold = references.expansion.may_hold or any(it.may_hold_credential for it in documents)
    addresses = _with_credential(spec, kind) if may_hold else ()
    secrets = dict.fromkeys(path for path, _ in carriers.get(SECRET, ())) | dict.fromkeys(addresses)
    replace_literals(
        spec, {path: path in addresses for path in secrets}, references, places, subject
    )
    check_fields(kind, spec, subject, carriers)
    return Resource(
        address=address,
        spec=spec,
        parent=_parent(values.get(kind.parent_key)) if kind.parent_key else None,
        lifecycle=_lifecycle(values.get("lifecycle"), kind),
        state=State.ABSENT if values.get("state") == "absent" else State.PRESENT,
        pinned_id=_text(values.get("id")),
        secret_version=_text(values.get("secret_version")),
        mark=declaration.mark,
        marks=places,
        written=written,
        unset=tuple(
            (known.name, *path[1:])
            for path in places.unset()
            if (known := kind.field_named(str(path[0]))) is not None
        ),
    )


def _lifecycle(value: JSON, kind: Kind) -> Lifecycle:
    if not isinstance(value, dict):
        return DEFAULT_LIFECYCLE
    return Lifecycle(
        protect=value.get("protect") is True,
        allow_replace=value.get("allow_replace") is True,
        ignore_changes=tuple(kind.own_name(path) for path in _texts(value.get("ignore_changes"))),
        renamed_from=_texts(value.get("renamed_from")),
        beside=_texts(value.get("beside")),
    )


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


def default_layer(document: Document, kind: str) -> Layer | None:
    """Return the defaults of a kind in a file, None without any."""
    name = PurePosixPath(document.file).name
    label = DEFAULTS if document.file == WORKSPACE_FILE else f"{DEFAULTS} of {name}"
    layer = Layer(document, (DEFAULTS, kind), label)
    return layer if mapping_of(layer.value) else None


class Merged(Struct, frozen=True):
    """Layers, topmost first, and their values merged."""

    layers: tuple[Layer, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


class KindLayers(Struct, frozen=True):
    """What the resources of a kind share in one environment.

    `workspace` is the file whose defaults are the lowest layer. `filled` returns a text with its
    references filled in. `_defaults` remembers the defaults of each file.
    """

    kind: Kind
    environment: str
    workspace: Document
    filled: Callable[[str], JSON]
    _defaults: dict[str, Merged] = field(default_factory=dict)

    def defaults(self, document: Document) -> Merged:
        """Return the defaults for the resources of a file: its own over those of the workspace."""
        known = self._defaults.get(document.file)
        if known is None:
            known = Merged()
            own = [] if document.file == WORKSPACE_FILE else [document]
            for file in (self.workspace, *own):
                layer = default_layer(file, self.kind.name)
                if layer is not None:
                    values = self._over(known.values, mapping_of(layer.value))
                    known = Merged((layer, *known.layers), values)
            self._defaults[document.file] = known
        return known

    def merged(self, declaration: Declaration) -> Merged:
        """Return the layers of a resource, and merged. References are not filled in."""
        document, path, values = declaration.document, declaration.path, declaration.body
        defaults = self.defaults(document)
        layers = (Layer(document, path, RESOURCE), *defaults.layers)
        if defaults.layers:
            values = self._over(defaults.values, values)
        override = mapping_of(declaration.body.get("overrides")).get(self.environment)
        if isinstance(override, dict):
            inside = (*path, "overrides", self.environment)
            layers = (Layer(document, inside, f"override {self.environment}"), *layers)
            values = self._over(values, override)
        return Merged(layers, values)

    def _over(self, below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
        merged: dict[str, Any] = laid_over(below, above)
        for name in below.keys() & above.keys():
            if isinstance(above[name], dict) and self._is_replaced(name, below[name], above[name]):
                merged[name] = above[name]
        return merged

    def _is_replaced(self, name: str, below: Any, above: Mapping[str, Any]) -> bool:
        """Return whether a mapping replaces the one below instead of being merged with it.

        A parent does, since {name: …} and {id: …} exclude each other, and so does a variant with
        another tag, since the fields of one type have no meaning in another.
        """
        if name == self.kind.parent_key:
            return True
        field = self.kind.field_named(name) if isinstance(below, dict) else None
        if field is None or field.variant is None:
            return False
        tags = [side.get(field.variant.tag, MISSING) for side in (below, above)]
        if MISSING in tags or tags[0] == tags[1]:
            return False
        if not any(isinstance(tag, str) and holds_reference(tag) for tag in tags):
            return True
        # ${var:type} may be the type of the other layer.
        lower, upper = (self.filled(tag) if isinstance(tag, str) else tag for tag in tags)
        return bool(lower != upper)


def laid_over(below: Any, above: Any) -> Any:
    """Return two layers merged: mappings key by key, anything else is replaced.

    `${unset}` removes the value below.
    """
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    merged = {**below, **above}
    for key, lower in below.items():
        if key not in above:
            continue
        value = above[key]
        if isinstance(value, dict):
            merged[key] = laid_over(lower, value)
        elif value == UNSET:
            del merged[key]
    return merged


def managed_fields(
    values: Mapping[str, JSON], kind: Kind, check: CheckContext
) -> tuple[dict[str, JSON], dict[str, str]]:
    """Return the managed fields by the kind's own names, and the names in the files that differ."""
    spec: dict[str, JSON] = {}
    written: dict[str, str] = {}
    for name, value in values.items():
        if name in COMMON or name == kind.parent_key:
            continue
        own = kind.own_name(name)
        if own in spec:
            message = f"{check.subject} sets '{own}' twice, under two names"
            check.error_at_key("same-field-twice", (name,), message)
            continue
        spec[own] = value
        if own != name:
            written[own] = name
    return spec, written


def _with_credential(spec: Mapping[str, JSON], kind: Kind) -> Collection[Path]:
    texts = (
        leaf
        for field, _ in kind.variants
        for leaf in leaves(spec.get(field.name), (field.name,), skip=_NO_TEXT)
    )
    return [path for path, text in texts if isinstance(text, str) and credential_spans(text)]


def replace_literals(
    spec: dict[str, JSON],
    secrets: Mapping[Path, bool],
    references: References,
    places: Places,
    check: CheckContext,
) -> None:
    """Replace the literal secrets in fields by references to them, or report them."""
    for path, in_address in secrets.items():
        value = value_at(spec, path)
        if is_misread(value) or len(getattr(value, "parts", ())) == 1:
            continue
        argument = f"{check.subject}:{path_text(path)}{_host_of(path, value)}"
        literal = CLEARED if value is None else _reference_to(value, argument, references)
        if literal is None:
            _report_literal(path, places, check, in_address=in_address)
            continue
        parts = value.parts if isinstance(value, SecretRef) else (str(value),)
        text = "".join(part if isinstance(part, str) else "x" for part in parts)
        if value is not None and (flaw := flaw_of(text)) is not None:
            check.error("unusable-secret", path, f"{check.named(path)} {flaw[0]}", flaw[1])
        holder: Any = spec
        for part in path[:-1]:
            holder[part] = dict(holder[part])
            holder = holder[part]
        holder[path[-1]] = literal


def _host_of(path: Path, value: JSON) -> str:
    """Return `=host` of a URL, which is no secret: another host is another reference."""
    match = re.match(_HOST, str(value)) if looks_like_address(str(path[-1])) else None
    return f"={match[1]}" if match else ""


def _reference_to(value: JSON, argument: str, references: References) -> SecretRef | None:
    """Return a reference to a literal secret, None if it is empty, or the policy forbids those.

    Several secrets with punctuation between them are a reference, with other text they are not.
    """
    if isinstance(value, SecretRef):
        text = "".join(part for part in value.parts if isinstance(part, str))
        return None if any(map(str.isalnum, text)) else value
    return references.literal(argument, value) if str(value).strip() else None


_IN_FILE = (
    " and must not be written in a file",
    "use a reference such as ${secret:env:NAME}, and rotate the secret if the file was ever shared",
)
_FILLED_IN = ", but this reference is filled in as plain text"
_WHOLE = "use one reference for the whole value, such as ${secret:env:NAME}"
_EMPTY = "use a reference such as ${secret:env:NAME}, or null to clear what the service has"


def _report_literal(path: Path, places: Places, check: CheckContext, *, in_address: bool) -> None:
    layer, nearest = places.source_of(path)
    written = str(value_at(layer.value, nearest))
    if in_address:
        hint = "remove the credentials: everyone with read access sees the address; rotate them "
        reason = _FILLED_IN if holds_reference(written) else _IN_FILE[0]
        hint = f"{hint}if the file was ever shared"
    elif "${secret:" in written:
        reason, hint = " and must not be written in a file, not even in part", _WHOLE
    elif holds_reference(written):
        reason = _FILLED_IN
        hint = "use ${secret:env:NAME} or ${secret:file:PATH}"
    elif not written.strip():
        reason, hint = " and must not be empty", _EMPTY
    else:
        reason, hint = _IN_FILE
    check.error("literal-secret", path, f"{check.named(path)} is a secret{reason}", hint)


class OriginContext(Struct, frozen=True):
    """The sources of fields: the layers of the resource, variables and the environment."""

    places: Places
    variables: Places
    environ: Mapping[str, str]


def fields_with_origin(
    resource: Resource, kind: Kind, context: OriginContext
) -> tuple[PublicField, ...]:
    """Return every field of a resource with its origin, parent and lifecycle included."""
    carriers = annotated(kind.name, _SECRET, resource.spec)
    secret = {path for path, _ in carriers.get("x-secret", ())}
    resolved: list[PublicField] = []
    for path, value in _values(resource, kind, context.places):
        written_path = _as_written(path, kind, context.places)
        hidden = path in secret or isinstance(value, SecretRef)
        resolved.append(_field(path, written_path, value, context, hidden=hidden))
    return tuple(resolved)


def _with_missing(values: JSONObject, path: Path) -> JSONObject:
    """Return a mapping with `MISSING` at a path, unchanged if something else is there."""
    name, below = str(path[0]), path[1:]
    inside = values.get(name, {} if below else MISSING)
    if below and isinstance(inside, dict):
        return {**values, name: _with_missing(inside, below)}
    return values if below or inside is not MISSING else {**values, name: MISSING}


def _values(resource: Resource, kind: Kind, places: Places) -> Iterator[tuple[Path, JSON]]:
    """Yield the leaves of a resource: parent and id first, lifecycle last."""
    if kind.parent_key is not None and resource.parent is not None:
        yield from mapped_leaves(resource.parent.value, (kind.parent_key,))
    elif kind.parent_key is not None and _is_unset(kind.parent_key, places):
        yield (kind.parent_key,), MISSING
    if resource.pinned_id is not None:
        yield ("id",), resource.pinned_id
    if resource.state is not State.PRESENT or places.layer_of(("state",)) is not None:
        yield ("state",), resource.state.value
    order = {field.name: position for position, field in enumerate(kind.fields)}
    spec: JSONObject = resource.spec
    for unset in resource.unset:
        spec = _with_missing(spec, unset)
    for name in sorted(spec, key=lambda field_name: order.get(field_name, len(order))):
        yield from mapped_leaves(spec[name], (name,))
    given = resource.lifecycle.given()
    for setting, value in resource.lifecycle.as_json().items():
        path: Path = ("lifecycle", setting)
        is_set = any(value_at(layer.value, path) is not MISSING for layer in places.layers)
        if setting in given or is_set:
            yield path, value
    if resource.secret_version is not None or _is_unset("secret_version", places):
        yield ("secret_version",), resource.secret_version or MISSING


def _is_unset(name: str, places: Places) -> bool:
    layer = places.layer_of((name,))
    return layer is not None and value_at(layer.value, (name,)) == UNSET


def _as_written(path: Path, kind: Kind, places: Places) -> Path:
    """Return the path under the name that the files use, which may be an alias."""
    known = kind.field_named(str(path[0]))
    for name in (known.name, *known.aliases) if known is not None else ():
        if places.layer_of((name,)) is not None:
            return (name, *path[1:])
    return path


def _field(
    path: Path, written_path: Path, value: JSON, context: OriginContext, *, hidden: bool
) -> PublicField:
    top, set_at = context.places.source_of(written_path)
    written = value_at(top.value, set_at)
    texts = tuple(_every_text(written))
    plain = str(value) if isinstance(value, SecretRef) else value
    filled = any("${" in text for text in texts) and written != plain and value is not MISSING
    below = (layer for layer in context.places.layers if layer is not top)
    return PublicField(
        path=path,
        name=path_text(path),
        value=None if value is MISSING else map_leaves(value, _shown),
        unset=value is MISSING,
        origin=_origin(top, set_at),
        secret=hidden,
        written=_safe(written, hidden=hidden) if filled else None,
        references=tuple(_filled(texts, context, hidden=hidden, seen=frozenset())),
        overrides=tuple(
            PublicOverridden(_safe(overridden, hidden=hidden), _origin(layer, set_at))
            for layer in below
            if (overridden := value_at(layer.value, written_path)) is not MISSING
        ),
    )


def _origin(layer: Layer, path: Path) -> PublicOrigin:
    return PublicOrigin.of(FieldOrigin(layer.label, layer.document.key_mark(layer.path + path)))


def _shown(value: JSON) -> JSON:
    """Return a leaf without secrets. A list may contain references."""
    if not isinstance(value, SecretRef):
        return value
    return LITERAL_SECRET if value.is_literal else str(value)


def _safe(written: JSON, *, hidden: bool) -> JSON:
    """Return what is written in a file, without secrets."""
    if isinstance(written, Mapping):
        return _MAPPING if written else written
    if not hidden or written is None:
        return written
    text = str(written)
    if is_only_references(text):
        return text
    return LITERAL_SECRET


def _every_text(value: JSON) -> Iterator[str]:
    return (leaf for _, leaf in leaves(value) if isinstance(leaf, str))


def _filled(
    texts: tuple[str, ...], context: OriginContext, *, hidden: bool, seen: frozenset[str]
) -> Iterator[PublicReference]:
    """Yield the references in texts, each followed by those in the variable that it names."""
    for reference in (reference for text in texts for reference in references_in(text)):
        provider, argument = reference.provider, reference.argument
        layer = context.variables.layer_of((argument,)) if provider == VARIABLES.name else None
        if layer is not None and argument not in seen:
            yield PublicReference(str(reference), _origin(layer, (argument,)))
            inner = tuple(_every_text(value_at(layer.value, (argument,))))
            yield from _filled(inner, context, hidden=hidden, seen=seen | {argument})
        elif provider != VARIABLES.name and not reference.is_secret and provider in providers():
            text = reference.without_default(MASK) if hidden else str(reference)
            origin = providers()[provider].origin_of(argument, context.environ)
            yield PublicReference(text, PublicOrigin.of(origin))
