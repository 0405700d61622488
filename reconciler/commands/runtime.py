"""What a use case needs of the world, handed in from the edge so that tests can hand in theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reconciler.applying import StopRequest
from reconciler.client import ClientSettings
from reconciler.model.event import Event


def _nothing(event: Event) -> None:
    del event


@dataclass(frozen=True, slots=True)
class Runtime:
    """The environment, a clock, who listens to what happens, and how to ask for a stop.

    `now` returns an aware datetime.
    """

    environ: Mapping[str, str]
    now: Callable[[], datetime]
    listen: Callable[[Event], None] = _nothing
    stop: StopRequest = field(default_factory=StopRequest)
    client: ClientSettings = field(default_factory=ClientSettings)


@dataclass(frozen=True, slots=True)
class WorkspaceOptions:
    """Which workspace and environment; `strict` turns warnings about the files into errors."""

    folder: Path
    environment: str | None = None
    strict: bool = False
