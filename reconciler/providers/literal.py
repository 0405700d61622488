"""Secrets that are written in the files, if the policy allows it. No reference names them."""

from __future__ import annotations

from reconciler.errors import SecretUnavailable
from reconciler.model.values import SecretSource
from reconciler.providers.provider import Provider, SecretContext


def _look_up(source: SecretSource, context: SecretContext) -> str:
    value = context.settings.literals.get(source.argument)
    if value is None:
        message = f"literal secret of {source.argument} is not in the files any more"
        raise SecretUnavailable(message, hint="make the plan again from these files")
    return value.reveal()


PROVIDER = Provider("literal", look_up=_look_up, effortless=True)
