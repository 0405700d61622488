"""Decide which secrets a change sends. They can't be compared: the API hides them.

See docs/service.md, 15.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.change import FieldChange, SecretNote, SecretUse
from reconciler.model.kind import Kind
from reconciler.model.resource import Resource
from reconciler.model.schemas import looks_like_address
from reconciler.model.values import JSON, Path, SecretRef, secret_refs, value_at
from reconciler.planning.differ import is_ignored


def secret_notes(
    kind: Kind,
    resource: Resource,
    changes: Sequence[FieldChange],
    *,
    versions: Sequence[Resource],
    always: SecretUse | None,
) -> tuple[SecretNote, ...]:
    """Return every secret of the resource with the reason why it is or isn't sent.

    One that differs from any of the `versions` since the git base is sent, but for those of
    `ignore_changes`. `always`: why all are sent in any case.
    """

    def use(path: Path, since: Sequence[Resource], former: Sequence[JSON]) -> SecretUse:
        if always is not None:
            return always
        if any(version.secret_version != resource.secret_version for version in since):
            return SecretUse.VERSION_CHANGED
        if former:
            return SecretUse.REFERENCE_CHANGED
        if any(_requires_secret(kind, change.path, path) for change in changes):
            return SecretUse.NEEDED
        return SecretUse.UNREADABLE

    def note(path: Path, ref: SecretRef) -> SecretNote:
        since = () if is_ignored(path, resource.lifecycle) else versions
        former = [old for item in since if (old := value_at(item.spec, path)) != ref]
        shown = next((str(old) for old in former if isinstance(old, SecretRef)), "")
        return SecretNote(path, ref, use(path, since, former), shown)

    return tuple(note(path, ref) for path, ref in secret_refs(resource.spec))


def _requires_secret(kind: Kind, changed: Path, secret: Path) -> bool:
    """Return whether a PATCH of a changed path must contain the secret at another path.

    So it is if the secret is inside the changed value, if its variant changes its tag or its
    address, and if it must be sent with a changed field beside it.
    """
    if secret[: len(changed)] == changed:
        return True
    field = kind.field_named(str(changed[0]))
    if secret[0] != changed[0] or field is None or field.variant is None:
        return False
    if changed == (field.name, field.variant.tag):
        return True
    if changed[1] == field.variant.body and looks_like_address(str(changed[-1])):
        return True
    return any(
        inner.name == changed[-1] and secret[-1] in inner.sent_with
        for fields in field.variant.variants.values()
        for inner in fields
    )
