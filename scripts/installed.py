"""The distributions that reconciler needs, as they are installed in this environment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NAME = "posthog-reconciler"


@dataclass
class Installed:
    """A distribution, and the names of those that it needs directly."""

    distribution: Distribution
    needs: set[str] = field(default_factory=set)


def closure(extra: str) -> dict[str, Installed]:
    """Return reconciler with an extra and everything that it needs, by canonical name, sorted.

    Raises PackageNotFoundError for something that is needed here and not installed.
    """
    result: dict[str, Installed] = {}
    waiting, done = [(NAME, extra)], set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in done:
            continue
        done.add((name, wanted))
        entry = result.setdefault(name, Installed(distribution(name)))
        for required in _requirements(entry.distribution, wanted):
            target = canonicalize_name(required.name)
            entry.needs |= {target} - {name}
            waiting += [(target, item) for item in ("", *required.extras)]
    return dict(sorted(result.items()))


def _requirements(owner: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield what a distribution requires on this machine, with an extra or "" without one."""
    for text in owner.requires or ():
        required = Requirement(text)
        if required.marker is None or required.marker.evaluate({"extra": extra}):
            yield required
