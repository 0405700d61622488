"""The scenarios by name. A scenario is imported when it is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from benchmarks.measuring import Settings
from benchmarks.results import Result

Scenario = Callable[[Settings], Result]

_HOMES: Mapping[str, tuple[str, str]] = {
    "start-up": ("starting", "start_up"),
    "small": ("starting", "small"),
    "modules": ("starting", "modules"),
    "calls": ("calls", "calls"),
    "noop-1000": ("plans", "noop_1000"),
    "noop-10000": ("plans", "noop_10000"),
    "import": ("importing", "import_10000"),
    "imported": ("importing", "imported"),
    "marginal": ("plans", "marginal"),
    "different": ("plans", "different"),
    "reviewed": ("plans", "reviewed"),
    "commits": ("plans", "commits"),
    "creates": ("applies", "creates"),
    "creates-cpu": ("applies", "creates_cpu"),
    "projects-500": ("terraform", "projects_500"),
    "validate-10000": ("files", "validate_10000"),
    "loading": ("loading", "loading"),
    "planner": ("planner", "planner"),
    "environments": ("environments", "environments"),
    "faults": ("faults", "faults"),
    "emulator": ("emulator", "emulator"),
    "peers": ("peers", "peers"),
    "noop-50000": ("plans", "noop_50000"),
}
SCENARIOS: tuple[str, ...] = tuple(_HOMES)


def measure(name: str, settings: Settings) -> Result:
    """Measure a scenario."""
    module, function = _HOMES[name]
    scenario: Scenario = getattr(import_module(f"benchmarks.scenarios.{module}"), function)
    return scenario(settings)
