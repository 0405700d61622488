"""The connection of an environment: the address, the organization, the API key, and `client:`.

The variable of the API key has precedence over the file. The address of that key comes from its
variable too, if it is set: the file may only agree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct, field

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.connection import (
    DURATIONS,
    ClientOptions,
    Connection,
    duration,
    how_to_write,
    is_loopback,
    rate,
)
from reconciler.model.text import quoted
from reconciler.model.values import JSON, SecretRef, value_at
from reconciler.workspace.hints import shown
from reconciler.workspace.references import References
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Unknown

if TYPE_CHECKING:
    from reconciler.model.plan import Refusal

_NOT_IN_URL = re.compile(r"[\s?#\\]")
_HOST = r"(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?(/[\w/-]*)?"
"""A host without a scheme, with a port or a path."""
_OWN_PATH = re.compile(r"/(?:api|projects?|organizations?|environments|settings)(?:/.*)?$")
"""A path of the API or of the web interface."""
_KEY = "RECONCILER_API_KEY"
_VARIABLES = {"base_url": "RECONCILER_BASE_URL", "organization": "RECONCILER_ORGANIZATION"}


class Unconnected(Struct, frozen=True):
    """Why an environment has no connection, and the fix. `disagrees`: a file and a variable do.

    `missing` are the settings that are missing, with their variables. `is_untrusted`: the loaded
    files have them.
    """

    message: str
    hint: str
    disagrees: bool = False
    missing: Mapping[str, str] = field(default_factory=dict)
    is_untrusted: bool = False


Connected: TypeAlias = Connection | Unconnected


class Configured(Struct, frozen=True):
    """The connection of an environment, and what its file sets: text by name of the setting."""

    connected: Connected
    written: Mapping[str, str]


def connection_of(
    workspace: Workspace, environment: str, references: References, *, in_job: bool = False
) -> Configured:
    """Return the connection of an environment.

    `in_job`: with the variable of the API key, the others are required.
    """
    environ = references.environ
    texts = {name: _text_of(workspace, environment, name, references) for name in _VARIABLES}
    written = {name: text for name, text in texts.items() if text}
    key = _key_of(workspace, environment, references)
    settings = dict(written)
    for name, variable in _VARIABLES.items():
        value = environ.get(variable)
        if value and (environ.get(_KEY) or name not in written):
            settings[name] = value
    base_url, organization = settings.get("base_url"), settings.get("organization")
    if base_url and not isinstance(base_url, Unknown):
        is_written = base_url == written.get("base_url")
        at = workspace.mark(("environments", environment, "base_url")) if is_written else None
        _check_url("base_url" if is_written else _VARIABLES["base_url"], base_url, at, references)
    connected: Connected | None = None
    used_key = key
    if environ.get(_KEY):
        used_key = SecretRef.of("env", _KEY)
        connected = _disagreement(environment, written, environ, in_job=in_job)
    if connected is None and base_url and organization and used_key is not None:
        written_key = str(workspace.section("environments", environment).get("api_key", ""))
        connected = Connection(
            environment,
            base_url.rstrip("/"),
            organization,
            used_key,
            key_text=written_key if used_key is key and not used_key.is_literal else "",
        )
    return Configured(
        connected or _missing(workspace, environment, environ),
        written | ({"api_key": str(key)} if key is not None else {}),
    )


def changed_connection(
    workspace: Workspace, environment: str, own: Configured, trusted: Configured
) -> Iterator[Refusal]:
    """Yield what a workspace file sets and the one of the trusted branch does not."""
    from reconciler.model.plan import Refusal

    for name, new in own.written.items():
        used = (
            "" if isinstance(trusted.connected, Unconnected) else getattr(trusted.connected, name)
        )
        old = trusted.written.get(name) or str(used)
        if new.rstrip("/") not in (old.rstrip("/"), str(used)):
            before = f" from {quoted(old)}" if old else ""
            yield Refusal(
                "connection",
                f"`{name}` changes{before} to {quoted(new)}",
                at=workspace.mark(("environments", environment, name)),
            )


def _disagreement(
    environment: str,
    written: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    in_job: bool,
) -> Unconnected | None:
    """Return why the API key of the variable has no address, None if it has one."""
    for name, variable in _VARIABLES.items():
        value, own = environ.get(variable), written.get(name)
        if not value and in_job:
            return Unconnected(
                f"{_KEY} is set, but {variable} is not",
                f"set {variable} in the job, next to the key: files do not decide where it is sent",
                disagrees=True,
            )
        if value and own and not isinstance(own, Unknown) and own.rstrip("/") != value.rstrip("/"):
            return Unconnected(
                f"`{name}` of environment {environment} is {quoted(own)}, but {variable} is "
                f"{quoted(value)}",
                f"correct one of them: {_KEY} is sent only where both agree",
                disagrees=True,
            )
    return None


def _missing(workspace: Workspace, environment: str, environ: Mapping[str, str]) -> Unconnected:
    entry = workspace.section("environments", environment)
    missing = {
        name: variable
        for name, variable in {**_VARIABLES, "api_key": _KEY}.items()
        if entry.get(name) is None and not environ.get(variable)
    }
    names = ", ".join(f"no `{name}`" for name in missing)
    keys = " (`api_key` as a reference: ${env:NAME})" if "api_key" in missing else ""
    return Unconnected(
        f"environment {environment} has {names}",
        f"set {', '.join(missing.values())}, or add {', '.join(missing)} to the environment in "
        f"reconciler.yaml{keys}",
        missing=missing,
    )


def _text_of(
    workspace: Workspace, environment: str, name: str, references: References
) -> str | None:
    """Return a setting of the file, empty or None without one."""
    path = ("environments", environment, name)
    value = value_at(workspace.value, path)
    resolved: JSON = None
    if isinstance(value, str):
        resolved = references.resolved(value, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        references.problems.error(
            "secret-in-plain-field",
            f"`{name}` must not be a secret: plans print it",
            at=workspace.mark(path),
        )
        resolved = None
    return resolved if resolved is None or isinstance(resolved, str) else str(resolved)


def _key_of(workspace: Workspace, environment: str, references: References) -> SecretRef | None:
    """Return the API key of the file as a reference, which is looked up by the first request."""
    path = ("environments", environment, "api_key")
    written = workspace.section("environments", environment).get("api_key")
    if written is None or isinstance(written, Unknown):
        return None
    text = str(written).replace("${env:", "${secret:env:")
    resolved = references.for_key().resolved(text, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        return resolved
    if resolved is None or isinstance(resolved, Unknown):
        return None
    literal = references.literal(f"environments.{environment}:api_key", resolved)
    if literal is None:
        references.problems.error(
            "literal-secret",
            "`api_key` must not be written in a file",
            at=workspace.mark(path),
            hint="revoke it, and use a reference such as ${env:API_KEY}",
        )
    return literal


def _check_url(name: str, base_url: str, at: Mark | None, references: References) -> None:
    """Report an address that can't be used. `name` is its field or variable, `at` its place."""
    problems = references.problems
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # Raises ValueError for an invalid port.
    except ValueError:
        parts, host = urlsplit(""), None
    own_path = _OWN_PATH.search(parts.path)
    if "@" in base_url:
        # The value is not shown: it may contain a password.
        problems.error(
            "bad-url",
            f"{name} contains a user name or password",
            at=at,
            hint="remove them; only `api_key` is sent",
        )
    elif parts.scheme not in ("http", "https") or not host or _NOT_IN_URL.search(base_url):
        problems.error("bad-url", f"invalid {name} {quoted(base_url)}", at=at, hint=_fix(base_url))
    elif own_path is not None:
        page = own_path[0]
        address = f"{parts.scheme}://{parts.netloc}{parts.path.removesuffix(page)}"
        what = "the path of the API" if page.startswith("/api") else "the path of a page"
        problems.error(
            "bad-url",
            f"{name} contains {what}, {quoted(page)}",
            at=at,
            hint=f"use {address}; paths are added to it",
        )
    elif parts.scheme == "http" and not is_loopback(host):
        problems.warning(
            "clear-text",
            f"{name} uses http: the API key is not sent without --insecure-http",
            at=at,
        )


def _fix(base_url: str) -> str:
    """Return a hint for an address that is not a URL: often the scheme is missing."""
    scheme = "http" if is_loopback(re.split(r"[:/]", base_url)[0]) else "https"
    if re.fullmatch(_HOST, base_url):
        return f"did you mean '{scheme}://{base_url}'?"
    return "use a URL such as https://eu.posthog.com"


def client_options_of(
    workspace: Workspace, environment: str, problems: DiagnosticCollector
) -> ClientOptions:
    """Return the options of an environment over those of the workspace, key by key.

    Values of a wrong type were reported by the schema.
    """
    paths = (("environments", environment, "client"), ("client",))
    own, common = (_options_at(workspace, path, problems) for path in paths)
    return own.over(common)


def _options_at(
    workspace: Workspace, path: tuple[str, ...], problems: DiagnosticCollector
) -> ClientOptions:
    values: dict[str, Any] = {}
    for name, written in workspace.section(*path).items():
        values |= _read(name, written)
        if values.get(name, ...) is None:
            hint = how_to_write(name) + (", or false for no limit" if name == "rate" else "")
            problems.error(
                "bad-client-setting",
                f"invalid {name} {shown(written)}",
                at=workspace.mark((*path, name)),
                hint=hint,
            )
    return ClientOptions(**values)


def _read(name: str, written: JSON) -> dict[str, Any]:
    """Return the value of a key, None for an invalid one; nothing if its type is wrong."""
    if name == "parallelism":
        valid = isinstance(written, int) and not isinstance(written, bool) and written > 0
        return {name: written} if valid else {}
    if name == "rate" and isinstance(written, str | bool):
        return {name: () if written is False else rate(str(written))}
    if (
        name in DURATIONS
        and isinstance(written, str | int | float)
        and not isinstance(written, bool)
    ):
        return {name: duration(name, str(written))}
    return {}
