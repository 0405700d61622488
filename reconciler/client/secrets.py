"""Resolves secret references at the moment of sending, and masks what is known wherever it shows.

A reference that can't be resolved, or is empty, is refused before any request: an empty or a
placeholder secret would be stored by the server (docs/service.md 1.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from reconciler.errors import SecretUnavailable
from reconciler.model.connection import SecretSettings
from reconciler.model.json_tree import map_leaves
from reconciler.model.redaction import redact_text
from reconciler.model.values import JSON, SecretRef, SecretSource, SecretValue
from reconciler.providers import LookUp, providers


class SecretResolver:
    """Finds secrets and remembers them for the run, so that each is looked up once."""

    def __init__(self, settings: SecretSettings, environ: Mapping[str, str]) -> None:
        self._look_up = LookUp(settings, environ)
        self._known: dict[SecretSource, SecretValue] = {}

    def resolve(self, ref: SecretRef) -> SecretValue:
        """Return the value. Raises SecretUnavailable, which names the reference, with a hint."""
        parts = [
            part if isinstance(part, str) else self._value(part).reveal() for part in ref.parts
        ]
        return SecretValue("".join(parts))

    def fill(self, body: JSON) -> JSON:
        """The body with every reference replaced by its value, for the one request."""
        return map_leaves(
            body,
            lambda leaf: self.resolve(leaf).reveal() if isinstance(leaf, SecretRef) else leaf,
        )

    def resolve_effortless(self, ref: SecretRef) -> None:
        """Resolve a secret if that has no effect and takes no time, so that it is masked."""
        known = providers()
        if all(
            source.source in known and known[source.source].effortless for source in ref.sources
        ):
            with suppress(SecretUnavailable):
                self.resolve(ref)

    def check(self, needed: Iterable[tuple[str, SecretRef]]) -> None:
        """Resolve all of them, each with a word on where it is needed.

        Raises SecretUnavailable that lists every missing one.
        """
        missing: dict[str, list[str]] = {}
        hints: dict[str, None] = {}
        for where, ref in needed:
            try:
                self.resolve(ref)
            except SecretUnavailable as error:
                missing.setdefault(error.message, []).append(where)
                hints[error.hint or ""] = None
        if missing:
            messages = [
                f"{why}\n    needed by {', '.join(where)}" for why, where in missing.items()
            ]
            raise SecretUnavailable(
                "\n".join(messages), hint="\n".join(hint for hint in hints if hint)
            )

    def mask(self, text: str) -> str:
        """The text with every known secret masked, plain, in base64 and URL-encoded."""
        return redact_text(text, self._known.values())

    def _value(self, source: SecretSource) -> SecretValue:
        if source not in self._known:
            provider = providers().get(source.source)
            if provider is None or provider.look_up is None:
                raise SecretUnavailable(f"secret {source} has no provider")
            value = provider.look_up(source, self._look_up)
            if not value.strip():
                raise SecretUnavailable(
                    f"secret {source} is empty", hint=f"give {source} a value before you apply"
                )
            self._known[source] = SecretValue(value)
        return self._known[source]
