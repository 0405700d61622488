"""The connection of an environment, and the settings of its secrets."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address

from msgspec import Struct, field

from reconciler.model.trust import Trusted
from reconciler.model.values import SecretRef, SecretValue


class Connection(Struct, frozen=True):
    """The service of an environment. The first request resolves `api_key`.

    `base_url` has no trailing slash. `key_text` is the reference to the API key as it is written,
    empty if that is how it reads.
    """

    environment: str
    base_url: str
    organization: str
    api_key: SecretRef
    key_text: str = ""

    @property
    def written_key(self) -> str:
        """The reference to the API key as the files write it."""
        return self.key_text or str(self.api_key)


class SecretSettings(Struct, frozen=True):
    """The settings of the workspace for resolving secrets.

    `folder` is the workspace folder, the base of relative paths. `literals` are the secrets that
    are written in the files, by the argument of their `SecretSource`. `allow_exec` allows
    `${secret:exec:…}`. `trusted` lists what secrets may be read.
    """

    folder: str
    allow_exec: bool = False
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
    trusted: Trusted = field(default_factory=Trusted)


def is_loopback(host: str) -> bool:
    """Return whether a host name is that of this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
