"""The digest of a resolved configuration: a plan that was saved knows by it whether files moved."""

from __future__ import annotations

from hashlib import sha256

from reconciler.model.connection import Connection
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.model.shape import canonical_text


def digest_of(desired: Desired, policy: Policy, connection: Connection | None) -> str:
    """SHA-256 over all that a plan depends on, secrets as references."""
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
    rules = [
        sorted((scope, mode.value) for scope, mode in policy.prune.items()),
        policy.ignore,
        str(policy.max_deletes),
        str(policy.max_changes),
        sorted(policy.deletable),
        policy.allow_replace,
        policy.deny,
    ]
    where = [connection.base_url, connection.organization] if connection is not None else []
    digest.update(canonical_text([rules, where, desired.environment]).encode())
    return digest.hexdigest()
