"""Load a workspace: its files, resolved for one environment, or all errors in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, InvalidConfiguration, Level
from reconciler.errors import LoadingStopped, ReconcilerError
from reconciler.files.consistency import (
    ResolvedWorkspace,
    check_consistency,
    check_shared,
)
from reconciler.files.layers import EnvironmentContext, resolve
from reconciler.files.references import References, key_variables, readable_of
from reconciler.files.resource_files import (
    Declaration,
    ResourceFiles,
    check_shared_keys,
    declarations,
    files_by_glob,
    resource_globs,
)
from reconciler.files.settings import (
    Deciding,
    Settings,
    point_at_variables,
    report_unused,
    variable_places,
)
from reconciler.files.sources import FolderSource, ReadSource, Source
from reconciler.files.workspace_file import (
    DEFAULTS,
    Workspace,
    chosen_environment,
    policy_of,
    read_workspace,
    variables_of,
)
from reconciler.files.yaml_construct import AMBIGUOUS
from reconciler.files.yaml_document import Document, Places
from reconciler.files.yaml_loader import ParsedFiles, collector_paused
from reconciler.kinds import all_kinds
from reconciler.model.kind import containers
from reconciler.model.resource import Desired
from reconciler.model.settings import UNKNOWN_VALUE, Connection, Readable, SecretSettings
from reconciler.model.values import Address, JSONObject, mapping_of
from reconciler.paths import WORKSPACE_FILE

if TYPE_CHECKING:
    from reconciler.files.trust import TrustedTip

LENIENT_AT_COMMITS = AMBIGUOUS | {
    *("bad-url", "misnamed-workspace", "misspelt-value", "no-files"),
    UNKNOWN_VALUE,
}
"""Errors that are warnings at a commit: a change that corrects them can be planned."""


class Loaded(Settings, frozen=True, kw_only=True):
    """A workspace for one environment, with its settings.

    merge_hint
        How to let the own policy apply.
    diagnostics
        Warnings. Errors raise.
    places, variables
        The places of fields and of variables.
    declared
        All resources, those of other environments included.
    defaults
        The defaults of the workspace file and of each file that has its own over them, by file and
        kind, with their references filled in.
    globs
        The patterns of resource files.
    files
        The ids of the contents of the files that were read, by name.
    parsed
        The parsed files.
    skipped
        The files that a pattern selects and that are not resource files.
    """

    desired: Desired
    secrets: SecretSettings
    diagnostics: tuple[Diagnostic, ...]
    environments: tuple[str, ...]
    places: Mapping[Address, Places]
    variables: Places
    declared: Mapping[Address, Declaration]
    defaults: Mapping[str, Mapping[str, JSONObject]]
    globs: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    parsed: ParsedFiles = field(default_factory=ParsedFiles)
    skipped: frozenset[str] = frozenset()
    merge_hint: str = ""

    def defaults_in(self, file: str) -> Mapping[str, JSONObject]:
        """Return the defaults by kind for the resources of a file, which may not exist yet."""
        return self.defaults.get(file) or self.defaults[WORKSPACE_FILE]

    def __repr__(self) -> str:
        # The declarations and the parsed files may hold literal secrets.
        return f"Loaded(environment={self.desired.environment!r})"

    @property
    def connection(self) -> Connection | None:
        """The connection, None without one."""
        return self.configured.connection

    def reachable(self) -> Connection:
        """Return the connection. Raises ReconcilerError that says why there is none."""
        if self.connection is None:
            raise ReconcilerError(self.configured.message, hint=self.configured.hint)
        return self.connection


class LoadOptions(Struct, frozen=True):
    """How files are loaded.

    strict, lenient
        Whether warnings are errors, and the codes of errors that are warnings.
    drafts
        Texts by path that replace or add files.
    trusted_tip
        The tip of the trusted branch, whose workspace file decides the connection, the policy and
        what may be read.
    parsed
        Files to share with other environments.
    """

    strict: bool = False
    lenient: frozenset[str] = frozenset()
    drafts: Mapping[str, str] = field(default_factory=dict)
    trusted_tip: TrustedTip | None = None
    parsed: ParsedFiles = field(default_factory=ParsedFiles)


def load(
    folder: Path,
    *,
    environment: str | None,
    environ: Mapping[str, str],
    options: LoadOptions | None = None,
) -> Loaded:
    """Return the workspace in a folder for one environment.

    Raises:
        InvalidConfiguration: with all diagnostics of the run.
        BadUsage: an unknown environment, or several and none selected.
        GitUnavailable: the trusted branch cannot be read, or its files have errors.

    """
    how = options or LoadOptions()
    problems = DiagnosticCollector(strict=how.strict, lenient=how.lenient)
    on_disk = FolderSource(folder, how.drafts)
    source = ReadSource(on_disk)
    loader = _Loader(folder, source, environ, problems, tip=how.trusted_tip, parsed=how.parsed)
    loads, diagnostics = loader.run(lambda own: (chosen_environment(own, environment, environ),))
    globs = loads[0].globs if loads and not problems.failed else ()
    on_disk.check_unchanged(files_by_glob(on_disk, globs).values())
    if problems.failed or not loads:
        raise InvalidConfiguration(diagnostics)
    return replace(loads[0], diagnostics=diagnostics, files=source.contents)


def load_all(
    folder: Path,
    *,
    environ: Mapping[str, str],
    strict: bool = False,
    drafts: Mapping[str, str] | None = None,
    find_tip: Callable[[], TrustedTip | None] = lambda: None,
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics of the files over all environments.

    `drafts` are texts by path that replace or add files. `find_tip` returns the tip of the trusted
    branch. Unset environment variables are no errors, since they are set where the workspace is
    applied. Raises GitUnavailable as `load` does.
    """
    problems = DiagnosticCollector(strict=strict)
    source = FolderSource(folder, drafts or {})
    loader = _Loader(folder, source, environ, problems, assume_env=True, find_tip=find_tip)
    _, diagnostics = loader.run(
        lambda own: own.environments or (chosen_environment(own, None, environ),)
    )
    return diagnostics


def load_at(
    source: Source,
    *,
    environment: str,
    environ: Mapping[str, str],
    parsed: ParsedFiles,
    trusted: Readable,
    wanted: Collection[Address] | None = None,
) -> Desired:
    """Return the resources of an environment in the files of a commit.

    `trusted` is what references may read. `wanted` are the only resources to resolve, besides what
    contains others; then the others are not checked.
    They are none without a workspace or the environment. Raises InvalidConfiguration.
    """
    empty = Desired(environment, "", "", {})
    if WORKSPACE_FILE not in source.names():
        return empty
    problems = DiagnosticCollector(lenient=LENIENT_AT_COMMITS)
    loader = _Loader(
        Path(), source, environ, problems, assume_env=True, of_commit=True, parsed=parsed
    )
    with collector_paused():
        files = loader.read()
        if environment not in (files.workspace.environments or (environment,)):
            return empty
        context = loader.context(files, environment, trusted)
        declared = files.declared
        if wanted is not None:
            above = containers(all_kinds())
            own = (at for at in declared if at in wanted or at.kind in above)
            declared = {at: declared[at] for at in own}
        desired = resolve(declared, context)
        if wanted is None:
            check_consistency(ResolvedWorkspace(context, declared, desired))
    if problems.failed:
        raise InvalidConfiguration(with_lines(problems.in_order(), files.documents))
    return desired


class _Files(Struct, frozen=True):
    """The parsed files of a workspace, before an environment is selected.

    `documents` are all by name, the workspace file included, `skipped` others that are selected.
    `incomplete`: because of an error, not all resources are known.
    """

    workspace: Workspace
    documents: Mapping[str, Document]
    declared: Mapping[Address, Declaration]
    incomplete: bool
    skipped: frozenset[str]


class _Loader(Struct, frozen=True):
    """The steps of loading.

    `assume_env` gives unset environment variables an unknown value. `of_commit`: the files are
    those of a commit. `tip` is that of the trusted branch for settings, and `find_tip` returns it
    for ignored warnings.
    """

    folder: Path
    source: Source
    environ: Mapping[str, str]
    problems: DiagnosticCollector
    assume_env: bool = False
    of_commit: bool = False
    tip: TrustedTip | None = None
    find_tip: Callable[[], TrustedTip | None] = lambda: None
    parsed: ParsedFiles = field(default_factory=ParsedFiles)

    def run(
        self, environments: Callable[[Workspace], tuple[str, ...]]
    ) -> tuple[list[Loaded], tuple[Diagnostic, ...]]:
        """Return the workspace for some of its environments, and all diagnostics.

        If loading stopped, environments are missing, and the last diagnostic is an error.
        """
        documents: Mapping[str, Document] = {}
        names: tuple[str, ...] = ()
        loads: list[Loaded] = []
        lenient = self.problems.lenient
        with collector_paused():
            with suppress(LoadingStopped):
                files = self.read()
                documents = files.documents
                names = environments(files.workspace) if files.workspace.value else ()
                for name in names:
                    self.problems.environment = name if len(names) > 1 else ""
                    self.problems.lenient = lenient
                    loads.append(self.resolve(files, name))
                self.problems.environment = ""
                if len(names) > 1:
                    check_shared(files.workspace, [item.desired for item in loads], self.problems)
                # An error may hide the use of a variable.
                if names and not self.problems.failed:
                    report_unused(files.workspace, documents.values(), self.problems)
            return loads, with_lines(self.problems.in_order(names), documents)

    def read(self) -> _Files:
        """Return the parsed files and the resources that they declare."""
        parser = self.parsed.parse
        workspace = read_workspace(self.source, self.problems, parse=parser, folder=self.folder)
        self._ignore_warnings(workspace)
        before = len(self.problems.diagnostics)
        resources = ResourceFiles(self.source, workspace, self.problems, parser)
        files = resources.documents() if workspace.value else []
        if not self.of_commit:
            resources.check_nested()
        resources.note_skipped()
        declared = declarations(files, self.problems)
        new = self.problems.diagnostics[before:]
        incomplete = any(problem.level is Level.ERROR for problem in new)
        for document in files:
            check_shared_keys(document, self.problems)
        by_name = {document.file: document for document in (*files, workspace.document)}
        return _Files(workspace, by_name, declared, incomplete, frozenset(resources.skipped))

    def _ignore_warnings(self, workspace: Workspace) -> None:
        """Ignore the warnings that the trusted workspace file ignores, too."""
        ignored = workspace.ignored_warnings
        if not ignored:
            return
        tip = self.tip or self.find_tip()
        if tip is not None:
            trusted = tip.workspace(workspace, self.source.read(WORKSPACE_FILE)).ignored_warnings
            if later := sorted(ignored - trusted):
                text = f"`ignore_warnings` has no effect before the merge: {', '.join(later)}"
                at = workspace.mark(("ignore_warnings",))
                hint = tip.fix or f"merge it to {tip.name} first"
                self.problems.note("untrusted-setting", text, at=at, hint=hint)
            ignored &= trusted
        self.problems.ignored = ignored

    def context(self, files: _Files, environment: str, trusted: Readable) -> EnvironmentContext:
        """Return what resolving the resources of one environment needs."""
        workspace = files.workspace
        policy = policy_of(workspace, environment)
        self.problems.lenient |= {UNKNOWN_VALUE}.intersection(policy.attempt)
        declared = readable_of(workspace.value, allow_exec=policy.allow_exec_secrets)
        references = References(
            variables=variables_of(workspace, environment),
            environ=self.environ,
            read=self.source.read,
            problems=self.problems,
            places=variable_places(workspace, environment),
            allow_exec=policy.allow_exec_secrets,
            assume_env=self.assume_env,
            literals={} if policy.allow_literal_secrets else None,
            declared=declared,
            trusted=trusted,
            key_variables=key_variables(workspace.value),
            of_commit=self.of_commit,
        )
        return EnvironmentContext(
            environment=environment,
            workspace=workspace,
            references=references,
            problems=self.problems,
            documents=files.documents.values(),
            incomplete=files.incomplete,
        )

    def resolve(self, files: _Files, environment: str) -> Loaded:
        """Return the workspace for one environment. Errors go to `problems`."""
        since = len(self.problems.diagnostics)
        workspace = files.workspace
        trusted = workspace
        if self.tip is not None:
            trusted = self.tip.workspace(workspace, self.source.read(WORKSPACE_FILE))
        deciding = Deciding(workspace, trusted, self.tip, environment)
        context = self.context(files, environment, deciding.readable)
        references = context.references
        decided = deciding.settings(references)
        desired = resolve(files.declared, context)
        check_consistency(ResolvedWorkspace(context, files.declared, desired))
        connection = decided.configured.connection
        if connection is not None:
            desired = desired.of_service(connection.base_url, connection.organization)
        settings = deciding.after_merge(decided, desired, references)
        point_at_variables(self.problems, since, files.documents, references.places)
        return Loaded(
            **asdict(settings),
            desired=desired,
            secrets=SecretSettings(
                str(self.folder),
                settings.policy.allow_exec_secrets,
                {**(references.literals or {}), **settings.literals},
                references.trusted,
            ),
            diagnostics=(),
            environments=workspace.environments,
            places=context.places,
            variables=references.places,
            declared=files.declared,
            defaults=_defaults(context),
            globs=resource_globs(workspace),
            parsed=self.parsed,
            skipped=files.skipped,
            merge_hint=deciding.merge_hint,
        )


def _defaults(context: EnvironmentContext) -> Mapping[str, Mapping[str, JSONObject]]:
    """Return the defaults of each kind, references filled in, by the file that has some."""
    # An error in a default is reported by the resources that use it.
    silent = replace(context.references, problems=DiagnosticCollector())
    return {
        document.file: {
            kind.name: silent.typed(
                kind.name, context.layers_of(kind).defaults(document).values, document.mark
            )
            for kind in all_kinds()
        }
        for document in context.documents
        if document.file == WORKSPACE_FILE or DEFAULTS in mapping_of(document.value)
    }


def with_lines(
    diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]
) -> tuple[Diagnostic, ...]:
    """Return the diagnostics with the lines of the files, without secrets."""
    if not diagnostics:
        return ()
    from reconciler.files import source_lines

    return source_lines.with_lines(diagnostics, documents)
