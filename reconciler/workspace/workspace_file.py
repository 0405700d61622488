"""Read `reconciler.yaml`: environments, variables, defaults and policy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os.path import normpath
from pathlib import Path as FolderPath
from typing import Any

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import BadUsage, UnreadableFile
from reconciler.model.address import choice
from reconciler.model.kind import Kind
from reconciler.model.policy import RULE_PREFIX, Policy
from reconciler.model.values import JSON, Path, value_at
from reconciler.workspace.checks.rules import check_rules
from reconciler.workspace.limits import MAX_ENVIRONMENTS
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.sources import WORKSPACE_FILE, Source, workspace_above
from reconciler.workspace.yaml.document import Document, Unknown
from reconciler.workspace.yaml.loader import Parse, parse

IMPLICIT_ENVIRONMENT = "default"
_MISNAMED = "reconciler.yml"

_REF_PREFIX = re.compile(
    # Some file systems do not distinguish case.
    r"(?!refs/(?i:heads|tags|remotes|reconciler-local)(?:/|$))refs(/[A-Za-z0-9_][A-Za-z0-9_-]*)+"
)
_BRANCH = re.compile(r"(?!refs/)\w[\w-]*([./]\w[\w-]*)*", re.ASCII)


class Workspace(Struct, frozen=True):
    """The workspace file, parsed and checked. `value` is empty if it cannot be used."""

    document: Document
    value: Mapping[str, Any]

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments, in the order of the file."""
        return tuple(self.section("environments"))

    @property
    def policies(self) -> tuple[tuple[str, ...], ...]:
        """The paths of all policies: that of the workspace, then those of the environments."""
        names = self.environments
        return (("policy",), *(("environments", name, "policy") for name in names))

    def section(self, *path: str) -> Mapping[str, Any]:
        """Return the mapping at a path, empty if there is none."""
        section = value_at(self.value, path)
        return section if isinstance(section, dict) else {}

    def mark(self, path: Path, part: str | None = None) -> Mark:
        """Return the place of a value, or of a reference in its text."""
        return self.document.mark(path, part)


def read_workspace(
    source: Source,
    problems: DiagnosticCollector,
    *,
    parse: Parse = parse,
    folder: FolderPath | None = None,
) -> Workspace:
    """Return the workspace of a source. A missing file is reported.

    `folder` is where to look for the one that was probably intended.
    """
    try:
        raw = source.read(WORKSPACE_FILE)
    except UnreadableFile as error:
        problems.error(error.code, error.message, at=Mark(WORKSPACE_FILE))
        return Workspace(Document(WORKSPACE_FILE, unread=True), {})
    if raw is None:
        hint = _where_it_is(source, folder) if folder is not None else None
        problems.error("no-workspace", f"no {WORKSPACE_FILE} in this folder", hint=hint)
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
    workspace = Workspace(document, document.value)
    for path in workspace.policies:
        check_rules(workspace.section(*path, "rules"), context, (*path, "rules"))
    if (number := len(workspace.environments)) > MAX_ENVIRONMENTS:
        problems.error(
            "workspace-too-large",
            f"{number:,} environments: the limit is {MAX_ENVIRONMENTS}",
            at=document.mark(("environments",)),
        )
        return Workspace(document, {})
    return workspace


def _where_it_is(source: Source, folder: FolderPath) -> str | None:
    with suppress(UnreadableFile):
        if source.read(_MISNAMED) is not None:
            return f"rename {_MISNAMED} to {WORKSPACE_FILE}"
    above = workspace_above(folder)
    return f"use -C {normpath(folder / above)}: it has one" if above is not None else None


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
    """Return the policy of the workspace, that of the environment over it.

    Keys replace each other. Rules do by id.
    """
    merged: dict[str, JSON] = {}
    rules: dict[str, JSON] = {}
    marks: dict[str, Mark] = {}
    for path in (("policy",), ("environments", environment, "policy")):
        section = workspace.section(*path)
        merged |= section
        marks |= {name: workspace.mark((*path, name)) for name in section}
        own = workspace.section(*path, "rules")
        rules |= own
        marks |= {
            f"{RULE_PREFIX}{name}": workspace.document.key_mark((*path, "rules", name))
            for name in own
        }
    switches = {
        kind.name: kind.deletion_switch for kind in kinds if kind.deletion_switch is not None
    }
    return Policy.read({**merged, "rules": rules}, switches=switches, marks=marks)


def mark_prefix_of(workspace: Workspace, problems: DiagnosticCollector) -> str | None:
    """Return the prefix of references of applied commits, None for the default."""
    return _git_name(workspace, ("mark", "ref"), _REF_PREFIX, problems)


def branch_of(workspace: Workspace, environment: str, problems: DiagnosticCollector) -> str | None:
    """Return the branch that an environment is deployed from, None for the default branch."""
    return _git_name(workspace, ("environments", environment, "branch"), _BRANCH, problems)


def _git_name(
    workspace: Workspace, path: Path, pattern: re.Pattern[str], problems: DiagnosticCollector
) -> str | None:
    name = value_at(workspace.value, path)
    if not isinstance(name, str) or isinstance(name, Unknown):
        return None
    if not pattern.fullmatch(name):
        what = "name of a git branch" if pattern is _BRANCH else "prefix of git references"
        problems.error("bad-ref", f"invalid {what} '{name}'", at=workspace.mark(path))
    return name


def declares(workspace: Workspace, environment: str) -> bool:
    """Return whether a workspace file declares an environment."""
    return bool(workspace.value) and environment in (workspace.environments or (environment,))
