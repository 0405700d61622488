"""Input of the use cases: the runtime, the workspace, and the options of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reconciler.client import ClientSettings, Stop
from reconciler.model.client_options import ClientOptions
from reconciler.model.event import Listener
from reconciler.planning.planner import PlanOptions


@dataclass(frozen=True, slots=True)
class Runtime:
    """The environment variables, the clock, the listener to events, and the request to stop.

    `now` returns an aware datetime. `interactive`: the input is a terminal, so a person runs it.
    """

    environ: Mapping[str, str]
    now: Callable[[], datetime]
    listen: Listener = field(default=lambda _: None)
    stop: Stop = field(default_factory=Stop)
    client: ClientSettings = field(default_factory=ClientSettings)
    interactive: bool = False


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """Which workspace and environment.

    `strict` turns warnings about the files into errors. `client` is how requests are made: it takes
    precedence over the files. `insecure_http` allows to send the key unencrypted. `trust_workspace`
    lets the files decide where the key is sent and what is allowed, also without a terminal.
    `lenient` are the codes of errors that are warnings for a command.
    """

    folder: Path
    environment: str | None = None
    strict: bool = False
    client: ClientOptions = field(default_factory=ClientOptions)
    insecure_http: bool = False
    trust_workspace: bool = False
    lenient: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What to plan.

    `base` is a git reference, None for the one of the CI job; `no_base` does not use git.
    """

    workspace: WorkspaceOptions
    options: PlanOptions = field(default_factory=PlanOptions)
    base: str | None = None
    no_base: bool = False

    @property
    def has_plan_options(self) -> bool:
        """Whether any option changes what is planned."""
        return self != PlanRequest(self.workspace)
