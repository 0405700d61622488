"""Files to values: the workspace, resolved for one environment, or everything wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.errors import Diagnostic, DiagnosticCollector, InvalidConfiguration, ReconcilerError
from reconciler.model.address import Address
from reconciler.model.connection import Connection, SecretSettings
from reconciler.model.kind import Kind
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.model.values import JSONObject, SecretValue
from reconciler.workspace.checks.consistency import check_consistency
from reconciler.workspace.checks.relations import ResolvedWorkspace
from reconciler.workspace.declarations import (
    Declaration,
    Doubts,
    declarations,
    documents,
    doubts,
    resource_globs,
)
from reconciler.workspace.digest import digest_of
from reconciler.workspace.git_base import GitSource, base_commit
from reconciler.workspace.layers import Resolving, resolve
from reconciler.workspace.origins import variable_places
from reconciler.workspace.redact_lines import with_lines
from reconciler.workspace.references import References
from reconciler.workspace.sources import WORKSPACE_FILE, DraftSource, FolderSource, Source
from reconciler.workspace.workspace_file import (
    Workspace,
    chosen_environment,
    connection_of,
    missing_of,
    policy_of,
    read_workspace,
    variables_of,
)
from reconciler.workspace.yaml.document import Document, Places
from reconciler.workspace.yaml.loader import collector_paused

__all__ = ["FolderSource", "GitSource", "Loaded", "base_commit", "load", "load_all", "load_at"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workspace for one environment.

    `connection` is None where the environment lacks what is needed to reach it; `missing` says
    what. `diagnostics` are warnings: errors raise. `places` are those of fields, and
    `variables` those of variables. `declared` holds what other environments have, too, `defaults`
    the filled-in defaults by kind, `globs` which files hold resources.
    """

    desired: Desired
    policy: Policy
    connection: Connection | None
    secrets: SecretSettings
    diagnostics: tuple[Diagnostic, ...]
    environments: tuple[str, ...]
    missing: tuple[str, ...]
    places: Mapping[Address, Places]
    variables: Places
    declared: Mapping[Address, Declaration] = field(repr=False)  # may hold literal secrets
    defaults: Mapping[str, JSONObject]
    globs: tuple[str, ...]

    def reachable(self) -> Connection:
        """The connection. Raises ReconcilerError that says what is missing."""
        if self.connection is None:
            raise ReconcilerError(
                f"environment {self.desired.environment} has no {', no '.join(self.missing)}",
                hint="add it to the environment in reconciler.yaml, or set the variable",
            )
        return self.connection


@dataclass(frozen=True, slots=True)
class _Request:
    """From where, for which kinds and in which surroundings a workspace is read.

    `assume_env` fills environment variables that are not set with a placeholder.
    """

    folder: Path
    source: Source
    kinds: Sequence[Kind]
    environ: Mapping[str, str]
    assume_env: bool = False


@dataclass(frozen=True, slots=True)
class _Files:
    """A workspace that is read and parsed, before any environment is looked at."""

    workspace: Workspace
    documents: tuple[Document, ...]
    declared: Mapping[Address, Declaration]
    doubts: Doubts

    def by_name(self) -> Mapping[str, Document]:
        """All documents, the workspace file included."""
        documents = {document.file: document for document in self.documents}
        return {**documents, WORKSPACE_FILE: self.workspace.document}


def load(
    folder: Path,
    *,
    kinds: Sequence[Kind],
    environment: str | None,
    environ: Mapping[str, str],
    strict: bool = False,
    drafts: Mapping[str, str] | None = None,
) -> Loaded:
    """The workspace in a folder for one environment.

    `drafts` are texts to read as files, by path; a file of that path is as it will be then.

    Raises:
        InvalidConfiguration: with every diagnostic of the run.
        BadUsage: no such environment, or several and none named.

    """
    problems = DiagnosticCollector(strict=strict)
    source: Source = FolderSource(folder)
    if drafts is not None:
        source = DraftSource(source, drafts)
    with collector_paused():
        files = _read(source, kinds, problems)
        loaded = None
        if files.workspace.value:
            name = chosen_environment(files.workspace, environment, environ)
            request = _Request(folder, source, kinds, environ)
            loaded = _resolved(request, files, name, problems)
        diagnostics = with_lines(problems.in_order(), files.by_name())
    if problems.failed or loaded is None:
        raise InvalidConfiguration(diagnostics)
    return replace(loaded, diagnostics=diagnostics)


def load_all(
    folder: Path, *, kinds: Sequence[Kind], environ: Mapping[str, str], strict: bool = False
) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of the files that need no network, over all environments.

    Environment variables that are not set are no problem here: where a workspace is checked and
    where it is applied are different places.
    """
    problems = DiagnosticCollector(strict=strict)
    source = FolderSource(folder)
    with collector_paused():
        files = _read(source, kinds, problems)
        if files.workspace.value:
            names = files.workspace.environments
            names = names or (chosen_environment(files.workspace, None, environ),)
            request = _Request(folder, source, kinds, environ, assume_env=True)
            for name in names:
                _resolved(request, files, name, problems)
        return with_lines(problems.in_order(), files.by_name())


def load_at(
    folder: Path,
    commit: str,
    *,
    kinds: Sequence[Kind],
    environment: str,
    environ: Mapping[str, str],
) -> Desired | None:
    """The resources of an environment at a git commit; None if there was no such workspace.

    Errors in the files of that commit are not reported: there is no base then.
    Raises GitUnavailable.
    """
    problems = DiagnosticCollector()
    source = GitSource(folder, commit)
    if WORKSPACE_FILE not in source.names():
        return None
    with collector_paused():
        files = _read(source, kinds, problems)
        if environment not in (files.workspace.environments or (environment,)):
            return None
        request = _Request(folder, source, kinds, environ, assume_env=True)
        loaded = _resolved(request, files, environment, problems)
    return loaded.desired if not problems.failed else None


def _read(source: Source, kinds: Sequence[Kind], problems: DiagnosticCollector) -> _Files:
    workspace = read_workspace(source, problems)
    files = documents(source, workspace, problems) if workspace.value else []
    declared = declarations(files, kinds, problems)
    lost = doubts(files, declared, kinds) if problems.failed else Doubts()
    return _Files(workspace, tuple(files), declared, lost)


def _resolved(
    request: _Request, files: _Files, environment: str, problems: DiagnosticCollector
) -> Loaded:
    workspace = files.workspace
    policy = policy_of(workspace, environment, request.kinds)
    variables = variable_places(workspace, environment)
    references = References(
        variables=variables_of(workspace, environment),
        environ=request.environ,
        source=request.source,
        problems=problems,
        places=variables,
        allow_exec=policy.allow_exec_secrets,
        assume_env=request.assume_env,
    )
    literals: dict[str, SecretValue] = {}
    connection = connection_of(
        workspace,
        environment,
        references,
        literals=literals if policy.allow_literal_secrets else None,
    )
    given = Resolving(
        environment=environment,
        workspace=workspace,
        kinds=request.kinds,
        references=references,
        problems=problems,
        doubts=files.doubts.copied(),
        literals=literals,
        allow_literals=policy.allow_literal_secrets,
    )
    desired = resolve(files.declared, given)
    kinds = {kind.name: kind for kind in request.kinds}
    here = ResolvedWorkspace(workspace, kinds, files.declared, desired, given.places, given.doubts)
    check_consistency(here, problems)
    return Loaded(
        desired=_located(desired, policy, connection),
        policy=policy,
        connection=connection,
        secrets=SecretSettings(str(request.folder), references.allow_exec, literals),
        diagnostics=(),
        environments=workspace.environments,
        missing=tuple(missing_of(workspace, environment, request.environ)),
        places=given.places,
        variables=variables,
        declared=files.declared,
        defaults=_defaults(workspace, request.kinds, references),
        globs=resource_globs(workspace),
    )


def _located(desired: Desired, policy: Policy, connection: Connection | None) -> Desired:
    """Return the resources with the place that they are for, and their digest."""
    return replace(
        desired,
        base_url=connection.base_url if connection is not None else "",
        organization=connection.organization if connection is not None else "",
        digest=digest_of(desired, policy, connection),
    )


def _defaults(
    workspace: Workspace, kinds: Sequence[Kind], references: References
) -> Mapping[str, JSONObject]:
    """Return the defaults of each kind, references filled in."""
    # An error in a default is reported by the resource that takes it.
    silent = replace(references, problems=DiagnosticCollector())
    return {
        kind.name: silent.resolved(
            dict(workspace.section("defaults", kind.name)), lambda _: workspace.mark(())
        )
        for kind in kinds
    }
