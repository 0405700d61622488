"""`reconciler.yaml`: environments, variables, defaults and policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from reconciler.errors import BadUsage, DiagnosticCollector, Mark
from reconciler.model.connection import Connection
from reconciler.model.kind import Kind
from reconciler.model.policy import Policy
from reconciler.model.suggestion import nearest
from reconciler.model.values import JSON, Path, SecretRef, SecretValue, value_at
from reconciler.workspace.references import References
from reconciler.workspace.schema.validation import Checked, check
from reconciler.workspace.sources import WORKSPACE_FILE, Source
from reconciler.workspace.yaml.document import Document, Unknown
from reconciler.workspace.yaml.loader import parse

IMPLICIT_ENVIRONMENT = "default"


@dataclass(frozen=True, slots=True)
class Workspace:
    """The workspace file, parsed and checked. `value` is empty where there is no usable one."""

    document: Document
    value: Mapping[str, Any]

    @property
    def environments(self) -> tuple[str, ...]:
        """Their names, in the order of the file."""
        environments = self.value.get("environments")
        return tuple(environments) if isinstance(environments, dict) else ()

    def section(self, *path: str) -> Mapping[str, Any]:
        """A mapping inside, empty where there is none."""
        section = value_at(self.value, path)
        return section if isinstance(section, dict) else {}

    def mark(self, path: Path) -> Mark:
        """The place of a value."""
        return self.document.mark(path)


def read_workspace(source: Source, problems: DiagnosticCollector) -> Workspace:
    """The workspace of a source. A missing file is reported."""
    raw = source.read(WORKSPACE_FILE)
    if raw is None:
        problems.error(
            "no-workspace",
            f"there is no {WORKSPACE_FILE} here",
        )
        return Workspace(Document(WORKSPACE_FILE), {})
    document = parse(raw, WORKSPACE_FILE, problems)
    if not isinstance(document.value, dict):
        if not document.unread and not isinstance(document.value, Unknown):
            problems.error(
                "not-a-mapping",
                f"{WORKSPACE_FILE} holds no mapping",
                at=document.mark(()),
                hint="begin it with `version: 1`",
            )
        return Workspace(document, {})
    checked = Checked("the workspace", document.mark, document.key_mark)
    check("workspace", document.value, checked, problems)
    return Workspace(document, document.value)


def chosen_environment(workspace: Workspace, asked: str | None, environ: Mapping[str, str]) -> str:
    """The environment to work on. Raises BadUsage, which names those there are."""
    names = workspace.environments
    wanted = asked or environ.get("RECONCILER_ENVIRONMENT") or workspace.value.get("default")
    if not names:
        return str(wanted or IMPLICIT_ENVIRONMENT)
    listed = ", ".join(names)
    if wanted is None:
        if len(names) == 1:
            return names[0]
        raise BadUsage(
            f"this workspace has {len(names)} environments: {listed}",
            hint="name one with -e, or set `default:` in reconciler.yaml",
        )
    if isinstance(wanted, Unknown):
        # It was misread, which is reported: other errors show in any environment.
        return names[0]
    if wanted not in names:
        close = nearest(str(wanted), names)
        meant = f"did you mean '{close}'? " if close else ""
        raise BadUsage(f"unknown environment '{wanted}'", hint=f"{meant}There are: {listed}")
    return str(wanted)


def variables_of(workspace: Workspace, environment: str) -> Mapping[str, JSON]:
    """Variables of the workspace with those of the environment over them."""
    return {
        **workspace.section("vars"),
        **workspace.section("environments", environment, "vars"),
    }


def policy_of(workspace: Workspace, environment: str, kinds: Sequence[Kind]) -> Policy:
    """The policy of the workspace with that of the environment over it, key by key."""
    above = workspace.section("policy")
    own = workspace.section("environments", environment, "policy")
    merged = {**above, **own}
    marks = {
        name: workspace.mark(
            ("environments", environment, "policy", name) if name in own else ("policy", name)
        )
        for name in merged
    }
    switches = {
        kind.name: kind.deletion_switch for kind in kinds if kind.deletion_switch is not None
    }
    return Policy.read(merged, switches=switches, marks=marks)


def connection_of(
    workspace: Workspace,
    environment: str,
    references: References,
    *,
    literals: dict[str, SecretValue] | None,
) -> Connection | None:
    """Return where the environment is, None where something is missing.

    Literal secrets are added to `literals`; None where the policy forbids them.
    """
    entry = workspace.section("environments", environment)
    environ = references.environ
    base_url = _text_of(workspace, environment, "base_url", references)
    base_url = base_url or environ.get("RECONCILER_BASE_URL")
    organization = _text_of(workspace, environment, "organization", references)
    organization = organization or environ.get("RECONCILER_ORGANIZATION")
    key = _key_of(workspace, environment, entry.get("api_key"), references, literals)
    if base_url is not None and not isinstance(base_url, Unknown):
        _check_url(workspace, environment, base_url, references.problems)
    if base_url is None or organization is None or key is None:
        return None
    return Connection(environment, base_url.rstrip("/"), organization, key)


def missing_of(workspace: Workspace, environment: str, environ: Mapping[str, str]) -> list[str]:
    """What an environment lacks to be reached, in words."""
    entry = workspace.section("environments", environment)
    needed = {
        "base_url": "RECONCILER_BASE_URL",
        "organization": "RECONCILER_ORGANIZATION",
        "api_key": "RECONCILER_API_KEY",
    }
    return [
        f"`{name}` (or the variable {variable})"
        for name, variable in needed.items()
        if entry.get(name) is None and not environ.get(variable)
    ]


def _text_of(
    workspace: Workspace, environment: str, name: str, references: References
) -> str | None:
    path = ("environments", environment, name)
    value = value_at(workspace.value, path)
    if not isinstance(value, str):
        return None
    resolved = references.resolved(value, lambda _: workspace.mark(path))
    if isinstance(resolved, SecretRef):
        references.problems.error(
            "secret-in-plain-field",
            f"`{name}` of environment {environment} is printed in plans and can't be a secret",
            at=workspace.mark(path),
        )
        return None
    if isinstance(resolved, Unknown):
        return resolved
    return str(resolved) if resolved is not None else None


def _key_of(
    workspace: Workspace,
    environment: str,
    written: JSON,
    references: References,
    literals: dict[str, SecretValue] | None,
) -> SecretRef | None:
    """The API key as a reference: `${env:X}` is looked up only when a request is made."""
    if isinstance(written, Unknown):
        return None
    if written is None:
        named = "RECONCILER_API_KEY"
        return SecretRef.of("env", named) if references.environ.get(named) else None
    path = ("environments", environment, "api_key")
    text = str(written).replace("${env:", "${secret:env:")
    resolved = references.resolved(text, lambda _: workspace.mark(path))
    if isinstance(resolved, SecretRef) or resolved is None:
        return resolved
    if isinstance(resolved, Unknown):
        return None
    if literals is not None:
        argument = f"environments.{environment}:api_key"
        literals[argument] = SecretValue(str(resolved))
        return SecretRef.of("literal", argument)
    references.problems.error(
        "literal-secret",
        f"the API key of environment {environment} is written in the file",
        at=workspace.mark(path),
        hint="revoke it, and write a reference such as ${env:API_KEY}",
    )
    return None


def _check_url(
    workspace: Workspace, environment: str, base_url: str, problems: DiagnosticCollector
) -> None:
    at = workspace.mark(("environments", environment, "base_url"))
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    odd = parts.query or parts.fragment or any(character.isspace() for character in base_url)
    if parts.scheme not in ("http", "https") or not host or odd:
        problems.error(
            "bad-url",
            f"base_url of environment {environment}: '{base_url}' is not an address",
            at=at,
            hint="write it like https://eu.posthog.com",
        )
    elif parts.username or parts.password:
        problems.error(
            "bad-url",
            f"base_url of environment {environment} holds a user name or password",
            at=at,
            hint="remove them: only `api_key` is sent",
        )
    elif parts.scheme == "http" and not _loopback(host):
        problems.warning(
            "clear-text",
            f"base_url of environment {environment} is http: the API key travels in clear text",
            at=at,
        )


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
