"""What refuses a plan: known refusals of servers, deletions of projects, rules of users."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.commands.plan import calls_of
from reconciler.diagnostics import Mark
from reconciler.kinds import behaviour_of
from reconciler.model.kind import Dialect
from reconciler.model.live import Live, LiveObject
from reconciler.model.plan import Plan, Refusal
from reconciler.model.resource import Desired, Lifecycle, ParentRef, Resource, State
from reconciler.model.settings import (
    PlanOptions,
    Policy,
    PolicyRule,
    Selection,
    rules_of,
    trusted_first,
)
from reconciler.model.values import Address, SecretRef
from reconciler.planning.approval import differences
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
POSTGRES: dict[str, Any] = {
    "type": "Postgres",
    "config": {"host": "h", "database": "d", "schema": "s", "table_name": "t"},
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


def one(plan: Plan) -> Refusal:
    (refusal,) = plan.refusals
    return refusal


MOVED = export(
    parent="app", destination=AWS, lifecycle=Lifecycle(renamed_from=("Lake",), allow_replace=True)
)
IN_WEB = live_export(destination=AWS)
CASES: dict[str, tuple[Resource, tuple[LiveObject, ...], set[str]]] = {
    "S3 in a new project": (export(), (), {"not-accepted"}),
    "another name of an S3 export": (
        export(name="New", pinned_id="e1"), (live_project(), live_export()), set(),
    ),
    "another prefix of an S3 export": (
        export(destination=s3(prefix="new/")), (live_project(), live_export()),
        {"not-accepted"},
    ),
    "a deletion of an S3 export": (
        export(state=State.ABSENT), (live_project(), live_export()), set(),
    ),
    "a pause of an S3 export": (export(paused=True), (live_project(), live_export()), set()),
    "AwsS3": (export(destination=AWS), (), set()),
    "AwsS3 without an integration": (
        export(destination={**AWS, "integration": None}), (), {"field-required"},
    ),
    "AwsS3 with keys": (
        export(
            destination={
                "type": "AwsS3",
                "config": {**AWS["config"], "aws_access_key_id": SecretRef.of("env", "ID")},
            }
        ),
        (),
        {"field-required", "not-accepted"},
    ),
    "AzureBlob without an integration": (
        export(destination={"type": "AzureBlob", "config": {"container_name": "c"}}), (),
        {"field-required"},
    ),
    "AwsS3 that loses its integration": (
        export(destination={**AWS, "integration": None}), (live_project(), IN_WEB),
        {"field-required"},
    ),
    "Postgres that loses its integration": (
        export(destination={**POSTGRES, "integration": None}),
        (live_project(), live_export(destination=POSTGRES)), set(),
    ),
    "no project": (export(parent=None, destination=AWS), (), {"project-required"}),
    "access control": (project(access_control=False), (), {"not-accepted"}),
    "no access control": (project(access_control=None), (), set()),
    "access control of a live project": (
        project(access_control=True), (live_project(access_control=False),),
        {"not-accepted"},
    ),
    "an update after the end": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (live_project(), live_export(destination=AWS, **ENDED)),
        {"schedule-deleted"},
    ),
    "a pause after the end": (
        export(destination=AWS, paused=True),
        (live_project(), live_export(destination=AWS, **ENDED)),
        {"schedule-deleted"},
    ),
    "an update soon after the last write": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (
            live_project(),
            live_export(destination=AWS, **ENDED, last_updated_at="2026-05-30T00:00:00Z"),
        ),
        set(),
    ),
    "an update of a paused export after the end": (
        export(destination=AWS, name="New", pinned_id="e1"),
        (live_project(), live_export(destination=AWS, paused=True, **ENDED)),
        set(),
    ),
    "an end in the past": (export(destination=AWS, end_at="2020-01-01"), (), set()),
    "a query where no export has one": (
        export(destination=AWS, sql_query="select event from events"), (), {"query-not-accepted"},
    ),
    "a query where another export has one": (
        export(destination=AWS, sql_query="select event from events"),
        (
            live_project(),
            live_export("e2", "Other", incremental_mode="APPEND", hogql_query="select 1"),
        ),
        set(),
    ),
    "I15: a replacement takes filters over that its model may not have": (
        export(
            destination=AWS, model="persons", lifecycle=Lifecycle(allow_replace=True)
        ),
        (live_project(), live_export(destination=AWS, model="events", filters=[FILTER])),
        {"filters-not-accepted"},
    ),
    "filters of events": (export(destination=AWS, filters=[FILTER]), (), set()),
    "filters of sessions": (
        export(destination=AWS, filters=[FILTER], model="sessions"), (), {"filters-not-accepted"},
    ),
    "a replacement without the filters": (
        export(
            destination=AWS, model="persons", filters=None,
            lifecycle=Lifecycle(allow_replace=True),
        ),
        (live_project(), live_export(destination=AWS, model="events", filters=[FILTER])),
        set(),
    ),
    "a query on a server of spring 2026": (
        export(destination=AWS, sql_query="select event from events"),
        (live_project(), live_export("e2", "Other", timezone="UTC")),
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_experience_19_what_the_server_refuses_is_a_policy_violation(case: str) -> None:
    resource, live, expected = CASES[case]
    plan = plan_of(resource, *live)
    assert ids(plan) == expected
    for refusal in plan.refusals:
        attempted = Policy(attempt=(refusal.rule,))
        assert refusal.rule not in ids(plan_of(resource, *live, policy=attempted))
    assert not plan_of(resource, *live, dialect=None).refusals or "after the end" in case


@pytest.mark.parametrize(("integration", "refused"), [(7, True), (8, False), (None, False)])
def test_an_integration_does_not_move_to_another_project(
    integration: int | None, *, refused: bool
) -> None:
    app = project("app")
    moved = Resource(
        MOVED.address,
        {**MOVED.spec, "destination": {**AWS, "integration": integration}},
        parent=ParentRef(key="app"),
        lifecycle=MOVED.lifecycle,
        pinned_id="e1",
    )
    live = live_of(live_project(), live_project(2, "App"), IN_WEB, dialect=Dialect.V2026)
    plan = planned(desired_of(WEB, app, moved), live)
    assert ("integration-of-another-project" in ids(plan)) is refused


def test_a_known_refusal_names_the_place_the_fix_and_the_way_to_try_it() -> None:
    whole, tag = Mark("a.yaml", 1, 1), Mark("a.yaml", 4, 7)
    declared = export()
    resource = Resource(
        declared.address,
        declared.spec,
        parent=declared.parent,
        mark=whole,
        marks={("destination",): whole, ("destination", "type"): tag},
    )
    refusal = one(plan_of(resource))
    assert refusal.at == tag
    assert refusal.message.startswith("batch_export.lake: the server (dialect 2026)")
    assert refusal.allow is not None
    assert "AwsS3 or S3Compatible" in refusal.allow
    assert "policy: {attempt: [not-accepted]}" in refusal.allow


def test_addresses_are_refused_by_servers_of_2026_and_escaped() -> None:
    url = "https://a/\x1b[31m\n"
    resource = export(destination={"type": "HTTP", "config": {"url": url, "token": "t"}})
    assert one(plan_of(resource)).message.isprintable()
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


IGNORED: list[tuple[Resource, LiveObject, str]] = [
    (export(timezone="Europe/Berlin"), live_export("e2", "Other"), "not-accepted"),
    (export(timezone="Europe/Berlin"), live_export(), "not-accepted"),
    (export(timezone="Europe/Berlin"), live_export(timezone="UTC"), ""),
    (export(timezone="UTC"), live_export("e2", "Other"), ""),
    (export(timezone=None), live_export(), ""),
    (export(interval="day"), live_export(), ""),
    (project(onboarding_tasks={"a": "completed"}), live_export(), "not-accepted"),
]


@pytest.mark.parametrize(("resource", "live", "rule"), IGNORED)
def test_a_field_that_the_server_lacks_is_refused_as_every_plan_would_repeat_it(
    resource: Resource, live: LiveObject, rule: str
) -> None:
    for dialect in (Dialect.V2025, None):
        plan = plan_of(resource, live_project(), live, dialect=dialect)
        expected = {rule} if rule and dialect is not None else set()
        assert ids(plan) & {"not-accepted"} == expected


def test_plan_v9_a_near_miss_is_refused_unless_live_has_it_or_the_policy_attempts_it() -> None:
    wanted = export(interval="dayly", destination=s3(prefix="new/"))
    (refusal,) = plan_of(wanted, dialect=OLD).refusals
    assert refusal.rule == "unknown-value"
    assert refusal.message == "unknown value 'dayly' for interval of batch_export.lake"
    assert refusal.allow is not None
    assert refusal.allow.startswith("did you mean 'day'? to send it anyway: `policy: {attempt:")
    attempted = plan_of(wanted, dialect=OLD, policy=Policy(attempt=("unknown-value",)))
    assert ids(attempted) == set()
    live = live_export(interval="dayly")
    assert ids(plan_of(wanted, live_project(), live, dialect=OLD)) == set()
    hourly = live_export(interval="hour")
    assert ids(plan_of(wanted, live_project(), hourly, dialect=OLD)) == {"unknown-value"}


def test_plan_v9_a_near_miss_in_the_body_of_a_destination_is_refused() -> None:
    wrong = export(destination=s3(file_format="Parquett"))
    assert ids(plan_of(wrong, dialect=OLD)) == {"unknown-value"}
    assert ids(plan_of(export(destination=s3(file_format="Avro")), dialect=OLD)) == set()


@pytest.mark.parametrize("dialect", [None, *Dialect])
def test_model_c_schedules_are_deleted_by_real_servers_only(dialect: Dialect | None) -> None:
    live = live_of(live_project(), live_export(**ENDED), dialect=dialect)
    plan = planned(desired_of(WEB, export(paused=True)), live)
    is_refused = dialect in (Dialect.V2025, Dialect.V2026)
    assert [refusal.rule for refusal in plan.refusals] == ["schedule-deleted"] * is_refused


# Objects that are deleted with the project that contains them, and what must not be

OLD_DELETIONS = project("old")
ABSENT = replace(OLD_DELETIONS, state=State.ABSENT)
DELETABLE = frozenset({"project"})
NEVER = Policy(deletable=DELETABLE)
GIT = replace(NEVER, prune=True)
TRUE = replace(NEVER, prune=True)
WAYS = [(GIT, ()), (TRUE, ()), (NEVER, (ABSENT,)), (GIT, (ABSENT,))]
"""The ways to delete the project, each by its policy and what the files declare."""
NAMES = ["prune-git", "prune-true", "absent", "absent-and-prune-git"]


def in_old(key: str, **parts: object) -> Resource:
    return export(key, parent="old", **parts)  # type: ignore[arg-type]


def live_old(*names: str) -> Live:
    """Return two projects, with exports in the second one."""
    exports = [live_export(f"e{n}", name, parent=2) for n, name in enumerate(names)]
    return live_of(live_project(), live_project(2, "Old"), *exports)


def plan_of_deletions(
    policy: Policy,
    declared: tuple[Resource, ...],
    base: Desired | None,
    *names: str,
    live: Live | None = None,
    **selection: tuple[str, ...],
) -> Plan:
    options = PlanOptions(selection=Selection(**selection), allow_replace=True)
    desired = desired_of(WEB, *declared)
    plan = planned(desired, live or live_old(*names), policy, base=base, options=options)
    assert "project.old:delete" in [change.id for change in plan.effective]
    return plan


def rules(plan: Plan) -> list[str]:
    return [refusal.rule for refusal in plan.refusals]


@pytest.mark.parametrize(("policy", "declared"), WAYS, ids=NAMES)
def test_plan_d1_an_unmanaged_object_keeps_a_project_that_is_pruned(
    policy: Policy, declared: tuple[Resource, ...]
) -> None:
    """`state: absent` deletes it, too, and names all."""
    names = [f"Hand-made {n}" for n in range(9)]
    plan = plan_of_deletions(policy, declared, desired_of(WEB, OLD_DELETIONS), *names)
    if not declared:
        assert rules(plan) == ["unmanaged-inside"]
        return
    assert rules(plan) == []
    lost = plan.effective[-1].consequences[0].message
    assert all(f"'{name}'" in lost for name in names)


def test_deletions_by_their_project_cost_no_calls() -> None:
    base = desired_of(WEB, OLD_DELETIONS, *(in_old(f"e{n}") for n in range(9)))
    with_nine = plan_of_deletions(GIT, (), base, *(f"E{n}" for n in range(9)))
    empty = plan_of_deletions(GIT, (), desired_of(WEB, OLD_DELETIONS))
    assert calls_of(with_nine, KINDS) == calls_of(empty, KINDS) == 4


def test_the_address_of_an_unmanaged_object_is_in_the_violation() -> None:
    (refusal,) = plan_of_deletions(GIT, (), desired_of(WEB, OLD_DELETIONS), "A", "B").refusals
    assert "'A' (id e0)" in refusal.message
    assert "'B' (id e1)" in refusal.message
    assert refusal.addresses == (Address("project", "old"),)


def test_a_saved_deletion_of_a_project_needs_every_deletion_in_it() -> None:
    """A saved plan does not delete a project with an export that was modified."""
    base = desired_of(WEB, OLD_DELETIONS, in_old("a"), in_old("b"))
    saved, modified = plan_of_deletions(GIT, (), base, "A", "B"), live_old("A", "B")
    (a, b), web = modified.of("batch_export"), modified.of("project")
    live = live_of(*web, replace(a, body={**a.body, "interval": "day"}), b)
    now = plan_of_deletions(GIT, (), base, live=live)
    assert differences(saved, now, live=live, kinds=KINDS, mask=str) == (
        'batch_export.a: live value of interval is "day" now, the saved plan has "hour"',
    )


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
