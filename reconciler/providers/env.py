"""`${env:NAME}`, `${env:NAME:-default}` and `${secret:env:NAME}`: environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.errors import SecretUnavailable
from reconciler.model.reference import with_default
from reconciler.model.resolved import FieldOrigin
from reconciler.model.values import JSON, SecretSource
from reconciler.providers.provider import FillContext, Provider, SecretContext

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


def _fill(argument: str, context: FillContext) -> JSON:
    name, default = with_default(argument)
    if not NAME.match(name):
        return _refuse_name(name, context)
    value = context.environ.get(name)
    if value is not None and (value or default is None):
        if _is_text(value):
            return value
        return context.refuse(
            "not-text", f"environment variable {name} is not valid UTF-8", "set it to UTF-8 text"
        )
    if default is not None:
        return default
    if context.assume_env:
        return context.unknown_text(f"({name})")
    return context.refuse(
        "unset-environment-variable",
        f"environment variable {name} is not set",
        f"set it, or add a default: ${{env:{name}:-default}}",
    )


def _is_text(value: str) -> bool:
    """Return whether JSON can hold a value: Python decodes invalid UTF-8 to surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_name(name: str, context: FillContext) -> JSON:
    return context.refuse(
        "bad-reference",
        f"invalid environment variable name '{name}'",
        "use letters, digits and _ only; a default follows :- as in ${env:NAME:-default}",
    )


def _accepts(argument: str, context: FillContext) -> bool:
    name, default = with_default(argument)
    if default is not None:
        # The default may be a secret: do not show it.
        context.refuse(
            "bad-reference",
            f"${{secret:env:{name}}} must not have a default",
            "remove the default, and set the variable where it is needed",
        )
    elif not NAME.match(name):
        _refuse_name(name, context)
    else:
        return True
    return False


def _look_up(source: SecretSource, context: SecretContext) -> str:
    value = context.environ.get(source.argument)
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
