"""The results of scenarios: ratios of times, and what is counted."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of two minima, and the lowest and highest ratio of a round.

    `unit` is empty for ratios. A difference, such as the time over a bare interpreter, has a unit.
    """

    value: float
    low: float
    high: float
    aim: float | None = None
    unit: str = ""
    at_least: bool = False

    def __str__(self) -> str:
        digits = 0 if self.unit else 2
        text = f"{self.value:.{digits}f}{self.unit and ' '}{self.unit}"
        text += f"  ({self.low:.{digits}f} to {self.high:.{digits}f}"
        if self.aim is not None:
            text += f"; aim: at {'least' if self.at_least else 'most'} {self.aim:g}"
        return f"{text})"

    @property
    def missed(self) -> bool:
        """Return whether there is an aim that the value does not reach."""
        if self.aim is None:
            return False
        return self.value < self.aim if self.at_least else self.value > self.aim


@dataclass(slots=True)
class Result:
    """What a scenario measured.

    `calls` and `modules` are the same in every run. `values` are seconds and MB by name, `stages`
    CPU seconds by stage. `lines` is a text to print as it is.
    """

    title: str
    ratios: dict[str, Ratio] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    modules: dict[str, list[str]] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def text(self) -> Iterator[str]:
        """Yield lines for people."""
        yield self.title
        for name, ratio in self.ratios.items():
            yield f"  {'!' if ratio.missed else ' '} {name:<34} {ratio}"
        for name, calls in self.calls.items():
            yield f"    {name:<34} {calls} calls"
        for name, modules in self.modules.items():
            own = sum(module.startswith("reconciler") for module in modules)
            others = " ".join(module for module in modules if not module.startswith("reconciler"))
            yield f"    {name:<34} {own} modules; {others}"
        for name, value in self.values.items():
            yield f"    {name:<34} {value:.3g}"
        total = sum(self.stages.values())
        for name, seconds in sorted(self.stages.items(), key=lambda pair: -pair[1]):
            yield f"    {name:<34} {seconds:.2f} s  {seconds / total:4.0%}"
        yield from (f"    {line}".rstrip() for line in self.lines)


def ratio_of(
    above: Sequence[float],
    below: Sequence[float],
    *,
    aim: float | None = None,
    at_least: bool = False,
) -> Ratio:
    """Return the ratio of the minima of two measurements of the same rounds."""
    rounds = [one / other for one, other in zip(above, below, strict=True)]
    return Ratio(min(above) / min(below), min(rounds), max(rounds), aim, at_least=at_least)


def milliseconds_over(
    above: Sequence[float], below: Sequence[float], *, aim: float | None = None
) -> Ratio:
    """Return the difference of the minima of two measurements, in milliseconds."""
    rounds = [(one - other) * 1000 for one, other in zip(above, below, strict=True)]
    return Ratio((min(above) - min(below)) * 1000, min(rounds), max(rounds), aim, unit="ms")


def as_json(results: Mapping[str, Result]) -> dict[str, Any]:
    """Return results as JSON, with the date and the machine."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{sys.platform} {platform.machine()}, {os.cpu_count()} cores",
        "results": {name: asdict(result) for name, result in results.items()},
    }


def compare(
    before: Mapping[str, Any], results: Mapping[str, Result], *, exact_only: bool = False
) -> tuple[list[str], bool]:
    """Return how results differ from those of an earlier run, and whether calls or modules differ.

    Only scenarios of both runs are compared. With `exact_only`, ratios are not.
    """
    lines: list[str] = []
    differs = False
    for name, result in results.items():
        if name not in before:
            continue
        if not exact_only:
            lines += _changed_ratios(name, before[name]["ratios"], result)
        exact = [
            *_changed_calls(name, before[name]["calls"], result),
            *_changed_modules(name, before[name]["modules"], result),
        ]
        lines += exact
        differs = differs or bool(exact)
    return lines, differs


def _changed_ratios(name: str, before: Mapping[str, Any], result: Result) -> Iterator[str]:
    for what, ratio in result.ratios.items():
        if what in before:
            old = before[what]["value"]
            change = f"{old:.2f} -> {ratio.value:.2f} ({ratio.value / old - 1:+.0%})"
            yield f"{name}: {what}: {change}"


def _changed_calls(name: str, before: Mapping[str, int], result: Result) -> Iterator[str]:
    for what in sorted(before.keys() | result.calls.keys()):
        old, new = before.get(what), result.calls.get(what)
        if old != new:
            yield f"{name}: {what}: {old} -> {new} calls"


def _changed_modules(name: str, before: Mapping[str, list[str]], result: Result) -> Iterator[str]:
    for what in sorted(before.keys() | result.modules.keys()):
        old, new = set(before.get(what, ())), set(result.modules.get(what, ()))
        changes = [f"+{module}" for module in sorted(new - old)]
        changes += [f"-{module}" for module in sorted(old - new)]
        if changes:
            yield f"{name}: {what} imports {' '.join(changes)}"
