"""What refuses a plan: known refusals of servers, deletions of projects, rules of users."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.resource import Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import (
    PlanOptions,
    Policy,
    PolicyRule,
    Selection,
    rules_of,
    trusted_first,
)
from reconciler.planning.guards import breaches, rule_notes, rule_refusals
from tests.golden.test_plans import HERE
from tests.golden.test_plans import plan_of as plan_of_case
from tests.support.worlds import (
    BY_NAME,
    KINDS,
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

WEB = project()
OLD = Dialect.INTERFACE
AWS: dict[str, Any] = {
    "type": "AwsS3",
    "config": {"bucket_name": "b", "region": "r", "prefix": "p/"},
    "integration": 7,
}
FILTER = {"key": "$browser", "type": "event", "value": "x"}
ENDED = {"end_at": "2026-05-20T00:00:00Z", "created_at": "2026-01-01T00:00:00Z"}
"""An export whose end passed 12 days before the plan."""


def plan_of(
    resource: Resource,
    *live: LiveObject,
    dialect: Dialect | None = Dialect.V2026,
    policy: Policy | None = None,
) -> Plan:
    resources = (resource,) if resource.address == WEB.address else (WEB, resource)
    objects = live or (live_project(),)
    return planned(desired_of(*resources), live_of(*objects, dialect=dialect), policy)


def ids(plan: Plan) -> set[str]:
    return {refusal.rule for refusal in plan.refusals}


QUERY = {"destination": AWS, "sql_query": "select event from events"}
RENAMED = export(destination=AWS, name="New", pinned_id="e1")
ALLOWED = Lifecycle(allow_replace=True)
FILTERED = live_export(destination=AWS, model="events", filters=[FILTER])
OTHER_QUERY = {"incremental_mode": "APPEND", "hogql_query": "select 1"}


def persons(**spec: Any) -> Resource:
    return export(destination=AWS, model="persons", lifecycle=ALLOWED, **spec)


def ended(**body: Any) -> LiveObject:
    return live_export(destination=AWS, **{**ENDED, **body})


@pytest.mark.parametrize(
    ("resource", "live", "rules"),
    [
        # S3 is refused where it is created or moved only.
        (export(state=State.ABSENT), live_export(), ""),
        (export(paused=True), live_export(), ""),
        (project(access_control=False), None, "not-accepted"),
        (project(access_control=None), None, ""),
        # The schedule of an export is deleted some time after its end.
        (RENAMED, ended(), "schedule-deleted"),
        (export(destination=AWS, paused=True), ended(), "schedule-deleted"),
        (RENAMED, ended(last_updated_at="2026-05-30T00:00:00Z"), ""),
        (RENAMED, ended(paused=True), ""),
        (export(destination=AWS, end_at="2020-01-01"), None, ""),
        # A query shows in other exports, if the server accepts it.
        (export(**QUERY), live_export("e2", "Other", **OTHER_QUERY), ""),
        (export(**QUERY), live_export("e2", "Other", timezone="UTC"), ""),
        # I15: a replacement takes filters over that its model may not have.
        (persons(), FILTERED, "filters-not-accepted"),
        (persons(filters=None), FILTERED, ""),
        (export(destination=AWS, filters=[FILTER]), None, ""),
        (export(destination=AWS, filters=[FILTER], model="sessions"), None, "filters-not-accepted"),
    ],
)
def test_experience_19_what_the_server_refuses_is_a_policy_violation(
    resource: Resource, live: LiveObject | None, rules: str
) -> None:
    objects = [live_project(), *([live] if live is not None else [])]
    plan = plan_of(resource, *objects)
    assert sorted(ids(plan)) == rules.split()
    for refusal in plan.refusals:
        attempted = Policy(attempt=(refusal.rule,))
        assert refusal.rule not in ids(plan_of(resource, *objects, policy=attempted))
    unknown = plan_of(resource, *objects, dialect=None)
    assert not unknown.refusals or rules == "schedule-deleted"


def test_addresses_are_refused_by_servers_of_2026_and_escaped() -> None:
    url = "https://a/\x1b[31m\n"
    resource = export(destination={"type": "HTTP", "config": {"url": url, "token": "t"}})
    (refusal,) = plan_of(resource).refusals
    assert refusal.message.isprintable()
    for dialect in (Dialect.INTERFACE, Dialect.V2025):
        assert ids(plan_of(resource, dialect=dialect)) == set()


def test_ids_are_unique_and_explained() -> None:
    known = {
        item
        for kind in BY_NAME.values()
        for item in (*behaviour_of(kind).refusals, *behaviour_of(kind).rules)
    }
    assert len({item.id for item in known}) == len(known)
    for item in known:
        parts = item.meaning.split("\n\n")
        assert [part.strip()[-1] for part in parts] == [".", "."], item.id


@pytest.mark.parametrize(
    ("resource", "live", "rule"),
    [
        (export(timezone="Europe/Berlin"), live_export("e2", "Other"), "not-accepted"),
        (export(timezone="Europe/Berlin"), live_export(), "not-accepted"),
        (export(timezone="Europe/Berlin"), live_export(timezone="UTC"), ""),
        (export(timezone="UTC"), live_export("e2", "Other"), ""),
        (export(timezone=None), live_export(), ""),
        (export(interval="day"), live_export(), ""),
        (project(onboarding_tasks={"a": "completed"}), live_export(), "not-accepted"),
    ],
)
def test_a_field_that_the_server_lacks_is_refused_as_every_plan_would_repeat_it(
    resource: Resource, live: LiveObject, rule: str
) -> None:
    for dialect in (Dialect.V2025, None):
        plan = plan_of(resource, live_project(), live, dialect=dialect)
        expected = {rule} if rule and dialect is not None else set()
        assert ids(plan) & {"not-accepted"} == expected


@pytest.mark.parametrize(
    ("declared", "live", "is_refused"),
    [
        ({"interval": "dayly"}, [], True),
        ({"interval": "dayly"}, [live_export(interval="dayly")], False),
        ({"interval": "dayly"}, [live_export(interval="hour")], True),
        ({"destination": s3(file_format="Parquett")}, [], True),
        ({"destination": s3(file_format="Avro")}, [], False),
    ],
)
def test_plan_v9_a_near_miss_is_refused_unless_live_has_it(
    declared: dict[str, Any], live: list[LiveObject], *, is_refused: bool
) -> None:
    plan = plan_of(export(**declared), live_project(), *live, dialect=OLD)
    assert ids(plan) == ({"unknown-value"} if is_refused else set())


# The rules of `policy.rules` over the plans of the golden cases


@cache
def plan_named(case: str) -> Plan:
    return plan_of_case(HERE / "plans" / case)


def rule(match: dict[str, Any], **parts: Any) -> PolicyRule:
    return PolicyRule("mine", match, "not here", **parts)


def broken_by(case: str, match: dict[str, Any], **parts: Any) -> list[str]:
    """Return the ids of the changes of a golden plan that break a rule."""
    given = breaches(Policy(rules=(rule(match, **parts),)), plan_named(case).changes, KINDS)
    return [change.id for _, changes in given for change in changes]


def in_project(identity: str) -> Resource:
    """Return an export that names its project by id."""
    return replace(export(interval="day"), parent=ParentRef(id=identity))


CHANGED = "changed-in-the-files"
UPDATE = "batch_export.lake:update"
DELETE = "batch_export.lake:delete"


@pytest.mark.parametrize(
    ("case", "match", "broken"),
    [
        (CHANGED, {"action": ["delete", "up*"]}, [UPDATE]),
        (CHANGED, {"kind": "batch_export", "action": "delete"}, []),
        (CHANGED, {"name": "lake"}, []),
        (CHANGED, {"project": "web"}, [UPDATE]),
        (CHANGED, {"project": "Web"}, [UPDATE]),
        (CHANGED, {"project": "1"}, [UPDATE]),
        (CHANGED, {"destination": ["S3", "*Blob"]}, []),
        (CHANGED, {"field": "interval"}, [UPDATE]),
        (CHANGED, {"field": ["destination.*", "!interval"]}, []),
        # All names of a change must fit what excludes it.
        (CHANGED, {"project": "!web"}, [UPDATE]),
        (CHANGED, {"project": ["!web", "!Web"]}, []),
        (CHANGED, {"project": "!1"}, []),
        (CHANGED, {"project": ["shop", "!a"]}, []),
        (CHANGED, {"name": ["L*", "!Lake"]}, []),
        (CHANGED, {"action": "update", "name": "!Sea"}, [UPDATE]),
        (CHANGED, {"new": "!s3://acme-*"}, []),
        (CHANGED, {"new": "*"}, []),
        ("secrets-at-depth", {"new": "bucket"}, [UPDATE]),
        ("secrets-at-depth", {"new": ["host", "s3://n*"]}, [UPDATE]),
        ("secrets-at-depth", {"new": ["bucket", "!s3://new"]}, []),
        ("secrets-at-depth", {"new": ["bucket", "!s3://old"]}, [UPDATE]),
        ("credentials-to-a-new-address", {"new": "query"}, []),
        ("removed-from-the-files-and-pruned", {"consequence": "history-*"}, [DELETE]),
        ("removed-from-the-files-and-pruned", {"severity": "danger"}, [DELETE]),
        ("removed-from-the-files-and-pruned", {"destination": "NoOp"}, [DELETE]),
        ("create-a-project-and-what-is-in-it", {"project": "web", "action": "create"}, None),
    ],
)
def test_a_match_selects_changes(
    case: str, match: dict[str, Any], broken: list[str] | None
) -> None:
    actual = broken_by(case, match)
    if broken is None:
        assert actual == [change.id for change in plan_named(case).effective]
    else:
        assert actual == broken


APP, SITE = project("app"), project(name="Site")
PAUSED = export(name="Sea", paused=True)
MOVED, MOVED_AND_PAUSED = export(parent="app"), export(parent="app", paused=True)
ALL = ["pause", "update", "update"]


@pytest.mark.parametrize(
    ("resources", "match", "broken"),
    [
        # A name before or after the change, for everything that happens to the object.
        ([WEB, PAUSED], {"name": "Lake"}, ["pause", "update"]),
        ([SITE, PAUSED], {"project": "Web"}, ALL),
        # The key of a project, whatever leads to it.
        ([WEB, APP, MOVED], {"project": "web"}, ["replace"]),
        ([WEB, APP, MOVED], {"project": "app"}, ["replace"]),
        ([WEB, APP, in_project("1")], {"project": "web"}, ["update"]),
        ([WEB, APP, in_project("1")], {"project": "app"}, []),
        ([WEB, APP], {"project": "web"}, ["delete"]),
        # A replacement that pauses is both.
        ([WEB, APP, MOVED_AND_PAUSED], {"action": "pause"}, ["replace"]),
        ([WEB, APP, MOVED_AND_PAUSED], {"action": "unpause"}, []),
        ([WEB, APP, MOVED], {"action": "*pause"}, []),
    ],
)
def test_a_change_is_called_as_before_and_after_it(
    resources: list[Resource], match: dict[str, Any], broken: list[str]
) -> None:
    policy = Policy(prune=True, rules=(rule(match),))
    live = live_of(live_project(1, "Web"), live_project(2, "App"), live_export(name="Lake"))
    base = desired_of(WEB, APP, export())
    plan = planned(desired_of(*resources), live, policy, base=base)
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


def test_a_note_of_a_rule_has_its_hint_if_there_is_one() -> None:
    changes = plan_named(CHANGED).changes
    warned = (rule({"action": "update"}, denies=False, hint=hint) for hint in ("ask", None))
    notes = [rule_notes(Policy(rules=(item,)), changes, KINDS) for item in warned]
    assert [note.message for (note,) in notes] == ["not here (ask)", "not here"]


def test_text_of_a_rule_is_escaped() -> None:
    changes = plan_named(CHANGED).changes
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
