"""Test the document of a plan."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.diagnostics import Mark
from reconciler.model.decoding import decode
from reconciler.model.kind import Action
from reconciler.model.plan import Plan, PlanSource, encode
from reconciler.model.resource import State
from reconciler.model.settings import Limit, Policy
from reconciler.model.values import SecretRef
from reconciler.render.document import link
from reconciler.render.html import plan_as_html
from reconciler.render.plan_document import Document, document_of, environment_as_text
from reconciler.render.plan_fields import LineKind
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
    with_secrets,
)

RULE = Mark("reconciler.yaml", 7, 3, 11)
POLICY = Policy(max_deletes=Limit(0), marks={"max_deletes": RULE})


def document(*, verbose: bool = False) -> Document:
    desired = desired_of(
        project(),
        replace(export("new", destination=s3(bucket_name="new")), mark=Mark("a.yaml", 2, 3, 3)),
        replace(export("old", state=State.ABSENT), mark=Mark("b.yaml", 9)),
        export("slow", interval="day"),
    )
    live = live_of(
        live_project(),
        live_export("e1", "Old"),
        live_export("e2", "Slow", interval="hour"),
        live_export("e3", "Other", destination=s3(prefix="other/")),
    )
    return document_of(decode(encode(planned(desired, live, POLICY))), verbose=verbose)


def test_entries_are_in_the_order_of_severity_in_every_format() -> None:
    """What is new comes after dangers, before warnings."""
    worst_first = [Action.DELETE, Action.CREATE, Action.UPDATE]
    assert [entry.change.action for entry in document().entries] == worst_first


def test_changes_and_violations_carry_their_place_through_the_saved_form() -> None:
    places = {entry.title: entry.change.at for entry in document().entries}
    assert places == {
        'batch_export.new "New"': Mark("a.yaml", 2, 3, 3),
        'batch_export.old "Old" in Web': Mark("b.yaml", 9),
        'batch_export.slow "Slow"': None,
    }
    assert [violation.at for violation in document().plan.refusals] == [RULE]


def test_a_deletion_is_brief_and_has_all_fields_if_verbose() -> None:
    deletion = document().entries[0]
    assert deletion.lines == ()
    verbose = document(verbose=True).entries[0]
    assert {"name", "interval", "destination.type"} <= {line.name for line in verbose.lines}
    assert {(line.kind, line.after) for line in verbose.lines} == {(LineKind.SET, "")}


def test_a_changed_field_has_both_sides() -> None:
    (update,) = (entry for entry in document().entries if entry.change.action is Action.UPDATE)
    (line,) = update.lines
    assert (line.name, line.kind) == ("interval", LineKind.CHANGED)
    assert (line.before, line.after) == ('"hour"', '"day"')


def test_unmanaged_objects_are_counted_and_listed() -> None:
    assert document().unmanaged_count == "1 unmanaged object"
    assert document().unmanaged == ('batch_export.id:e3 "Other" in Web',)


def test_experience_35_the_summary_counts_resources() -> None:
    assert document().summary == (
        "Plan: 1 to create, 1 to update, 1 to delete, 1 unchanged (4 resources)."
    )
    desired = desired_of(project(), export(paused=True, interval="day"))
    plan = planned(desired, live_of(live_project(), live_export()))
    assert document_of(plan).summary == (
        "Plan: 0 to create, 1 to update, 1 to pause, 0 to delete, 1 unchanged (2 resources)."
    )


def test_what_was_applied_is_one_line_with_age_commits_and_counts() -> None:
    source = PlanSource(
        environment="e",
        organization="o",
        base_url="u",
        tool_version="t",
        applied="1a2b3c4d5e6f",
        applied_commits=14,
        applied_time="2026-01-01T12:00:00Z",
        recorded=41,
        declared=42,
    )
    plan = Plan(source, (), created_at="2026-01-10T13:00:00Z")

    def applied(plan: Plan, **fields: Any) -> str:
        return document_of(replace(plan, source=replace(source, **fields))).applied

    assert applied(plan) == "1a2b3c4 (9 days, 14 commits ago): 41 of 42 resources"
    assert applied(plan, applied_time=None).startswith("1a2b3c4 (14 commits ago): ")
    assert applied(plan, applied_time="2026-01-10T11:00:00Z").startswith("1a2b3c4 (2 hours, ")
    assert applied(plan, applied_time="yesterday").startswith("1a2b3c4 (14 commits ago): ")
    assert applied(plan, applied_commits=0).startswith("1a2b3c4 (9 days ago): ")
    at_head = {"head": "1a2b3c4d5e6f", "head_ref": "main"}
    assert applied(plan, **at_head).startswith("main@1a2b3c4: ")
    assert applied(plan, applied=None) == "no inventory"


def test_an_organization_is_short_if_its_id_is_a_uuid() -> None:
    source = PlanSource("prod", "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0", "https://x.example", "t")
    assert environment_as_text(source) == "prod · https://x.example · organization 0188461e…6ac0"
    assert environment_as_text(source, full=True).endswith(source.organization)
    other = replace(source, organization="acme-organization")
    assert environment_as_text(other).endswith("organization acme-organization")


def test_plan_v10_an_organization_is_shown_by_name_if_it_is_known() -> None:
    source = PlanSource("prod", "0188461e-55a4", "https://x.example", "t", organization_name="A\nB")
    assert environment_as_text(source) == 'prod "A\\nB" · https://x.example'
    full = 'prod "A\\nB" · https://x.example · organization 0188461e-55a4'
    assert environment_as_text(source, full=True) == full
    comment = plan_as_markdown(Plan(source, ()))
    assert ' · "A&#92;nB" · https&#58;//x.example · 0 resources' in comment


def test_security_25_no_address_and_no_secret_hides_in_a_group_of_new_objects() -> None:
    usual = {"bucket_name": "acme", "endpoint_url": "https://s3.acme.example"}
    created = [export(f"e{n}", destination=with_secrets(**usual)) for n in range(60)]
    evil = {**usual, "endpoint_url": "https://evil.example"}
    created[45] = export("e45", destination=s3(**evil))
    created[46] = export("e46", destination=with_secrets(**{**usual, "bucket_name": "evil-bucket"}))
    other = {**usual, "aws_access_key_id": SecretRef.of("env", "PRODUCTION")}
    created[47] = export("e47", destination=s3(**other))
    plan = planned(desired_of(project(), *created), live_of(live_project()))
    for text in (plan_as_text(plan), plan_as_markdown(plan), plan_as_html(plan)):
        for shown in ("s3.acme.example", "evil.example", "evil-bucket", "57 batch exports"):
            assert shown in text
    for text in (plan_as_markdown(plan), plan_as_html(plan)):
        assert "env:KEY}" in text
        assert "env:PRODUCTION}" in text


def test_an_address_cannot_end_a_link_or_begin_a_title() -> None:
    page = 'https://x.example/a?b=%20#c" "title'
    assert link("x", page) == "[x](https://x.example/a?b=%20#c%22%20%22title)"
    assert link("x", "https://x/>)|\n<b") == "[x](https://x/%3E%29%7C%0A%3Cb)"
