"""The rules of `policy.rules` over the plans of the golden cases."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.plan import Plan
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.settings import (
    PlanOptions,
    Policy,
    PolicyRule,
    Selection,
    rules_of,
    trusted_first,
)
from reconciler.planning.guards import breaches, rule_notes, rule_refusals
from tests.golden.test_plans import HERE, plan_of
from tests.support.worlds import (
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)


@cache
def plan_named(case: str) -> Plan:
    return plan_of(HERE / "plans" / case)


def rule(match: dict[str, Any], **parts: Any) -> PolicyRule:
    return PolicyRule("mine", match, "not here", **parts)


def broken_by(case: str, match: dict[str, Any], **parts: Any) -> list[str]:
    """Return the ids of the changes of a golden plan that break a rule."""
    given = breaches(Policy(rules=(rule(match, **parts),)), plan_named(case).changes, KINDS)
    return [change.id for _, changes in given for change in changes]


def in_project(identity: str) -> Resource:
    """Return an export that names its project by id."""
    return replace(export(interval="day"), parent=ParentRef(id=identity))


UPDATE = "batch_export.lake:update"
DELETE = "batch_export.lake:delete"
MATCHES: list[tuple[str, dict[str, Any], list[str] | None]] = [
    ("conflict-of-both-sides", {"action": "update"}, [UPDATE]),
    ("conflict-of-both-sides", {"action": "no-op"}, []),
    ("conflict-of-both-sides", {"action": ["delete", "up*"]}, [UPDATE]),
    ("conflict-of-both-sides", {"kind": "batch_export", "action": "delete"}, []),
    ("conflict-of-both-sides", {"address": "batch_export.l*"}, [UPDATE]),
    ("conflict-of-both-sides", {"name": "Lake"}, [UPDATE]),
    ("conflict-of-both-sides", {"name": "lake"}, []),
    ("conflict-of-both-sides", {"project": "web"}, [UPDATE]),
    ("conflict-of-both-sides", {"project": "Web"}, [UPDATE]),
    ("conflict-of-both-sides", {"project": "1"}, [UPDATE]),
    ("conflict-of-both-sides", {"project": "shop"}, []),
    ("conflict-of-both-sides", {"destination": "NoOp"}, [UPDATE]),
    ("conflict-of-both-sides", {"destination": ["S3", "*Blob"]}, []),
    ("conflict-of-both-sides", {"field": "interval"}, [UPDATE]),
    ("conflict-of-both-sides", {"field": ["destination.*", "!interval"]}, []),
    # All names of a change must fit what excludes it.
    ("conflict-of-both-sides", {"project": "!web"}, [UPDATE]),
    ("conflict-of-both-sides", {"project": ["!web", "!Web"]}, []),
    ("conflict-of-both-sides", {"project": "!1"}, []),
    ("conflict-of-both-sides", {"project": ["shop", "!a"]}, []),
    ("conflict-of-both-sides", {"name": ["L*", "!Lake"]}, []),
    ("conflict-of-both-sides", {"action": "!update"}, []),
    ("conflict-of-both-sides", {"action": "!delete"}, [UPDATE]),
    ("conflict-of-both-sides", {"action": "update", "name": "!Sea"}, [UPDATE]),
    ("conflict-of-both-sides", {"new": "!s3://acme-*"}, []),
    ("conflict-of-both-sides", {"new": "*"}, []),
    ("secrets-at-depth", {"new": "bucket"}, [UPDATE]),
    ("secrets-at-depth", {"new": ["host", "s3://n*"]}, [UPDATE]),
    ("secrets-at-depth", {"new": ["bucket", "!s3://new"]}, []),
    ("secrets-at-depth", {"new": ["bucket", "!s3://old"]}, [UPDATE]),
    ("credentials-to-a-new-address", {"new": "query"}, []),
    ("pause", {"destination": "!S3"}, []),
    ("removed-from-the-files-and-pruned", {"consequence": "history-*"}, [DELETE]),
    ("removed-from-the-files-and-pruned", {"severity": "danger"}, [DELETE]),
    ("removed-from-the-files-and-pruned", {"severity": "info"}, []),
    ("removed-from-the-files-and-pruned", {"destination": "NoOp"}, [DELETE]),
    ("create-a-project-and-what-is-in-it", {"project": "web", "action": "create"}, None),
]


@pytest.mark.parametrize(("case", "match", "broken"), MATCHES)
def test_a_match_selects_changes(
    case: str, match: dict[str, Any], broken: list[str] | None
) -> None:
    actual = broken_by(case, match)
    if broken is None:
        assert actual == [change.id for change in plan_named(case).effective]
    else:
        assert actual == broken


WEB = project()
PAUSED = export(name="Sea", paused=True)
MOVED_AND_PAUSED = export(parent="app", paused=True)


@pytest.mark.parametrize(
    ("desired", "match", "broken"),
    [
        # A name before or after the change, for everything that happens to the object.
        (desired_of(WEB, PAUSED), {"name": "Lake"}, ["pause", "update"]),
        (desired_of(WEB, PAUSED), {"name": "Sea"}, ["pause", "update"]),
        (
            desired_of(project(name="Site"), PAUSED),
            {"project": "Web"},
            ["pause", "update", "update"],
        ),
        (
            desired_of(project(name="Site"), PAUSED),
            {"project": "Site"},
            ["pause", "update", "update"],
        ),
        # The key of a project, whatever leads to it.
        (desired_of(WEB, project("app"), export(parent="app")), {"project": "web"}, ["replace"]),
        (desired_of(WEB, project("app"), export(parent="app")), {"project": "app"}, ["replace"]),
        (desired_of(WEB, project("app"), in_project("1")), {"project": "web"}, ["update"]),
        (desired_of(WEB, project("app"), in_project("1")), {"project": "app"}, []),
        (desired_of(WEB, project("app")), {"project": "web"}, ["delete"]),
        # A replacement that pauses is both.
        (desired_of(WEB, project("app"), MOVED_AND_PAUSED), {"action": "pause"}, ["replace"]),
        (desired_of(WEB, project("app"), MOVED_AND_PAUSED), {"action": "replace"}, ["replace"]),
        (desired_of(WEB, project("app"), MOVED_AND_PAUSED), {"action": "unpause"}, []),
        (desired_of(WEB, project("app"), export(parent="app")), {"action": "*pause"}, []),
    ],
)
def test_a_change_is_called_as_before_and_after_it(
    desired: Desired, match: dict[str, Any], broken: list[str]
) -> None:
    policy = Policy(prune=True, rules=(rule(match),))
    live = live_of(live_project(1, "Web"), live_project(2, "App"), live_export(name="Lake"))
    base = desired_of(WEB, project("app"), export())
    plan = planned(desired, live, policy, base=base if len(desired.resources) > 1 else None)
    refusals = [item for item in plan.refusals if item.rule == "rules.mine"]
    given = breaches(policy, plan.changes, KINDS)
    assert sorted(change.action for _, changes in given for change in changes) == broken
    assert [len(refusal.addresses) for refusal in refusals] == ([len(broken)] if broken else [])


@pytest.mark.parametrize(
    "match",
    [
        {"address": "batch_export.lake"},
        {"kind": "batch_export", "project": "web"},
        {"kind": "batch_export", "project": ["!other", "!Web"]},
        {"kind": "batch_export", "address": "!*.renamed"},
    ],
)
def test_t1_a_renamed_key_dodges_no_rule(match: dict[str, Any]) -> None:
    """T1: rules judge the keys of the export and of its project at the base, too."""
    base = desired_of(WEB, export(name="Lake"))
    renamed = export("renamed", name="Lake", parent="other", interval="day")
    live = live_of(live_project(1, "Web"), live_export(name="Lake"))
    policy = Policy(rules=(rule(match),))
    plan = planned(desired_of(project("other", name="Web"), renamed), live, policy, base=base)
    assert [(item.rule, item.addresses) for item in plan.refusals] == [
        ("rules.mine", (renamed.address,))
    ]


def test_a_rule_knows_the_key_of_a_project_that_the_selection_leaves_out() -> None:
    policy = Policy(rules=(rule({"project": "web"}),))
    selection = PlanOptions(selection=Selection(kinds=("batch_export",)))
    desired, live = desired_of(WEB, in_project("1")), live_of(live_project(1, "Web"), live_export())
    plan = planned(desired, live, policy, options=selection)
    assert [refusal.rule for refusal in plan.refusals] == ["rules.mine"]


def test_a_secret_that_is_sent_is_a_field() -> None:
    assert broken_by("rotate-one", {"field": "destination.config.*secret*"})


def test_a_rule_denies_or_warns() -> None:
    changes = plan_named("conflict-of-both-sides").changes
    denied, noted = rule({"action": "update"}), rule({"action": "update"}, denies=False, hint="ask")
    policy = Policy(rules=(denied, noted))
    (refusal,) = rule_refusals(policy, changes, KINDS)
    assert refusal.allow == "omit the change with --exclude, or edit `policy.rules.mine`"
    (note,) = rule_notes(policy, changes, KINDS)
    assert (note.code, note.message) == ("rules.mine", "not here (ask)")
    assert str(note.about) == "batch_export.lake"
    plain = Policy(rules=(rule({"action": "update"}, denies=False),))
    assert [note.message for note in rule_notes(plain, changes, KINDS)] == ["not here"]


def test_text_of_a_rule_is_escaped() -> None:
    changes = plan_named("conflict-of-both-sides").changes
    forging = PolicyRule("mine", {"action": "*"}, "a\nb", hint="c\x1b[2J")
    (refusal,) = rule_refusals(Policy(rules=(forging,)), changes, KINDS)
    assert refusal.message == "a\\nb"
    assert refusal.allow == "c\\x1b[2J"


def test_the_trusted_rule_of_an_id_applies() -> None:
    own = rules_of({"a": {"match": {"name": "x"}, "message": "own"}, "b": {"match": {}}})
    trusted = rules_of({"a": {"match": {}, "message": "trusted"}, "c": {"match": {}}})
    joined = trusted_first(own, trusted)
    assert [item.id for item in joined] == ["a", "b", "c"]
    assert joined[0].message == "trusted"


@pytest.mark.parametrize("written", [None, [], "text", {"a": None}, {"a": {"match": []}}])
def test_what_the_schema_refuses_is_no_rule(written: Any) -> None:
    assert rules_of(written) == ()
