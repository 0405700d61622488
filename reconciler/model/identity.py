"""The identity and the digest of a change, and the id of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import orjson

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.values import JSON, MISSING, SecretRef

if TYPE_CHECKING:
    from reconciler.model.plan import PlanSource

DIGEST_VERSION: Final = 2
"""A part of every digest, so that digests of different definitions are never equal."""


def identity_of(change: Change, source: PlanSource) -> dict[str, Any]:
    """Return what a change acts on: the place, the action, the object and its name.

    The object is the live one; for a create it is its parent, by id, or by key if that does not
    exist yet.
    """
    identity: dict[str, Any] = {
        "environment": source.environment,
        "organization": source.organization,
        "base_url": source.base_url,
        "kind": change.address.kind,
        "action": change.action.value,
        "name": change.name.strip(),
    }
    if change.action is not Action.CREATE:
        return identity | {"id": change.live_id}
    waits_for = str(change.parent) if change.parent_id is None and change.parent else None
    return identity | {"parent_id": change.parent_id, "waits_for": waits_for}


def digest_of(change: Change, source: PlanSource) -> str:
    """Return the SHA-256 (hex) of all that a change does, and of the live state it depends on.

    Equal digests mean the same requests under the same conditions, and the same names and values
    to a reader. Messages, reasons, places, the names of parents, the order of the plan and the git
    base are not in it: a plan that renames a parent continues.
    """
    return _sha256(
        {
            "version": DIGEST_VERSION,
            "identity": identity_of(change, source),
            "address": str(change.address),
            "fields": _in_order(
                [list(field.path), _side(field.before), _side(field.after), field.secret]
                for field in change.fields
            ),
            "seen": _exact(change.seen),
            "inside": sorted(change.inside),
            "new_id": change.new_id,
            "body": _exact(change.body),
            "after_create": _exact(change.after_create),
            "secrets": _in_order(
                [list(note.path), _exact(note.ref), note.use.value]
                for note in change.secrets
                if note.use.sent
            ),
            "depends_on": sorted(change.depends_on),
            "rules": sorted({(item.rule, item.severity.value) for item in change.consequences}),
        }
    )


def plan_id_of(digests: Iterable[str]) -> str:
    """Return the id of the plan whose changes have these digests, in any order."""
    return _sha256([DIGEST_VERSION, sorted(digests)])


def _side(value: JSON) -> list[Any]:
    """Return a value as a list, which is empty for an absent one."""
    return [] if value is MISSING else [_exact(value)]


def _exact(value: JSON) -> Any:
    """Return JSON in which no text is equal to a secret reference."""
    if isinstance(value, SecretRef):
        return {"$secret": [[str(part), isinstance(part, str)] for part in value.parts]}
    if isinstance(value, Mapping):
        return {
            f"${name}" if str(name).startswith("$") else str(name): _exact(item)
            for name, item in value.items()
        }
    return [_exact(item) for item in value] if isinstance(value, (list, tuple)) else value


def _in_order(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=_canonical)


def _sha256(content: Any) -> str:
    return sha256(_canonical(content)).hexdigest()


def _canonical(content: Any) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
