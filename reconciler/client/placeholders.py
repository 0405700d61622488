"""Secrets of a copy of the service: no real one is resolved."""

from __future__ import annotations

from reconciler.client.secrets import SecretResolver
from reconciler.model.connection import SecretSettings
from reconciler.model.copied import PLACEHOLDER
from reconciler.model.values import SecretSource, SecretValue


class Placeholders(SecretResolver):
    """Resolves every secret to a placeholder, and the API key to a given one."""

    def __init__(self, api_key: str) -> None:
        super().__init__(SecretSettings(folder=""), {})
        self._api_key = SecretValue(api_key)

    def _value(self, source: SecretSource, *, for_api_key: bool) -> SecretValue:
        del source
        return self._api_key if for_api_key else SecretValue(PLACEHOLDER)
