"""The results of scenarios: ratios of times, and what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio or a difference of two minima, and the lowest and the highest of a round.

    `unit` is empty for ratios.
    """

    value: float
    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        digits = 0 if self.unit else 2
        unit = self.unit and f" {self.unit}"
        low, high = f"{self.low:.{digits}f}", f"{self.high:.{digits}f}"
        return f"{self.value:.{digits}f}{unit}  ({low} to {high})"


@dataclass(slots=True)
class Result:
    """What a scenario measured.

    `calls` and `modules` are the same in every run. `values` are seconds and MB by name.
    """

    title: str
    ratios: dict[str, Ratio] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    modules: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)

    def text(self) -> Iterator[str]:
        """Yield lines for people."""
        yield self.title
        for name, ratio in self.ratios.items():
            yield f"  {name:<36} {ratio}"
        for name, calls in self.calls.items():
            yield f"  {name:<36} {calls} calls"
        for name, modules in self.modules.items():
            own = sum(module.startswith("reconciler") for module in modules)
            others = " ".join(module for module in modules if not module.startswith("reconciler"))
            yield f"  {name:<36} {own} modules; {others}"
        for name, value in self.values.items():
            yield f"  {name:<36} {value:.3g}"


def ratio_of(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return the ratio of the minima of two measurements of the same rounds."""
    rounds = [one / other for one, other in zip(above, below, strict=True)]
    return Ratio(min(above) / min(below), min(rounds), max(rounds))


def milliseconds_over(above: Sequence[float], below: Sequence[float]) -> Ratio:
    """Return the difference of the minima of two measurements, in milliseconds."""
    rounds = [(one - other) * 1000 for one, other in zip(above, below, strict=True)]
    return Ratio((min(above) - min(below)) * 1000, min(rounds), max(rounds), "ms")


def counts(results: Iterable[Result]) -> dict[str, dict[str, Any]]:
    """Return what is the same on every machine: the calls and the modules of commands."""
    counted: dict[str, dict[str, Any]] = {"calls": {}, "modules": {}}
    for result in results:
        counted["calls"] |= result.calls
        counted["modules"] |= result.modules
    return counted


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return a line for each command with other calls, or other modules, than before."""
    lines = []
    for name in sorted(before["calls"].keys() | after["calls"].keys()):
        old, new = (side["calls"].get(name) for side in (before, after))
        if old != new:
            lines.append(f"{name}: {old} -> {new} calls")
    for name in sorted(before["modules"].keys() | after["modules"].keys()):
        gone, come = (set(side["modules"].get(name, ())) for side in (before, after))
        changes = [f"+{module}" for module in sorted(come - gone)]
        changes += [f"-{module}" for module in sorted(gone - come)]
        if changes:
            lines.append(f"{name} imports {' '.join(changes)}")
    return lines
