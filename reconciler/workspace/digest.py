"""The digest of a resolved configuration, by which `apply` detects changed files."""

from __future__ import annotations

from hashlib import sha256

from reconciler.model.connection import Connection
from reconciler.model.field_types import canonical_text
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired


def digest_of(desired: Desired, policy: Policy, connection: Connection | None) -> str:
    """Return the SHA-256 of all that a plan depends on, secrets as references."""
    digest = sha256()
    for resource in desired.in_order():
        parts = (
            str(resource.address),
            dict(resource.spec),
            str(resource.parent),
            repr(resource.lifecycle),
            resource.state.value,
            resource.pinned_id,
            resource.secret_version,
        )
        digest.update(canonical_text(parts).encode())
    where = [connection.base_url, connection.organization] if connection is not None else []
    digest.update(canonical_text([policy.saved(), where, desired.environment]).encode())
    return digest.hexdigest()
