"""One live object to the resource that import writes for it: values, secrets, what is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from reconciler.authoring.drafts import Draft
from reconciler.importing.adopting import Adoption, declared_paths, managed_fields
from reconciler.importing.writable import (
    SecretNames,
    doubtful_paths,
    fitting,
    in_schema_order,
    remove,
    secret_paths,
    without_unimportable,
)
from reconciler.model.address import Address
from reconciler.model.imported import Left
from reconciler.model.json_tree import leaves
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


@dataclass(slots=True)
class Drafting:
    """What drafting looks at besides the object.

    `defaults` are those of the workspace by kind, `environments` what to write as such (empty:
    nothing), `declared` are the resources of the files, whose references to secrets stay. `mask`
    hides known secrets in a text, `dropped` are fields known not to read back.
    """

    defaults: Mapping[str, JSONObject]
    environments: tuple[str, ...]
    names: SecretNames
    declared: Mapping[Address, Resource]
    mask: Callable[[str], str]
    dropped: Mapping[Address, Mapping[Path, str]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    secrets: list[tuple[str, Address]] = field(default_factory=list)

    def draft(self, each: Adoption) -> Draft | None:
        """The resource for an object; None where it can't be one. What is left out is noted."""
        defaults = self.defaults.get(each.kind.name, {})
        values = {**self._values(each, defaults), **self._common(each)}
        fit = fitting(each.kind, values, defaults=defaults, subject=str(each.address))
        if fit.values is None:
            told = (f"{path_text(path)}: {why}" if path else why for path, why in fit.left_out)
            self._leave(each, (), "; ".join(told))
            return None
        for path, why in fit.left_out:
            self._leave(each, path, why)
        ordered = in_schema_order(each.kind, fit.values)
        declared = self.declared.get(each.address)
        there = {ref for _, ref in secret_refs(declared.spec)} if declared is not None else set()
        for _, ref in secret_refs(ordered):
            if ref not in there:
                self.secrets += [(source.argument, each.address) for source in ref.sources]
        return Draft(each.kind.collection, each.address.key, ordered)

    def _values(self, each: Adoption, defaults: JSONObject) -> dict[str, JSON]:
        """The fields, secrets as references, without what must not or need not stand in a file."""
        explicit = declared_paths(each.kind, defaults)
        managed = managed_fields(each.kind, each.live.body, explicit=explicit)
        values = without_unimportable(each.kind, managed.values, explicit=explicit)
        for path in secret_paths(each.kind, values, each.live.body):
            if value_at(defaults, path) is MISSING:
                put_at(values, path, self._reference(each.address, path))
            else:
                remove(values, path)
        left_out = {
            **dict.fromkeys(managed.stale, "this type of destination has no such field any more"),
            **self.dropped.get(each.address, {}),
            **dict(doubtful_paths(each.kind, values)),
            **dict.fromkeys(
                self._pasted_secrets(values), "it holds the value of a secret of this workspace"
            ),
        }
        for path, why in left_out.items():
            remove(values, path)
            self._leave(each, path, why)
        return values

    def _reference(self, address: Address, path: Path) -> SecretRef:
        declared = self.declared.get(address)
        written = value_at(declared.spec, path) if declared is not None else MISSING
        # A literal of the files stands in them and nowhere else: it is not copied.
        if isinstance(written, SecretRef) and not written.is_literal:
            return written
        return SecretRef.of("env", self.names.name_for(address.key, path))

    def _leave(self, each: Adoption, path: Path, why: str) -> None:
        self.left.append(Left(each.live, path, why))

    def _common(self, each: Adoption) -> dict[str, JSON]:
        found: dict[str, JSON] = {}
        if each.kind.parent_key is not None and each.parent is not None:
            found[each.kind.parent_key] = _parent_value(each.parent)
        declared = self.declared.get(each.address)
        if each.pinned or (declared is not None and declared.pinned_id):
            found["id"] = _identity(each.live.id)
        if self.environments:
            found["environments"] = list(self.environments)
        return {**found, **_kept(declared)} if declared is not None else found

    def _pasted_secrets(self, values: JSONObject) -> Iterator[Path]:
        texts = [(path, text) for path, text in leaves(values) if isinstance(text, str)]
        together = "\n".join(text for _, text in texts)
        if self.mask(together) != together:
            # A part of a list can't be left out: then the list is.
            for path, text in texts:
                if self.mask(text) != text:
                    yield tuple(part for part in path if isinstance(part, str))


def _kept(declared: Resource) -> dict[str, JSON]:
    """What a resource says of itself and no live object can tell, as it was."""
    lifecycle = {
        each.name: list(value) if isinstance(value, tuple) else value
        for each in fields(declared.lifecycle)
        if (value := getattr(declared.lifecycle, each.name)) != each.default
    }
    found: dict[str, JSON] = {"lifecycle": lifecycle} if lifecycle else {}
    if declared.state is not State.PRESENT:
        found["state"] = declared.state.value
    if declared.secret_version is not None:
        found["secret_version"] = _identity(declared.secret_version)
    return found


def _parent_value(ref: ParentRef) -> JSON:
    if ref.key is not None:
        return ref.key
    return {"id": _identity(ref.id)} if ref.id is not None else {"name": ref.name}


def _identity(identity: str | None) -> JSON:
    """Numbers as numbers, as the service shows them."""
    return int(identity) if identity is not None and identity.isdecimal() else identity
