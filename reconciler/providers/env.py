"""`${env:NAME}`, `${env:NAME:-default}` and `${secret:env:NAME}`: environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

from reconciler.errors import SecretUnavailable
from reconciler.model.schemas import looks_secret
from reconciler.model.settings import API_KEY, untrusted
from reconciler.model.text import nearest
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


_Refusal: TypeAlias = tuple[str, str, str]
"""The code, the message and the hint of an error."""


def _fill(argument: str, context: FillContext) -> JSON:
    rules, (name, default) = context.rules, with_default(argument)
    if not NAME.match(name):
        return context.refuse(*_bad_name(name))
    refused = _reserved(name, context) or _secret(name, context) or _unlisted(name, context)
    if refused is not None:
        unknown = rules.of_commit
        return context.unknown_text(f"({name})") if unknown else context.refuse(*refused)
    is_read = rules.of_commit or not rules.assume_env
    value = rules.environ.get(name) if is_read else None
    if value is not None and (value or default is None):
        return _read(name, value, context)
    if default is not None:
        return default
    if rules.assume_env:
        return context.unknown_text(f"({name})")
    message = f"environment variable {name} is not set"
    hint = f"set it, or add a default: ${{env:{name}:-default}}"
    return context.refuse("unset-environment-variable", message, hint)


def _secret(name: str, context: FillContext) -> _Refusal | None:
    """Return the error for a variable that may be secret, None for others."""
    secrets = context.rules.declared.secrets | context.rules.trusted.secrets
    is_secret = name.startswith(SECRET_PREFIX) or name in secrets
    if not (is_secret or looks_secret(name)):
        return None
    reason = "is a secret of this workspace" if is_secret else "looks like a credential"
    message = f"environment variable {name} {reason}, and ${{env:NAME}} is for plain values"
    hint = f"use ${{secret:env:{name}}} in a secret field, or rename a variable that is not secret"
    return "credential-in-plain-field", message, hint


def _unlisted(name: str, context: FillContext) -> _Refusal | None:
    """Return the error for a variable that `env:` does not list, None for others."""
    trusted, is_declared = context.rules.trusted, name in context.rules.declared.env
    if name.startswith(PLAIN_PREFIX) or name in trusted.env:
        return None
    if not is_declared or not (context.rules.of_commit or trusted.strict):
        return _not_in_list("env", name, trusted.env)
    if not trusted.strict:
        return None
    ways = f"merge it to the trusted branch first, use a variable {PLAIN_PREFIX}…"
    hint = f"{ways}, or trust these files with --trust-workspace"
    return "unlisted-variable", untrusted(f"`env: [{name}]`", trusted.reason), hint


def _not_in_list(key: str, name: str, listed: frozenset[str]) -> _Refusal:
    hint = f"add {name} to the list `{key}:` of reconciler.yaml"
    close = nearest(name, listed)
    if not listed:
        hint = f"add `{key}: [{name}]` to reconciler.yaml"
    elif close is not None:
        hint = f"did you mean '{close}'? {hint}"
    return "unlisted-variable", f"environment variable {name} is not listed in `{key}:`", hint


def _reserved(name: str, context: FillContext) -> _Refusal | None:
    """Return the error for the API key and for tokens of the CI runner, None for others."""
    is_key = name == API_KEY or name in context.rules.key_variables
    if re.fullmatch(_RUNNER, name):
        content = "a token of the CI runner"
    elif is_key and not context.rules.for_api_key:
        content = "the API key or a header of the client"
    else:
        return None
    message = f"environment variable {name} contains {content}"
    return "reserved-variable", message, "use a variable of its own for each value"


def _read(name: str, value: str, context: FillContext) -> JSON:
    """Return a value that JSON can hold: Python decodes invalid UTF-8 to surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        message = f"environment variable {name} is not valid UTF-8"
        return context.refuse("not-text", message, "set it to UTF-8 text")
    return value


def _bad_name(name: str) -> _Refusal:
    hint = "use letters, digits and _ only; a default follows :- as in ${env:NAME:-default}"
    return "bad-reference", f"invalid environment variable name '{name}'", hint


def _accepts(argument: str, context: FillContext) -> bool:
    rules, (name, default) = context.rules, with_default(argument)
    refused: _Refusal | None = None
    if default is not None:
        # The default may be a secret: do not show it.
        message = f"${{secret:env:{name}}} must not have a default"
        hint = "remove the default, and set the variable where it is needed"
        refused = "bad-reference", message, hint
    elif not NAME.match(name):
        refused = _bad_name(name)
    elif not rules.of_commit:
        listed = rules.declared.secrets
        allowed = rules.for_api_key or name.startswith(SECRET_PREFIX) or name in listed
        refused = _reserved(name, context)
        if refused is None and not allowed:
            refused = _not_in_list("secrets", name, listed)
    if refused is not None:
        context.report(*refused)
    return refused is None


def _look_up(source: SecretSource, context: SecretContext) -> str:
    name, trusted = source.argument, context.settings.trusted
    allowed = name.startswith(SECRET_PREFIX) or context.for_api_key or name in trusted.secrets
    if trusted.strict and not allowed:
        hint = "merge it to the trusted branch first, or trust these files with --trust-workspace"
        raise SecretUnavailable(untrusted(f"`secrets: [{name}]`", trusted.reason), hint=hint)
    value = context.environ.get(name)
    if value is None:
        hint = f"set the environment variable {name}"
        raise SecretUnavailable(f"secret {source} is not set", hint=hint)
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
