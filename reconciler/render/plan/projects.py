"""The changes of a plan by project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from reconciler.kinds import all_kinds
from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.kind import containers
from reconciler.model.plan import Plan
from reconciler.model.text import printable
from reconciler.render.plan.words import parent_of

_FEWEST_OBJECTS = 10


class ProjectRow(Struct, frozen=True):
    """A project, with the number of its changes by action."""

    name: str
    counts: Mapping[Action, int]


def rows_of(plan: Plan, *, always: bool = False) -> tuple[ProjectRow, ...]:
    """Return the projects, those with most changes first.

    Return none for a small plan, one project, or one change in each, unless `always`.
    """
    counts: dict[str, Counter[Action]] = {}
    for change in plan.effective:
        counts.setdefault(project_of(change), Counter())[change.action] += 1
    objects = len({change.address for change in plan.effective})
    # The entries already show a plan with one change in each project.
    most = max((count.total() for count in counts.values()), default=0)
    if not always and (len(counts) < 2 or most < 2 or objects <= _FEWEST_OBJECTS):
        return ()
    ranked = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    return tuple(ProjectRow(name, count) for name, count in ranked)


def project_of(change: Change) -> str:
    """Return the name of the project of a change, or of the changed object if it is one."""
    if change.address.kind in containers(all_kinds()):
        return printable(change.name)
    return parent_of(change) or "(organization)"
