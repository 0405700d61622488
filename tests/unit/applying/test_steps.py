"""The steps of a change, and the levels of a plan."""

from __future__ import annotations

import pytest

from reconciler.applying.change_run import (
    Check,
    Complete,
    Create,
    Delete,
    Patch,
    Step,
    Toggle,
    levels_of,
    steps_of,
    unit_of,
)
from reconciler.model.address import Address
from reconciler.model.kind import Action
from reconciler.model.plan import Change

LAKE = Address("batch_export", "lake")
BODY = {"name": "Lake", "interval": "hour"}
MORE = {"primary_dashboard": 3}


def change(action: Action, **parts: object) -> Change:
    return Change(LAKE, action, "Lake", **parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("planned", "units"),
    [
        (change(Action.NO_OP), []),
        (
            change(Action.CREATE, body=BODY, after_create=MORE),
            [[Create(BODY)], [Complete(BODY, MORE)]],
        ),
        (change(Action.UPDATE, body=BODY), [[Check(), Patch(BODY)]]),
        (change(Action.PAUSE), [[Check(), Toggle(Action.PAUSE)]]),
        (change(Action.UNPAUSE), [[Check(), Toggle(Action.UNPAUSE)]]),
        (change(Action.DELETE), [[Check(), Delete()]]),
        (
            change(Action.REPLACE, live_id="old", body=BODY),
            [[Check(), Create(BODY)], [Complete(BODY, {})], [Check(), Delete()]],
        ),
    ],
    ids=lambda value: value.action if isinstance(value, Change) else None,
)
def test_steps_are_taken_in_units(planned: Change, units: list[list[Step]]) -> None:
    steps = steps_of(planned)
    seen = []
    while steps:
        unit = unit_of(steps)
        seen.append(list(unit))
        steps = steps[len(unit) :]
    assert seen == units


def test_a_level_depends_only_on_the_levels_before() -> None:
    def named(key: str, *needed: str) -> Change:
        depends_on = tuple(f"project.{name}:create" for name in needed)
        return Change(Address("project", key), Action.CREATE, key, depends_on=depends_on)

    levels = levels_of([named("a"), named("b", "a"), named("c", "x"), named("d", "a", "b")])
    assert [[item.name for item in level] for level in levels] == [["a", "c"], ["b"], ["d"]]


def test_deletions_come_last_unless_another_change_needs_them() -> None:
    def named(action: Action, key: str, *needed: str) -> Change:
        return Change(Address("project", key), action, key, depends_on=needed)

    levels = levels_of(
        [
            named(Action.DELETE, "taken"),
            named(Action.CREATE, "a", "project.taken:delete"),
            named(Action.CREATE, "b", "project.a:create"),
            named(Action.DELETE, "inside"),
            named(Action.DELETE, "old", "project.inside:delete"),
            named(Action.UPDATE, "c"),
        ]
    )
    names = [[item.name for item in level] for level in levels]
    assert names == [["taken", "c"], ["a"], ["b"], ["inside"], ["old"]]
