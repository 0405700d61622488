"""Test the document of a plan."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reconciler.model.plan import Plan, PlanSource
from reconciler.model.values import SecretRef
from reconciler.render.document import link
from reconciler.render.html import plan_as_html
from reconciler.render.plan_document import document_of
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import s3, with_secrets
from tests.unit.render.plans import exports


def test_what_was_applied_is_one_line_with_age_commits_and_counts() -> None:
    times = {"applied": "1a2b3c4d5e6f", "applied_time": "2026-01-01T12:00:00Z"}
    counts = {"applied_commits": 14, "recorded": 41, "declared": 42}

    def applied(**fields: Any) -> str:
        source = replace(PlanSource("e", "o", "u", "t"), **{**counts, **times, **fields})
        return document_of(Plan(source, (), created_at="2026-01-10T13:00:00Z")).applied

    assert applied() == "1a2b3c4 (9 days, 14 commits ago): 41 of 42 resources"
    assert applied(applied_time="2026-01-10T11:00:00Z").startswith("1a2b3c4 (2 hours, ")
    assert applied(applied_time="yesterday").startswith("1a2b3c4 (14 commits ago): ")
    assert applied(applied_commits=0).startswith("1a2b3c4 (9 days ago): ")
    assert applied(head="1a2b3c4d5e6f", head_ref="main").startswith("main@1a2b3c4: ")
    assert applied(applied=None) == "no inventory"


def test_security_25_no_address_and_no_secret_hides_in_a_group_of_new_objects() -> None:
    usual = {"bucket_name": "acme", "endpoint_url": "https://s3.acme.example"}
    evil = {**usual, "endpoint_url": "https://evil.example"}
    other = {**usual, "aws_access_key_id": SecretRef.of("env", "PRODUCTION")}
    hidden = {
        45: s3(**evil),
        46: with_secrets(**{**usual, "bucket_name": "evil-bucket"}),
        47: s3(**other),
    }
    usually = with_secrets(**usual)
    plan = exports(60, lambda number: {"destination": hidden.get(number, usually)})
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
