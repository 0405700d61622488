"""The state that all resources share."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.emulator.clock import Clock, Deferred
from reconciler.emulator.dialects import FLAGS, Dialect
from reconciler.emulator.outcomes import OutcomeRule
from reconciler.emulator.refusal import forbidden
from reconciler.emulator.settings import Settings
from reconciler.emulator.store import Store

AUDIT_LOGS = "audit_logs"
"""The paid feature that the activity log of the newest server requires."""
DATA_PIPELINES = "data_pipelines"
"""The paid feature that writes of exports require in 2025."""


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
        """Return the paid features of an organization: of its seed, what the settings leave on."""
        body = self.store.organization(organization) or {}
        names: list[str] = body.get("features", [AUDIT_LOGS, DATA_PIPELINES])
        return [name for name in names if name != AUDIT_LOGS or self.settings.audit_log]

    def need_flag(self, what: str) -> None:
        """Raise Refusal (403) if a value ("field:value") needs a flag that is off."""
        flag, refusal = FLAGS[self.dialect.name].get(what, (None, ""))
        if flag is not None and self.flags is not None and flag not in self.flags:
            raise forbidden(f"{refusal} for this team.")
