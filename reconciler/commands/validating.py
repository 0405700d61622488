"""The use case `validate`: everything that can be told about the files without a network."""

from __future__ import annotations

from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.errors import Diagnostic, InvalidConfiguration
from reconciler.kinds import all_kinds
from reconciler.workspace import load, load_all


def validate(options: WorkspaceOptions, runtime: Runtime) -> tuple[Diagnostic, ...]:
    """All diagnostics of one environment, or of every one if none is named. Needs no secrets."""
    if options.environment is None:
        return load_all(
            options.folder, kinds=all_kinds(), environ=runtime.environ, strict=options.strict
        )
    try:
        loaded = load(
            options.folder,
            kinds=all_kinds(),
            environment=options.environment,
            environ=runtime.environ,
            strict=options.strict,
        )
    except InvalidConfiguration as invalid:
        return invalid.diagnostics
    return loaded.diagnostics
