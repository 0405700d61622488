"""Resolve secret references when a request is sent, and mask resolved secrets in text.

A reference that can't be resolved, or is empty, is an error before any request: servers store an
empty or a placeholder secret (docs/service.md, 1.5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from msgspec.structs import replace

from reconciler.errors import SecretUnavailable
from reconciler.model.connection import SecretSettings
from reconciler.model.redaction import Redactor
from reconciler.model.values import JSON, SecretRef, SecretSource, SecretValue, map_leaves
from reconciler.providers import SecretContext, providers


class SecretResolver:
    """Resolves each secret once in a run. `plain` returns the plain texts of the configuration."""

    def __init__(
        self,
        settings: SecretSettings,
        environ: Mapping[str, str],
        *,
        plain: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._context = SecretContext(settings, environ)
        self._values: dict[tuple[SecretSource, bool], SecretValue] = {}
        self._plain = plain
        self._redactor: Redactor | None = None

    def resolve(self, ref: SecretRef, *, for_api_key: bool = False) -> SecretValue:
        """Return the value. Raises SecretUnavailable, which names the reference, with a hint."""
        parts = [
            part if isinstance(part, str) else self._value(part, for_api_key=for_api_key).reveal()
            for part in ref.parts
        ]
        return SecretValue("".join(parts))

    def fill(self, body: JSON) -> JSON:
        """Return the body of a request with every reference replaced by its value."""
        return map_leaves(
            body,
            lambda leaf: self.resolve(leaf).reveal() if isinstance(leaf, SecretRef) else leaf,
        )

    def resolve_effortless(self, ref: SecretRef, *, for_api_key: bool = False) -> None:
        """Resolve a secret, so that it is masked, if that has no effect and takes no time."""
        used = [providers().get(source.source) for source in ref.sources]
        if all(provider is not None and provider.effortless for provider in used):
            with suppress(SecretUnavailable):
                self.resolve(ref, for_api_key=for_api_key)

    def check(self, needed: Iterable[tuple[str, SecretRef]]) -> None:
        """Resolve all references, each given with what needs it.

        Raises SecretUnavailable that lists every missing secret.
        """
        missing: dict[tuple[str, str | None], list[str]] = {}
        for user, ref in needed:
            try:
                self.resolve(ref)
            except SecretUnavailable as error:
                missing.setdefault((error.message, error.hint), []).append(user)
        if missing:
            raise SecretUnavailable(
                "\n".join(
                    f"{message}\n    needed by {', '.join(users)}"
                    for (message, _), users in missing.items()
                ),
                hint="\n".join(dict.fromkeys(hint for _, hint in missing if hint)) or None,
            )

    @property
    def redactor(self) -> Redactor:
        """What masks the secrets that are resolved so far."""
        if self._redactor is None:
            self._redactor = Redactor(self._values.values(), self._plain)
        return self._redactor

    def mask(self, text: str) -> str:
        """Return the text with resolved secrets masked, in every form."""
        return self.redactor.mask(text)

    def _value(self, source: SecretSource, *, for_api_key: bool) -> SecretValue:
        # The API key may come from where no other secret may come from.
        wanted = (source, for_api_key)
        if wanted not in self._values:
            provider = providers().get(source.source)
            if provider is None or provider.look_up is None:
                raise SecretUnavailable(f"unknown provider in {source}")
            value = provider.look_up(source, replace(self._context, for_api_key=for_api_key))
            if not value.strip():
                raise SecretUnavailable(
                    f"secret {source} is empty", hint=f"set a value for {source}"
                )
            self._values[wanted] = SecretValue(value)
            self._redactor = None
        return self._values[wanted]
