"""Which secrets a change sends, and why: the API hides them, so they can't be compared (trap 1)."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.change import FieldChange, SecretNote, SecretUse
from reconciler.model.kind import Kind
from reconciler.model.resource import Resource
from reconciler.model.values import Path, SecretRef, secret_refs, value_at
from reconciler.planning.bodies import secret_needed


def secrets_of_create(resource: Resource) -> tuple[SecretNote, ...]:
    """A create sends all of them."""
    return tuple(
        SecretNote(path, ref, SecretUse.CREATE) for path, ref in secret_refs(resource.spec)
    )


def secrets_of_update(
    kind: Kind,
    resource: Resource,
    changes: Sequence[FieldChange],
    *,
    base: Resource | None,
    rotate: bool,
) -> tuple[SecretNote, ...]:
    """Every secret of the resource with the reason why it is or isn't sent."""
    return tuple(
        SecretNote(path, ref, _use(kind, resource, path, ref, changes, base=base, rotate=rotate))
        for path, ref in secret_refs(resource.spec)
    )


def _use(  # noqa: PLR0913 - every one of these is a reason to send
    kind: Kind,
    resource: Resource,
    path: Path,
    ref: SecretRef,
    changes: Sequence[FieldChange],
    *,
    base: Resource | None,
    rotate: bool,
) -> SecretUse:
    if rotate:
        return SecretUse.ROTATE
    if base is not None:
        if base.secret_version != resource.secret_version:
            return SecretUse.VERSION_CHANGED
        if value_at(base.spec, path) != ref:
            return SecretUse.REFERENCE_CHANGED
    if secret_needed(kind, path, changes):
        return SecretUse.NEEDED
    return SecretUse.UNREADABLE
