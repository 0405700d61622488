"""Secrets that are written in the files, where the policy permits it: no reference names them."""

from __future__ import annotations

from reconciler.errors import SecretUnavailable
from reconciler.model.values import SecretSource
from reconciler.providers.provider import LookUp, Provider


def _look_up(source: SecretSource, place: LookUp) -> str:
    value = place.settings.literals.get(source.argument)
    if value is None:
        raise SecretUnavailable(
            f"the literal secret of {source.argument} is no longer in the files",
            hint="make the plan again from these files",
        )
    return value.reveal()


PROVIDER = Provider("literal", look_up=_look_up, effortless=True)
