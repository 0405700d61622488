"""Read `reconciler.yaml`: environments, variables, defaults and policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from reconciler.errors import BadUsage, DiagnosticCollector, Mark
from reconciler.model.connection import Connection, is_loopback
from reconciler.model.kind import Kind
from reconciler.model.policy import Policy
from reconciler.model.suggestion import choice
from reconciler.model.values import JSON, Path, SecretRef, value_at
from reconciler.workspace.references import References
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.sources import WORKSPACE_FILE, Source
from reconciler.workspace.yaml.document import Document, Unknown
from reconciler.workspace.yaml.loader import Parse, parse

IMPLICIT_ENVIRONMENT = "default"


_REF_PREFIX = re.compile(r"refs(/[A-Za-z0-9_][A-Za-z0-9_-]*)+")
_OTHER_REFS = ("refs/heads/", "refs/remotes/")
_VARIABLES = {
    "base_url": "RECONCILER_BASE_URL",
    "organization": "RECONCILER_ORGANIZATION",
    "api_key": "RECONCILER_API_KEY",
}
"""Environment variables for what an environment of the file does not set."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """The workspace file, parsed and checked. `value` is empty if it cannot be used."""

    document: Document
    value: Mapping[str, Any]

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments, in the order of the file."""
        return tuple(self.section("environments"))

    def section(self, *path: str) -> Mapping[str, Any]:
        """Return the mapping at a path, empty if there is none."""
        section = value_at(self.value, path)
        return section if isinstance(section, dict) else {}

    def mark(self, path: Path) -> Mark:
        """Return the place of a value."""
        return self.document.mark(path)


def read_workspace(
    source: Source, problems: DiagnosticCollector, *, parse: Parse = parse
) -> Workspace:
    """Return the workspace of a source. A missing file is reported."""
    raw = source.read(WORKSPACE_FILE)
    if raw is None:
        problems.error("no-workspace", f"no {WORKSPACE_FILE} in this folder")
        return Workspace(Document(WORKSPACE_FILE), {})
    document = parse(raw, WORKSPACE_FILE, problems)
    if not isinstance(document.value, dict):
        if not document.unread and not isinstance(document.value, Unknown):
            problems.error(
                "not-a-mapping",
                f"{WORKSPACE_FILE} must be a mapping",
                at=document.mark(()),
                hint="start it with `version: 1`",
            )
        return Workspace(document, {})
    context = CheckContext("the workspace", document.mark, document.key_mark, problems)
    check("workspace", document.value, context)
    return Workspace(document, document.value)


def chosen_environment(workspace: Workspace, asked: str | None, environ: Mapping[str, str]) -> str:
    """Return the environment to work on. Raises BadUsage."""
    names = workspace.environments
    wanted = asked or environ.get("RECONCILER_ENVIRONMENT") or workspace.value.get("default")
    if not names:
        return str(wanted or IMPLICIT_ENVIRONMENT)
    if isinstance(wanted, Unknown) or (wanted is None and len(names) == 1):
        # The error in an unknown name is reported: other errors show in any environment.
        return names[0]
    if wanted is None:
        raise BadUsage(
            f"no environment selected: this workspace has {', '.join(names)}",
            hint="select one with -e, or set `default:` in reconciler.yaml",
        )
    if wanted not in names:
        hint = choice(wanted, names, "environments")
        raise BadUsage(f"unknown environment '{wanted}'", hint=hint)
    return str(wanted)


def variables_of(workspace: Workspace, environment: str) -> Mapping[str, JSON]:
    """Return the variables of the workspace, those of the environment over them."""
    return {**workspace.section("vars"), **workspace.section("environments", environment, "vars")}


def policy_of(workspace: Workspace, environment: str, kinds: Sequence[Kind]) -> Policy:
    """Return the policy of the workspace, that of the environment over it, key by key."""
    merged: dict[str, JSON] = {}
    marks: dict[str, Mark] = {}
    for path in (("policy",), ("environments", environment, "policy")):
        section = workspace.section(*path)
        merged |= section
        marks |= {name: workspace.mark((*path, name)) for name in section}
    switches = {
        kind.name: kind.deletion_switch for kind in kinds if kind.deletion_switch is not None
    }
    return Policy.read(merged, switches=switches, marks=marks)


def mark_prefix_of(workspace: Workspace, problems: DiagnosticCollector) -> str | None:
    """Return the prefix of references of applied commits, None for the default."""
    path = ("mark", "ref")
    prefix = value_at(workspace.value, path)
    if not isinstance(prefix, str) or isinstance(prefix, Unknown):
        return None
    if not _REF_PREFIX.fullmatch(prefix) or prefix.startswith(_OTHER_REFS):
        problems.error(
            "bad-ref",
            f"invalid prefix of git references '{prefix}'",
            at=workspace.mark(path),
        )
    return prefix


def connection_of(
    workspace: Workspace, environment: str, references: References
) -> Connection | None:
    """Return the connection of an environment, None if settings are missing."""
    base_url = _text_of(workspace, environment, "base_url", references)
    organization = _text_of(workspace, environment, "organization", references)
    key = _key_of(workspace, environment, references)
    if base_url is not None and not isinstance(base_url, Unknown):
        _check_url(workspace, environment, base_url, references.problems)
    if base_url is None or organization is None or key is None:
        return None
    return Connection(environment, base_url.rstrip("/"), organization, key)


def missing_of(workspace: Workspace, environment: str, environ: Mapping[str, str]) -> list[str]:
    """Return the settings that an environment lacks, in words."""
    entry = workspace.section("environments", environment)
    return [
        f"`{name}` (or the variable {variable})"
        for name, variable in _VARIABLES.items()
        if entry.get(name) is None and not environ.get(variable)
    ]


def _text_of(
    workspace: Workspace, environment: str, name: str, references: References
) -> str | None:
    path = ("environments", environment, name)
    value = value_at(workspace.value, path)
    resolved: JSON = None
    if isinstance(value, str):
        resolved = references.resolved(value, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        references.problems.error(
            "secret-in-plain-field",
            f"`{name}` of environment {environment} must not be a secret: plans print it",
            at=workspace.mark(path),
        )
        resolved = None
    text = resolved if resolved is None or isinstance(resolved, str) else str(resolved)
    return text or references.environ.get(_VARIABLES[name])


def _key_of(workspace: Workspace, environment: str, references: References) -> SecretRef | None:
    """Return the API key as a reference, which is looked up by the first request."""
    path = ("environments", environment, "api_key")
    written = workspace.section("environments", environment).get("api_key")
    if written is None:
        variable = _VARIABLES["api_key"]
        return SecretRef.of("env", variable) if references.environ.get(variable) else None
    if isinstance(written, Unknown):
        return None
    text = str(written).replace("${env:", "${secret:env:")
    resolved = references.resolved(text, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        return resolved
    if resolved is None or isinstance(resolved, Unknown):
        return None
    literal = references.literal(f"environments.{environment}:api_key", resolved)
    if literal is None:
        references.problems.error(
            "literal-secret",
            f"`api_key` of environment {environment} must not be written in a file",
            at=workspace.mark(path),
            hint="revoke it, and use a reference such as ${env:API_KEY}",
        )
    return literal


def _check_url(
    workspace: Workspace, environment: str, base_url: str, problems: DiagnosticCollector
) -> None:
    at = workspace.mark(("environments", environment, "base_url"))
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # Raises ValueError for an invalid port.
    except ValueError:
        parts, host = urlsplit(""), None
    invalid = parts.query or parts.fragment or any(character.isspace() for character in base_url)
    if parts.scheme not in ("http", "https") or not host or invalid:
        problems.error(
            "bad-url",
            f"invalid base_url '{base_url}' of environment {environment}",
            at=at,
            hint="use a URL such as https://eu.posthog.com",
        )
    elif parts.username or parts.password:
        problems.error(
            "bad-url",
            f"base_url of environment {environment} contains a user name or password",
            at=at,
            hint="remove them; only `api_key` is sent",
        )
    elif parts.scheme == "http" and not is_loopback(host):
        problems.warning(
            "clear-text",
            f"base_url of environment {environment} uses http: the API key is sent unencrypted",
            at=at,
        )
