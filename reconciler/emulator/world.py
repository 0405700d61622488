"""The state that all resources share, and its settings (`/_emulator/settings`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from reconciler.emulator.clock import Clock, Deferred, iso, parsed
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.inputs import BadInput, mapping_of, typed
from reconciler.emulator.outcomes import OutcomeRule
from reconciler.emulator.refusal import forbidden
from reconciler.emulator.store import Store

AUDIT_LOGS = "audit_logs"
"""The paid feature that the activity log of the newest server requires."""
DATA_PIPELINES = "data_pipelines"
"""The paid feature that writes of exports require in 2025."""
NEVER = "never"
"""A value of `first_data_at`: there is no data at all."""
_LONGEST = 10 * 365 * 86_400.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a service. The defaults hold after a start and after a reset.

    jitter_seconds
        How long after its tick each scheduled run starts. A real service spreads the starts over
        this time (service.md, 7.3).
    backfill_limit
        Backfills in Starting or Running at a time in one project, where the dialect has a limit
        (service.md, 8.1).
    backfill_row_delay_seconds
        How long after its 201 a backfill is listed and can be read (2026).
    backfill_estimate_seconds
        How long a backfill stays Starting (2026).
    first_data_at
        When the data of all models begins: None for a beginning before every range, or "never".
    auto_pause
        Whether failures that outcome rules make pause an export (service.md, 14). Failures
        without a rule never do.
    """

    jitter_seconds: float = 0
    backfill_limit: int = 100
    backfill_row_delay_seconds: float = 0
    backfill_estimate_seconds: float = 5
    first_data_at: str | None = None
    auto_pause: bool = True

    def changed(self, sent: Any) -> Settings:
        """Return the settings with some values replaced. Raise BadInput."""
        values = mapping_of(sent, "settings", _CHECKS)
        return replace(self, **{name: _CHECKS[name](name, value) for name, value in values.items()})


def _seconds(name: str, value: Any) -> float:
    if not 0 <= typed(name, value, float) <= _LONGEST:
        raise BadInput(f"{name} must be between 0 and {_LONGEST:.0f}")
    return float(value)


def _count(name: str, value: Any) -> int:
    if typed(name, value, int) < 0:
        raise BadInput(f"{name} must be at least 0")
    return int(value)


def _first_data(name: str, value: Any) -> str | None:
    if value is None or value == NEVER:
        return None if value is None else NEVER
    try:
        return iso(parsed(value))
    except (ValueError, TypeError, OverflowError):
        raise BadInput(f'{name} must be an ISO 8601 time, "{NEVER}" or null') from None


_CHECKS: Mapping[str, Callable[[str, Any], Any]] = {
    "jitter_seconds": _seconds,
    "backfill_limit": _count,
    "backfill_row_delay_seconds": _seconds,
    "backfill_estimate_seconds": _seconds,
    "first_data_at": _first_data,
    "auto_pause": partial(typed, kind=bool),
}


@dataclass(slots=True)
class World:
    """A running service. `flags` is None while all feature flags are on."""

    store: Store
    clock: Clock
    dialect: Dialect
    flags: frozenset[str] | None = None
    seed: int = 0
    settings: Settings = field(default_factory=Settings)
    outcomes: list[OutcomeRule] = field(default_factory=list)
    deferred: Deferred = field(init=False)

    def __post_init__(self) -> None:
        self.deferred = Deferred(self.clock)

    def features_of(self, organization: str) -> list[str]:
        """Return the paid features of an organization."""
        body = self.store.organization(organization) or {}
        names: list[str] = body.get("features", [AUDIT_LOGS, DATA_PIPELINES])
        return names

    def need_flag(self, what: str) -> None:
        """Raise Refusal (403) if a value ("field:value") needs a flag that is off."""
        flag, refusal = self.dialect.flags.get(what, (None, ""))
        if flag is not None and self.flags is not None and flag not in self.flags:
            raise forbidden(f"{refusal} for this team.")
