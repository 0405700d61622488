"""The use case `validate`: check the files without a network."""

from __future__ import annotations

from reconciler.commands.runtime import Runtime, WorkspaceOptions
from reconciler.commands.session import Session
from reconciler.errors import Diagnostic, InvalidConfiguration
from reconciler.kinds import all_kinds
from reconciler.workspace import load_all


def validate(options: WorkspaceOptions, runtime: Runtime) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of one environment, or of every environment if none is named."""
    if options.environment is None:
        return load_all(
            options.folder, kinds=all_kinds(), environ=runtime.environ, strict=options.strict
        )
    try:
        return Session.open(options, runtime).loaded.diagnostics
    except InvalidConfiguration as invalid:
        return invalid.diagnostics
