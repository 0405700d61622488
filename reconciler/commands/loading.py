"""Load a workspace for one environment. Nothing that a network needs is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from reconciler.commands.connecting import WorkspaceFiles
from reconciler.errors import FilesChanged, GitUnavailable
from reconciler.files.loading import Loaded, LoadOptions, load
from reconciler.files.yaml.loader import ParsedFiles

if TYPE_CHECKING:
    from reconciler.files.trust import TrustedTip
    from reconciler.git.repository import Repository


_MOST_READINGS = 3


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
