"""`${env:NAME}`, `${env:NAME:-default}` and `${secret:env:NAME}`: environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.errors import SecretUnavailable
from reconciler.model.reference import with_default
from reconciler.model.resolved import FieldOrigin
from reconciler.model.values import JSON, SecretSource
from reconciler.providers.provider import Filling, LookUp, Provider

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


def _fill(argument: str, filling: Filling) -> JSON:
    name, default = with_default(argument)
    if not NAME.match(name):
        return _refuse_name(name, filling)
    value = filling.environ.get(name)
    if value is not None and (value or default is None):
        return value if _is_text(value) else _refuse_bytes(name, filling)
    if default is not None:
        return default
    if filling.assume_env:
        return filling.unknown_text(f"({name})")
    return filling.refuse(
        "unset-environment-variable",
        f"the environment variable {name} is not set",
        f"set it, or give a default: ${{env:{name}:-default}}",
    )


def _is_text(value: str) -> bool:
    """Return False for what a system makes of bytes that are not UTF-8: no JSON can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_bytes(name: str, filling: Filling) -> JSON:
    return filling.refuse(
        "not-text",
        f"the value of the environment variable {name} is not UTF-8 text",
        "set it again",
    )


def _refuse_name(name: str, filling: Filling) -> JSON:
    return filling.refuse(
        "bad-reference",
        f"'{name}' is not the name of an environment variable",
        "names have letters, digits and _ only; a default goes after :- as in ${env:NAME:-default}",
    )


def _accepts(argument: str, filling: Filling) -> bool:
    name, default = with_default(argument)
    if default is not None:
        # The default may be a secret: it is not shown.
        filling.refuse(
            "bad-reference",
            f"${{secret:env:{name}}} has a default, and a secret has none",
            "remove it, and set the variable where it is needed",
        )
    elif not NAME.match(name):
        _refuse_name(name, filling)
    else:
        return True
    return False


def _look_up(source: SecretSource, place: LookUp) -> str:
    value = place.environ.get(source.argument)
    if value is None:
        raise SecretUnavailable(
            f"secret {source} is not set", hint=f"set the environment variable {source.argument}"
        )
    return value


def _origin(argument: str, environ: Mapping[str, str]) -> FieldOrigin:
    name, default = with_default(argument)
    value = environ.get(name)
    is_set = value is not None and (value or default is None)
    return FieldOrigin("environment" if is_set else "default", None)


PROVIDER = Provider(
    "env",
    fill=_fill,
    accepts=_accepts,
    look_up=_look_up,
    effortless=True,
    origin=_origin,
    position=2,
)
