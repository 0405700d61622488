"""`${env:NAME}`, `${env:NAME:-default}` and `${secret:env:NAME}`: environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.errors import SecretUnavailable
from reconciler.model.address import nearest
from reconciler.model.connection import API_KEY, untrusted
from reconciler.model.schemas import looks_secret
from reconciler.model.values import JSON, FieldOrigin, SecretSource, with_default
from reconciler.providers.provider import FillContext, Provider, SecretContext

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")
PLAIN_PREFIX = "RECONCILER_VAR_"
SECRET_PREFIX = "RECONCILER_SECRET_"  # noqa: S105 - a part of names
"""Variables with these prefixes exist for workspaces only, and need no entry in a list."""
_RUNNER = (
    r"(GITHUB|GH|GITLAB)_TOKEN|ACTIONS_\w*|CI_JOB_(TOKEN|JWT)\w*|CI_REPOSITORY_URL"
    r"|CI_(REGISTRY|DEPLOY|DEPENDENCY_PROXY)_PASSWORD|SYSTEM_ACCESSTOKEN"
    r"|(BUILDKITE_AGENT|VSS_NUGET)_ACCESSTOKEN|BUILDKITE_AGENT_ACCESS_TOKEN"
    r"|(CIRCLE|BITBUCKET_STEP)_OIDC_TOKEN\w*"
)
"""Tokens of CI runners, and addresses that contain them."""


def _fill(argument: str, context: FillContext) -> JSON:
    rules, (name, default) = context.rules, with_default(argument)
    if not NAME.match(name):
        return _refuse_name(name, context)
    refused = (
        _refused_as_reserved(name, context)
        or _refused_as_secret(name, context)
        or _refused_as_unlisted(name, context)
    )
    if refused is not None:
        return (
            context.unknown_text(f"({name})")
            if context.rules.of_commit
            else context.refuse(*refused)
        )
    is_read = context.rules.of_commit or not context.rules.assume_env
    value = context.rules.environ.get(name) if is_read else None
    if value is not None and (value or default is None):
        return _read(name, value, context)
    if default is None and rules.assume_env:
        return context.unknown_text(f"({name})")
    return default if default is not None else _refuse_unset(name, context)


def _refused_as_secret(name: str, context: FillContext) -> tuple[str, str, str] | None:
    """Return the error for a variable that may be secret, None for others."""
    secrets = context.rules.declared.secrets | context.rules.trusted.secrets
    if name.startswith(SECRET_PREFIX) or name in secrets:
        reason = "is a secret of this workspace"
    elif looks_secret(name):
        reason = "looks like a credential"
    else:
        return None
    return (
        "credential-in-plain-field",
        f"environment variable {name} {reason}, and ${{env:NAME}} is for plain values",
        f"use ${{secret:env:{name}}} in a secret field, or rename a variable that is not secret",
    )


def _refused_as_unlisted(name: str, context: FillContext) -> tuple[str, str, str] | None:
    """Return the error for a variable that `env:` does not list, None for others."""
    trusted = context.rules.trusted
    if name.startswith(PLAIN_PREFIX) or name in trusted.env:
        return None
    if context.rules.of_commit and not trusted.strict and name in context.rules.declared.env:
        return None
    if trusted.strict and name in context.rules.declared.env:
        hint = (
            f"merge it to the trusted branch first, use a variable {PLAIN_PREFIX}…, or trust these "
            "files with --trust-workspace"
        )
        return "unlisted-variable", untrusted(f"`env: [{name}]`", trusted.reason), hint
    message = f"environment variable {name} is not listed in `env:`"
    return "unlisted-variable", message, _how_to_list("env", name, trusted.env)


def _how_to_list(key: str, name: str, listed: frozenset[str]) -> str:
    if not listed:
        return f"add `{key}: [{name}]` to reconciler.yaml"
    close = nearest(name, listed)
    suggestion = f"did you mean '{close}'? " if close is not None else ""
    return f"{suggestion}add {name} to the list `{key}:` of reconciler.yaml"


def _refused_as_reserved(name: str, context: FillContext) -> tuple[str, str, str] | None:
    """Return the error for the API key and for tokens of the CI runner, None for others."""
    if re.fullmatch(_RUNNER, name):
        content = "a token of the CI runner"
    elif (name == API_KEY or name in context.rules.key_variables) and not context.rules.for_api_key:
        content = "the API key"
    else:
        return None
    return (
        "reserved-variable",
        f"environment variable {name} contains {content}",
        "use a variable of its own for each value",
    )


def _read(name: str, value: str, context: FillContext) -> JSON:
    """Return a value that JSON can hold: Python decodes invalid UTF-8 to surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return context.refuse(
            "not-text", f"environment variable {name} is not valid UTF-8", "set it to UTF-8 text"
        )
    return value


def _refuse_unset(name: str, context: FillContext) -> JSON:
    return context.refuse(
        "unset-environment-variable",
        f"environment variable {name} is not set",
        f"set it, or add a default: ${{env:{name}:-default}}",
    )


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
        return False
    if not NAME.match(name):
        _refuse_name(name, context)
        return False
    refused = _refused_secret(name, context)
    if refused is None or context.rules.of_commit:
        return True
    context.refuse(*refused)
    return False


def _refused_secret(name: str, context: FillContext) -> tuple[str, str, str] | None:
    """Return the error for a secret that may not be read, None for others."""
    reserved = _refused_as_reserved(name, context)
    if reserved is not None:
        return reserved
    listed = context.rules.declared.secrets
    if context.rules.for_api_key or name.startswith(SECRET_PREFIX) or name in listed:
        return None
    return (
        "unlisted-variable",
        f"environment variable {name} is not listed in `secrets:`",
        _how_to_list("secrets", name, listed),
    )


def _look_up(source: SecretSource, context: SecretContext) -> str:
    name, trusted = source.argument, context.settings.trusted
    allowed = name.startswith(SECRET_PREFIX) or context.for_api_key or name in trusted.secrets
    if trusted.strict and not allowed:
        raise SecretUnavailable(
            untrusted(f"`secrets: [{name}]`", trusted.reason),
            hint="merge it to the trusted branch first, or trust these files with "
            "--trust-workspace",
        )
    value = context.environ.get(name)
    if value is None:
        raise SecretUnavailable(
            f"secret {source} is not set", hint=f"set the environment variable {name}"
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
    from_outside=True,
    origin=_origin,
    position=2,
)
