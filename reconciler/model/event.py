"""The events of an apply run, for progress, audit log and report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from reconciler.model.change import Change
from reconciler.model.plan import Plan


@dataclass(frozen=True, slots=True)
class Planned:
    """The first event, with the plan that is about to be applied."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Started:
    """A change is about to send its first request."""

    change: Change


@dataclass(frozen=True, slots=True)
class Sent:
    """A request was answered, or ended without an answer (`status` None)."""

    method: str
    path: str
    status: int | None
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """A change was made. `notices` are the values that the server altered or ignored."""

    change: Change
    live_id: str | None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A change was not made, or only in part. `ambiguous`: the outcome is unknown."""

    change: Change
    error: str
    hint: str | None = None
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A change was not started, because of another or because the run was interrupted."""

    change: Change
    because: str


@dataclass(frozen=True, slots=True)
class Interrupting:
    """A stop was requested: requests in flight are finished, no new ones are started."""


Event: TypeAlias = Planned | Started | Sent | Done | Failed | Skipped | Interrupting
Listener: TypeAlias = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Report:
    """How an apply ended, change by change."""

    done: tuple[Done, ...] = ()
    failed: tuple[Failed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    interrupted: bool = False
