"""Where an environment lives and how its secrets are found, as values between config and client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.values import SecretRef, SecretValue


@dataclass(frozen=True, slots=True)
class Connection:
    """A named target. `api_key` is a reference: it is resolved when the first request is made.

    `base_url` has no trailing slash.
    """

    environment: str
    base_url: str
    organization: str
    api_key: SecretRef


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """What resolving a secret needs to know of the workspace.

    `folder` is the workspace folder, against which relative paths are read. `literals` holds the
    values that were written in the files (allowed by policy only), by the argument of their
    `SecretSource`. `allow_exec` permits `${secret:exec:...}`.
    """

    folder: str
    allow_exec: bool = False
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
