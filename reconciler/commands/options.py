"""What the options of a command say about the workspace and the plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from reconciler.model.connection import ClientOptions
from reconciler.model.policy import UNKNOWN_VALUE, PlanOptions


class WorkspaceOptions(Struct, frozen=True):
    """Which workspace and environment.

    `strict` turns warnings about the files into errors. `client` is how requests are made: it takes
    precedence over the files. `trust_workspace`
    lets the files decide where the key is sent and what is allowed, also without a terminal.
    `lenient` are the codes of errors that are warnings for a command: most compare with live
    state, which may have a value that seems misspelt.
    """

    folder: Path
    environment: str | None = None
    strict: bool = False
    client: ClientOptions = field(default_factory=ClientOptions)
    trust_workspace: bool = False
    lenient: frozenset[str] = frozenset({UNKNOWN_VALUE})


def are_several(names: Sequence[str]) -> bool:
    """Return whether options may select more than one environment."""
    return len(set(names)) > 1 or any(character in name for name in names for character in "*?[")


class PlanRequest(Struct, frozen=True):
    """What to plan.

    `no_inventory` does not use git.
    """

    workspace: WorkspaceOptions
    options: PlanOptions = field(default_factory=PlanOptions)
    no_inventory: bool = False
