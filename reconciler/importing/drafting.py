"""Make the resource that import writes for a live object: values, secrets, what is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from reconciler.authoring.drafts import Draft
from reconciler.importing.adopting import (
    Adoption,
    declared_values,
    is_given,
    managed_fields,
)
from reconciler.importing.writable import (
    doubtful_paths,
    fitting,
    in_schema_order,
    remove,
    secret_paths,
    variable_for,
    without_unimportable,
)
from reconciler.model.address import Address
from reconciler.model.imported import Left
from reconciler.model.json_tree import leaves
from reconciler.model.kind import Kind
from reconciler.model.redaction import Mask
from reconciler.model.resource import ParentRef, Resource, State
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    Path,
    SecretRef,
    path_text,
    put_at,
    secret_refs,
    value_at,
)


class Drafting(Struct):
    """Makes drafts, and notes what is left out and which secrets they refer to.

    `defaults` are those of the workspace by kind. `environment` is written to each resource, ""
    writes none. `variables` are those in use. `resources` are those of the files: their references
    to secrets are kept. `mask` masks known secrets. `dropped` are fields to leave out, with the
    reason.
    """

    defaults: Mapping[str, JSONObject]
    environment: str
    variables: set[str]
    resources: Mapping[Address, Resource]
    mask: Mask
    dropped: Mapping[Address, Mapping[Path, str]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    secrets: list[tuple[str, Address]] = field(default_factory=list)

    def draft(self, adoption: Adoption) -> Draft | None:
        """Return the resource for an object, None if no file can contain it."""
        kind, address = adoption.kind, adoption.address
        defaults = self.defaults.get(kind.name, {})
        values = {**self._values(adoption, defaults), **self._common(adoption)}
        fit, left_out = fitting(kind, values, defaults=defaults, subject=str(address))
        if fit is None:
            # What is around a part that was left out lacks it.
            reasons = [
                f"{path_text(path)}: {reason}" if path else reason
                for position, (path, reason) in enumerate(left_out)
                if all(inner[: len(path)] != path for inner, _ in left_out[:position])
            ]
            self._leave(adoption, (), "; ".join(reasons))
            return None
        for path, reason in left_out:
            self._leave(adoption, path, reason)
        ordered = in_schema_order(kind, _without_given(kind, fit, defaults))
        resource = self.resources.get(address)
        existing = {ref for _, ref in secret_refs(resource.spec)} if resource is not None else set()
        for _, ref in secret_refs(ordered):
            if ref not in existing:
                self.secrets += [(source.argument, address) for source in ref.sources]
        return Draft(kind.collection, address.key, ordered)

    def _values(self, adoption: Adoption, defaults: JSONObject) -> dict[str, JSON]:
        """Return the fields to write, with secrets as references."""
        kind, address, body = adoption.kind, adoption.address, adoption.live.body
        explicit = declared_values(kind, defaults).keys()
        managed, stale = managed_fields(kind, body, explicit=explicit)
        values = without_unimportable(kind, managed, explicit=explicit)
        for path in secret_paths(kind, values, body):
            if value_at(defaults, path) is MISSING:
                put_at(values, path, self._reference(address, path))
            else:
                remove(values, path)
        # Fields that look secret are not among the values, and are reported.
        returned = {
            field.name: body[field.name] for field, _ in kind.variants if field.name in body
        }
        left_out = {
            **dict.fromkeys(stale, "this type of destination no longer has this field"),
            **self.dropped.get(address, {}),
            **dict(doubtful_paths(kind, {**values, **returned})),
            **dict.fromkeys(
                self._pasted_secrets(values), "it contains the value of a secret of this workspace"
            ),
        }
        for path, reason in left_out.items():
            remove(values, path)
            self._leave(adoption, path, reason)
        return values

    def _reference(self, address: Address, path: Path) -> SecretRef:
        resource = self.resources.get(address)
        written = value_at(resource.spec, path) if resource is not None else MISSING
        # A literal secret is not copied to another file.
        if isinstance(written, SecretRef) and not written.is_literal:
            return written
        variable = variable_for(address.key, path, self.variables)
        self.variables.add(variable)
        return SecretRef.of("env", variable)

    def _leave(self, adoption: Adoption, path: Path, reason: str) -> None:
        self.left.append(Left(adoption.live, path, reason))

    def _common(self, adoption: Adoption) -> dict[str, JSON]:
        """Return the keys that resources of all kinds have."""
        kind, resource = adoption.kind, self.resources.get(adoption.address)
        values: dict[str, JSON] = {}
        if kind.parent_key is not None and adoption.parent is not None:
            values[kind.parent_key] = _parent_value(adoption.parent)
        if adoption.pinned or (resource is not None and resource.pinned_id):
            values["id"] = _identity(adoption.live.id)
        if self.environment:
            values["environments"] = [self.environment]
        return {**values, **_kept(resource)} if resource is not None else values

    def _pasted_secrets(self, values: JSONObject) -> Iterator[Path]:
        texts = [(path, text) for path, text in leaves(values) if isinstance(text, str)]
        together = "\n".join(text for _, text in texts)
        if self.mask(together) != together:
            # An item of a list can't be left out alone: the whole list is.
            for path, text in texts:
                if self.mask(text) != text:
                    yield tuple(part for part in path if isinstance(part, str))


def _without_given(kind: Kind, values: dict[str, JSON], defaults: JSONObject) -> dict[str, JSON]:
    """Return the fields that do not have the values of the defaults of the workspace."""
    tags = [(holder.name, variant.tag) for holder, variant in kind.variants]
    replaced = {
        path[0]
        for path in tags
        if value_at(defaults, path) not in (MISSING, value_at(values, path))
    }
    for path, default in declared_values(kind, defaults).items():
        # The defaults of another type of destination do not apply.
        if path[0] not in replaced and is_given(kind, values, path, default):
            remove(values, path)
    parent = kind.parent_key
    if parent is not None and parent in defaults and values.get(parent) == defaults[parent]:
        del values[parent]
    return values


def _kept(resource: Resource) -> dict[str, JSON]:
    """Return what a resource of the files says and no live object has."""
    lifecycle = resource.lifecycle.given()
    kept: dict[str, JSON] = {"lifecycle": lifecycle} if lifecycle else {}
    if resource.state is not State.PRESENT:
        kept["state"] = resource.state.value
    if resource.secret_version is not None:
        kept["secret_version"] = _identity(resource.secret_version)
    return kept


def _parent_value(ref: ParentRef) -> JSON:
    if ref.key is not None:
        return ref.key
    return {"id": _identity(ref.id)} if ref.id is not None else {"name": ref.name}


def _identity(identity: str | None) -> JSON:
    """Return decimal ids as numbers, as the service shows them."""
    return int(identity) if identity is not None and identity.isdecimal() else identity
