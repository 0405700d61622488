"""The workspace that options name: its files, the process that uses it, and its environments."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import (
    Diagnostic,
    DiagnosticCollector,
    InvalidConfiguration,
    OfEnvironment,
)
from reconciler.errors import (
    BadUsage,
    FilesChanged,
    GitUnavailable,
    Interrupted,
    OutputOfWorkspace,
    ReconcilerError,
)
from reconciler.model.settings import UNKNOWN_VALUE, ClientOptions
from reconciler.model.text import IMPLICIT_ENVIRONMENT, choice, fits_any, printable
from reconciler.paths import YAML_SUFFIXES, is_own

if TYPE_CHECKING:
    # The help and the completion of a command need none of these.
    from reconciler.files.loading import Loaded
    from reconciler.files.trust import TrustedTip
    from reconciler.files.yaml_loader import ParsedFiles
    from reconciler.git.repository import Repository
    from reconciler.model.event import Event, Listener
    from reconciler.model.redaction import Mask
    from reconciler.service.pace import ClientSettings, Stop

_R = TypeVar("_R")
_MOST_READINGS = 3
_AT_ONCE = 4
"""Environments at once. Each makes as many requests at once as its settings say."""


def _now() -> datetime:
    return datetime.now(tz=UTC)  # noqa: TID251 - the only clock of the program


def _client() -> ClientSettings:
    from reconciler.service.pace import ClientSettings

    return ClientSettings()


def _stop() -> Stop:
    from reconciler.service.pace import Stop

    return Stop()


class Runtime(Struct, frozen=True):
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `listen` is called with progress, requests and changes.
    `interactive`: the input is a terminal, so a person runs it. `parsed` are files that several
    environments of a run share. `masks` are those of the sessions so far. `left_out` are the errors
    of named resources without a live object, by environment and message.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    now: Callable[[], datetime] = _now
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=_stop)
    client: ClientSettings = field(default_factory=_client)
    interactive: bool = False
    parsed: ParsedFiles | None = None
    masks: list[Mask] = field(default_factory=list)
    left_out: dict[tuple[str, str], ReconcilerError] = field(default_factory=dict)

    def sharing(self) -> Runtime:
        """Return the runtime for several environments: they parse a file once."""
        from reconciler.files.yaml_loader import ParsedFiles

        return replace(self, parsed=ParsedFiles())

    def mask(self, text: str) -> str:
        """Return a text with the known secrets of all sessions masked."""
        for mask in self.masks:
            text = mask(text)
        return text


class WorkspaceFiles(Struct, frozen=True):
    """The files of one environment of a workspace.

    folder
        The folder with reconciler.yaml.
    environment
        Its name, None for the only one or `default:` of the workspace.
    strict
        Whether warnings about the files are errors.
    trust_workspace
        Whether the files decide where the API key is sent and what is allowed, also without a
        terminal, instead of the trusted branch and the variables (docs/security.md).
    lenient
        The codes of errors that are warnings for a use case: most compare with live state, which
        may have a value that seems misspelt.
    """

    folder: Path
    environment: str | None = None
    strict: bool = False
    trust_workspace: bool = False
    lenient: frozenset[str] = frozenset({UNKNOWN_VALUE})


class Workspace(WorkspaceFiles, frozen=True):
    """One environment of a workspace, and the process that uses it.

    `client` is how requests are made. It takes precedence over the files. `outputs` are files that
    are written, by their options: none may be one that the workspace loads.
    """

    client: ClientOptions = field(default_factory=ClientOptions)
    runtime: Runtime = field(default_factory=Runtime)
    outputs: Mapping[str, Path] = {}

    def masked(self, value: _R) -> _R:
        """Return a value with the known secrets of the sessions so far masked."""
        from reconciler.model.redaction import masked_in

        return masked_in(value, self.runtime.mask)


class Reported(Struct, Generic[_R], frozen=True):
    """A report, warnings about the files, and the number of calls, None if that is not shown."""

    report: _R
    diagnostics: tuple[Diagnostic, ...] = ()
    calls: int | None = None


def load_workspace(
    options: WorkspaceFiles,
    environ: Mapping[str, str],
    *,
    interactive: bool,
    drafts: Mapping[str, str] | None = None,
    parsed: ParsedFiles | None = None,
) -> tuple[Loaded, TrustedTip | None, str | None]:
    """Return the workspace for one environment, the trusted tip that decided with it, and HEAD.

    `interactive`: a person runs the command. `drafts` are texts that replace or add files, by path.
    `parsed` are files to share with other environments. If the files or HEAD change meanwhile, as
    when another branch is checked out, the files are loaded again.

    Raises InvalidConfiguration with all diagnostics, FilesChanged, GitUnavailable.
    """
    from reconciler.files.loading import LoadOptions, load
    from reconciler.files.yaml_loader import ParsedFiles
    from reconciler.git.repository import Repository

    tip = deciding_tip(options, environ, interactive=interactive)
    repository = Repository.containing(options.folder)
    kept = ParsedFiles() if parsed is None else parsed
    how = LoadOptions(options.strict, options.lenient, drafts or {}, tip, kept)
    for _ in range(_MOST_READINGS):
        head = _head(repository)
        with suppress(FilesChanged):
            loaded = load(
                options.folder,
                environment=options.environment,
                environ=environ,
                options=how,
            )
            if _head(repository) == head:
                return loaded, tip, head
    hint = "run it again when git and editors have finished"
    raise FilesChanged("the files or HEAD changed while the files were loaded", hint=hint)


def check_outputs(workspace: Workspace, loaded: Collection[str] = ()) -> None:
    """Raise OutputOfWorkspace for an output that is a YAML file of the workspace, or was loaded."""
    root = Path(os.path.realpath(workspace.folder))
    files = {os.path.realpath(root / name) for name in loaded if workspace.outputs}
    for option, path in workspace.outputs.items():
        place = Path(os.path.realpath(path))
        name = place.relative_to(root).as_posix() if place.is_relative_to(root) else ""
        is_yaml = name.lower().endswith(YAML_SUFFIXES) and is_own(name, ())
        if is_yaml or str(place) in files:
            raise OutputOfWorkspace(
                f"{option} {printable(str(path))} is a file that the workspace loads",
                hint="name a file outside of the workspace, or one that it does not load: *.json",
            )


def deciding_tip(
    options: WorkspaceFiles, environ: Mapping[str, str], *, interactive: bool
) -> TrustedTip | None:
    """Return the tip of the trusted branch, None where the loaded files decide themselves."""
    from reconciler.files.trust import trusted_tip

    if options.trust_workspace:
        return None
    return trusted_tip(options.folder, environ, interactive=interactive)


def _head(repository: Repository | None) -> str | None:
    """Return the commit of HEAD, None if it is unknown: git may not be installed."""
    with suppress(GitUnavailable):
        return repository.commit("HEAD") if repository is not None else None
    return None


async def in_each(
    work: Callable[[Workspace], Awaitable[_R]], workspace: Workspace, names: Sequence[str]
) -> tuple[OfEnvironment[_R], ...]:
    """Run a use case in the environments that names and globs select, in the order of the file.

    One that fails does not stop the others. Requests with one key or organization share their rate
    limit.

    Raises BadUsage for a name that selects nothing, InvalidConfiguration, Interrupted,
    OutputOfWorkspace.
    """
    from asyncio import Semaphore

    from reconciler.service.pace import together

    turns, sharing = Semaphore(_AT_ONCE), workspace.runtime.sharing()

    async def done(environment: str) -> OfEnvironment[_R]:
        async with turns:
            runtime = replace(sharing, listen=_naming(environment, sharing.listen))
            try:
                result = await work(replace(workspace, environment=environment, runtime=runtime))
            except (Interrupted, OutputOfWorkspace):
                raise
            except ReconcilerError as error:
                return OfEnvironment(environment, error=error, exit_code=error.exit_code)
            return OfEnvironment(environment, result)

    results = await together(map(done, _selected(workspace.folder, names)))
    # One may have read a secret of another.
    return workspace.masked(tuple(results))


def _naming(environment: str, listen: Listener) -> Listener:
    """Return a listener that names the environment in what is read and noted."""
    from reconciler.model.event import Noted, Reading

    def named(event: Event) -> None:
        match event:
            case Reading(collection):
                listen(replace(event, collection=f"{environment}: {collection}"))
            case Noted(message):
                listen(replace(event, message=f"{environment}: {message}"))
            case _:
                listen(event)

    return named


def _selected(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the environments that names and globs select. Raises what `in_each` raises."""
    from reconciler.files.loading import with_lines
    from reconciler.files.sources import FolderSource
    from reconciler.files.workspace_file import read_workspace

    problems = DiagnosticCollector()
    workspace = read_workspace(FolderSource(folder), problems, folder=folder)
    if problems.failed:
        documents = {workspace.document.file: workspace.document}
        raise InvalidConfiguration(with_lines(problems.in_order(), documents))
    known = workspace.environments or (IMPLICIT_ENVIRONMENT,)
    globs = [name for name in names if name not in known]
    for glob in globs:
        if not any(fits_any(environment, (glob,)) for environment in known):
            hint = choice(glob, known, "environments")
            raise BadUsage(f"unknown environment '{glob}'", hint=hint)
    yield from (name for name in known if name in names or fits_any(name, globs))
