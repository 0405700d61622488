"""The use case `validate`: check the files without a network."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.commands.loading import load_workspace
from reconciler.commands.options import WorkspaceOptions
from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.kinds import all_kinds
from reconciler.workspace.loading import load_all


def validate(
    options: WorkspaceOptions, environ: Mapping[str, str], *, interactive: bool = False
) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of one environment, or of every environment if none is named.

    `interactive`: a person runs the command.
    """
    if options.environment is None:
        return load_all(options.folder, kinds=all_kinds(), environ=environ, strict=options.strict)
    options = replace(options, lenient=frozenset())
    try:
        loaded, *_ = load_workspace(options, environ, interactive=interactive)
    except InvalidConfiguration as invalid:
        return invalid.diagnostics
    return loaded.diagnostics
