"""Load a workspace: its files, resolved for one environment, or all errors in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciler.errors import Diagnostic, DiagnosticCollector, InvalidConfiguration, ReconcilerError
from reconciler.model.address import Address
from reconciler.model.client_options import ClientOptions
from reconciler.model.connection import Connection, SecretSettings
from reconciler.model.kind import Kind
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.model.values import JSONObject
from reconciler.workspace.checks.consistency import check_consistency
from reconciler.workspace.checks.relations import ResolvedWorkspace
from reconciler.workspace.client_settings import client_options_of
from reconciler.workspace.declarations import (
    Declaration,
    Undetermined,
    declarations,
    documents,
    resource_globs,
    undetermined_in,
)
from reconciler.workspace.layers import EnvironmentContext, resolve
from reconciler.workspace.origins import variable_places
from reconciler.workspace.redact_lines import with_lines
from reconciler.workspace.references import References
from reconciler.workspace.snapshots import Snapshots
from reconciler.workspace.sources import (
    WORKSPACE_FILE,
    DraftSource,
    FolderSource,
    ReadSource,
    Source,
)
from reconciler.workspace.workspace_file import (
    Workspace,
    chosen_environment,
    connection_of,
    mark_prefix_of,
    missing_of,
    policy_of,
    read_workspace,
    variables_of,
)
from reconciler.workspace.yaml.document import Document, Places
from reconciler.workspace.yaml.loader import collector_paused, parse

__all__ = ["FolderSource", "Loaded", "Snapshots", "load", "load_all", "load_at"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A workspace for one environment.

    connection, missing
        Where the environment is. The connection is None if settings are `missing`.
    diagnostics
        Warnings. Errors raise.
    places, variables
        The places of fields and of variables.
    declared
        All resources, those of other environments included.
    defaults
        The defaults by kind, with their references filled in.
    globs
        The patterns of resource files.
    files
        The digests of the files that were read, by name.
    mark_prefix
        The configured prefix of references of applied commits, None for the default.
    client
        How requests are made.
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
    files: Mapping[str, str] = field(default_factory=dict)
    mark_prefix: str | None = None
    client: ClientOptions = field(default_factory=ClientOptions)

    def reachable(self) -> Connection:
        """Return the connection. Raises ReconcilerError that lists the missing settings."""
        if self.connection is None:
            raise ReconcilerError(
                f"environment {self.desired.environment} has no {', no '.join(self.missing)}",
                hint="add it to the environment in reconciler.yaml, or set the variable",
            )
        return self.connection


def load(
    folder: Path,
    *,
    kinds: Sequence[Kind],
    environment: str | None,
    environ: Mapping[str, str],
    strict: bool = False,
    drafts: Mapping[str, str] | None = None,
) -> Loaded:
    """Return the workspace in a folder for one environment.

    `drafts` are texts by path that replace or add files.

    Raises:
        InvalidConfiguration: with all diagnostics of the run.
        BadUsage: an unknown environment, or several and none selected.

    """
    problems = DiagnosticCollector(strict=strict)
    source = ReadSource(DraftSource(FolderSource(folder), drafts or {}))
    loader = _Loader(folder, source, kinds, environ, problems)
    with collector_paused():
        files = loader.read()
        loaded = None
        if files.workspace.value:
            name = chosen_environment(files.workspace, environment, environ)
            loaded = loader.resolve(files, name)
        diagnostics = with_lines(problems.in_order(), files.documents)
    if problems.failed or loaded is None:
        raise InvalidConfiguration(diagnostics)
    return replace(loaded, diagnostics=diagnostics, files=source.digests)


def load_all(
    folder: Path, *, kinds: Sequence[Kind], environ: Mapping[str, str], strict: bool = False
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the files over all environments.

    Unset environment variables are no errors, since they are set where the workspace is applied.
    """
    problems = DiagnosticCollector(strict=strict)
    loader = _Loader(folder, FolderSource(folder), kinds, environ, problems, assume_env=True)
    with collector_paused():
        files = loader.read()
        if files.workspace.value:
            names = files.workspace.environments
            for name in names or (chosen_environment(files.workspace, None, environ),):
                loader.resolve(files, name)
        return with_lines(problems.in_order(), files.documents)


def load_at(
    source: Source,
    *,
    kinds: Sequence[Kind],
    environment: str,
    environ: Mapping[str, str],
    snapshots: Snapshots,
) -> Desired:
    """Return the resources of an environment in the files of a commit.

    They are none without a workspace or the environment. Raises InvalidConfiguration.
    """
    empty = Desired(environment, "", "", {})
    if WORKSPACE_FILE not in source.names():
        return empty
    problems = DiagnosticCollector()
    loader = _Loader(Path(), source, kinds, environ, problems, True, snapshots)
    with collector_paused():
        files = loader.read()
        if environment not in (files.workspace.environments or (environment,)):
            return empty
        desired = loader.desired(files, loader.context(files, environment))
    if problems.failed:
        raise InvalidConfiguration(with_lines(problems.in_order(), files.documents))
    return desired


@dataclass(frozen=True, slots=True)
class _Files:
    """The parsed files of a workspace, before an environment is selected.

    `documents` are all of them by name, the workspace file included.
    """

    workspace: Workspace
    documents: Mapping[str, Document]
    declared: Mapping[Address, Declaration]
    undetermined: Undetermined


@dataclass(frozen=True, slots=True)
class _Loader:
    """The steps of loading.

    `assume_env` gives unset environment variables an unknown value. `snapshots` are what it shares
    with other commits.
    """

    folder: Path
    source: Source
    kinds: Sequence[Kind]
    environ: Mapping[str, str]
    problems: DiagnosticCollector
    assume_env: bool = False
    snapshots: Snapshots | None = None

    def read(self) -> _Files:
        """Return the parsed files and the resources that they declare."""
        parser = self.snapshots.parse if self.snapshots is not None else parse
        workspace = read_workspace(self.source, self.problems, parse=parser)
        files = []
        if workspace.value:
            files = documents(self.source, workspace, self.problems, parse=parser)
        declared = declarations(files, self.kinds, self.problems)
        failed = self.problems.failed
        undetermined = undetermined_in(files, declared, self.kinds) if failed else Undetermined()
        by_name = {document.file: document for document in (*files, workspace.document)}
        return _Files(workspace, by_name, declared, undetermined)

    def context(self, files: _Files, environment: str) -> EnvironmentContext:
        """Return what resolving the resources of one environment needs."""
        workspace = files.workspace
        policy = policy_of(workspace, environment, self.kinds)
        references = References(
            variables=variables_of(workspace, environment),
            environ=self.environ,
            source=self.source,
            problems=self.problems,
            places=variable_places(workspace, environment),
            allow_exec=policy.allow_exec_secrets,
            assume_env=self.assume_env,
            literals={} if policy.allow_literal_secrets else None,
        )
        return EnvironmentContext(
            environment=environment,
            workspace=workspace,
            kinds={kind.name: kind for kind in self.kinds},
            references=references,
            problems=self.problems,
            undetermined=files.undetermined.copied(),
            snapshots=self.snapshots,
        )

    def desired(self, files: _Files, context: EnvironmentContext) -> Desired:
        """Return the resources of one environment, checked. Errors go to `problems`."""
        desired = resolve(files.declared, context)
        check_consistency(ResolvedWorkspace(context, files.declared, desired))
        return desired

    def resolve(self, files: _Files, environment: str) -> Loaded:
        """Return the workspace for one environment. Errors go to `problems`."""
        workspace = files.workspace
        policy = policy_of(workspace, environment, self.kinds)
        context = self.context(files, environment)
        references = context.references
        connection = connection_of(workspace, environment, references)
        desired = self.desired(files, context)
        return Loaded(
            desired=replace(
                desired,
                base_url=connection.base_url if connection is not None else "",
                organization=connection.organization if connection is not None else "",
            ),
            policy=policy,
            connection=connection,
            secrets=SecretSettings(
                str(self.folder), references.allow_exec, references.literals or {}
            ),
            diagnostics=(),
            environments=workspace.environments,
            missing=tuple(missing_of(workspace, environment, self.environ)),
            places=context.places,
            variables=references.places,
            declared=files.declared,
            defaults=_defaults(workspace, self.kinds, references),
            globs=resource_globs(workspace),
            mark_prefix=mark_prefix_of(workspace, self.problems),
            client=client_options_of(workspace, environment, self.problems),
        )


def _defaults(
    workspace: Workspace, kinds: Sequence[Kind], references: References
) -> Mapping[str, JSONObject]:
    """Return the defaults of each kind, references filled in."""
    # An error in a default is reported by the resources that use it.
    silent = replace(references, problems=DiagnosticCollector())
    return {
        kind.name: silent.resolved(workspace.section("defaults", kind.name), workspace.mark)
        for kind in kinds
    }
