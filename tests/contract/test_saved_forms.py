"""What is saved is as its schema says: plans and audit logs, and every word in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from reconciler.applying.journal import Journal
from reconciler.model.address import Address
from reconciler.model.change import Action, Change, Danger, Origin, Reason, SecretUse
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Planned,
    Sent,
    Skipped,
    Started,
)
from reconciler.model.live import Dialect
from reconciler.model.schema_files import schema
from reconciler.planning.planfile import encode
from tests.golden.test_plans import CASES
from tests.support.worlds import NOW, desired_of, export, live_of, planned, project, with_secrets

PLAN, EVENT = schema("plan") or {}, schema("event") or {}
REGISTRY: Registry[Any] = Registry().with_resources(
    [(each["$id"], Resource.from_contents(each)) for each in (PLAN, EVENT)]
)
A_PLAN = planned(desired_of(project(), export(destination=with_secrets())), live_of())
CREATED = Change(Address("project", "web"), Action.CREATE, "Web")
EVENTS: tuple[Event, ...] = (
    Planned(A_PLAN),
    Started(CREATED),
    Sent("POST", "/api/organizations/o/projects/", 201),
    Sent("GET", "/api/organizations/o/projects/", None),
    Done(CREATED, "1", ("timezone was altered",)),
    Failed(CREATED, "the service said no", "ask for it", ambiguous=True),
    Skipped(CREATED, "the run was interrupted"),
    Interrupting(),
)


def wrong(form: dict[str, Any], value: Any) -> list[str]:
    validator = Draft202012Validator(form, registry=REGISTRY)
    return [f"{each.json_path}: {each.message}" for each in validator.iter_errors(value)]


@pytest.mark.parametrize("form", [PLAN, EVENT], ids=lambda form: form["title"])
def test_the_schemas_are_schemas(form: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(form)


def test_every_golden_plan_is_as_its_schema_says() -> None:
    paths = [case / "expected/plan.json" for case in CASES]
    saved = [path for path in paths if path.exists()]
    for path in saved:
        assert wrong(PLAN, json.loads(path.read_bytes())) == [], path


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format_version",), 2),
        (("extra",), 1),
        (("changes", 0, "action"), "destroy"),
        (("changes", 0, "reasons", 0), "because"),
        (("changes", 0, "fields", 0, "path"), []),
        (("changes", 0, "secrets", 0, "use"), "always"),
        (("source", "dialect"), "2020"),
        (("summary", "create"), -1),
    ],
)
def test_another_form_is_not_taken_for_a_plan(place: tuple[Any, ...], value: Any) -> None:
    plan = json.loads(encode(A_PLAN))
    plan["changes"].sort(key=lambda change: not change["secrets"])
    inner = plan
    for part in place[:-1]:
        inner = inner[part]
    assert wrong(PLAN, plan) == []
    inner[place[-1]] = value
    assert wrong(PLAN, plan)


def test_a_secret_with_a_value_is_not_taken_for_a_plan() -> None:
    plan = json.loads(encode(A_PLAN))
    field = {"path": ["token"], "secret": True, "reset": False, "origin": "unknown"}
    plan["changes"][0]["fields"] = [field]
    assert wrong(PLAN, plan) == []
    plan["changes"][0]["fields"] = [{**field, "before": "hunter2"}]
    assert wrong(PLAN, plan)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (("change", "action"), Action),
        (("change", "reasons", "items"), Reason),
        (("change", "consequences", "items", "severity"), Danger),
        (("field", "origin"), Origin),
        (("secret", "use"), SecretUse),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
def test_the_schema_knows_every_word(place: tuple[str, ...], words: Any) -> None:
    node = PLAN["$defs"][place[0]]
    for part in place[1:]:
        node = node[part] if part == "items" else node["properties"][part]
    assert node["enum"] == [each.value for each in words]


def test_the_schema_knows_every_dialect() -> None:
    known = PLAN["properties"]["source"]["properties"]["dialect"]["enum"]
    assert known == [*(each.value for each in Dialect), None]


def test_every_line_of_an_audit_log_is_as_its_schema_says(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    journal = Journal(path, mask=str, now=lambda: NOW)
    for each in EVENTS:
        journal(each)
    journal.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [wrong(EVENT, line) for line in lines] == [[]] * len(EVENTS)
    assert wrong(EVENT, {**lines[1], "more": 1})
    told = {line["event"] for line in lines}
    assert told == {each["properties"]["event"]["const"] for each in EVENT["oneOf"]}


def _undescribed(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    for name, below in node.get("properties", {}).items():
        if not (below.get("description") or "$ref" in below):
            yield name
    for word, below in node.items():
        if word not in ("if", "then"):
            yield from _undescribed(below)


@pytest.mark.parametrize("form", [PLAN, EVENT], ids=lambda form: form["title"])
def test_every_value_is_described(form: dict[str, Any]) -> None:
    assert list(_undescribed(form)) == []
