"""The files that the options of a command name. Nothing that a network needs is imported here."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from reconciler.model.settings import UNKNOWN_VALUE


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
