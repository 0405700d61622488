"""The levels of a plan."""

from __future__ import annotations

from reconciler.applying.run import levels_of
from reconciler.model.kind import Action
from reconciler.model.plan import Change
from reconciler.model.values import Address


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
