"""Load the workspace that the options of a command name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from reconciler.commands.options import WorkspaceOptions
from reconciler.kinds import all_kinds
from reconciler.workspace.loading import Loaded, load

if TYPE_CHECKING:
    from reconciler.workspace.parsed_files import ParsedFiles
    from reconciler.workspace.trust import TrustedBase


def load_workspace(
    options: WorkspaceOptions,
    environ: Mapping[str, str],
    *,
    interactive: bool,
    drafts: Mapping[str, str] | None = None,
    parsed: ParsedFiles | None = None,
) -> tuple[Loaded, TrustedBase | None]:
    """Return the workspace for one environment, and the trusted base that decided with it.

    `interactive`: a person runs the command. `drafts` are texts that replace or add files, by path.
    `parsed` are files to share with other environments.

    Raises InvalidConfiguration with all diagnostics, GitUnavailable.
    """
    from reconciler.workspace.trust import trusted_base

    base = None
    if not options.trust_workspace:
        base = trusted_base(options.folder, environ, interactive=interactive)
    loaded = load(
        options.folder,
        kinds=all_kinds(),
        environment=options.environment,
        environ=environ,
        strict=options.strict,
        drafts=drafts,
        lenient=options.lenient,
        base=base,
        parsed=parsed,
    )
    return loaded, base
