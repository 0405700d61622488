"""What is saved is as its schema says: plans and audit logs, and every word in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from reconciler.model import event, run
from reconciler.model.decoding import InvalidPlanFile, decode, read_log
from reconciler.model.kind import Action, Dialect
from reconciler.model.plan import Change, Origin, Reason, SecretUse, Severity, encode
from reconciler.model.schemas import schema
from reconciler.model.values import Address, SecretRef
from scripts.saved_schemas import generated
from tests.conftest import ROOT
from tests.golden.test_plans import CASES
from tests.support.records import log_of
from tests.support.worlds import desired_of, export, live_of, live_project, planned, project

NOW = datetime(2026, 6, 1, tzinfo=UTC)
PLAN, EVENT = schema("plan") or {}, schema("event") or {}
HTTP = {"type": "HTTP", "config": {"url": "https://a", "token": SecretRef.of("env", "KEY")}}
A_PLAN = planned(desired_of(project(), export(destination=HTTP)), live_of(live_project()))
CREATED = Change(Address("project", "web"), Action.CREATE, "Web")
PLANNED = run.PlannedBackfill(NOW, NOW + timedelta(hours=2), runs=2)
LAKE = run.ObjectBackfills(Address("batch_export", "lake"), "Lake", "e1", "1", "Web", (PLANNED,))
BACKFILLS = run.BackfillPlan(A_PLAN.source, (LAKE,), created_at=NOW.isoformat())
ENDED = replace(LAKE, ends=(run.BackfillEnd(PLANNED, run.BackfillState.STARTED, "b1"),))
EVENTS: tuple[event.Event, ...] = (
    event.Planned(A_PLAN),
    event.Started(CREATED),
    event.Sending("POST", "/api/organizations/o/projects/", change_id=CREATED.id),
    event.Sent("POST", "/api/organizations/o/projects/", 201, 2, 0.25, CREATED.id),
    event.Sent("GET", "/api/organizations/o/projects/", None, error="no answer in 30 s"),
    event.Waiting(41.5, "rate limit (480 a minute)"),
    event.Reading("projects", 100, 250),
    event.Reading("projects", 100),
    event.Done(CREATED, "1", ("timezone was altered",), adopted=True),
    event.Failed(CREATED, "the service said no", "ask for it", unknown=True, live_id="1"),
    event.Skipped(CREATED, "the run was interrupted"),
    event.Interrupting(forced=True),
    event.Verifying(),
    event.BackfillsPlanned(BACKFILLS),
    event.BackfillsEnded((ENDED,), interrupted=True),
    *(
        event.Ended(event.Report(interrupted=interrupted), verified=False)
        for interrupted in (False, True)
    ),
)


SAVED = ROOT / "tests/contract/saved"
"""Files of the format. After the first release they are never written again."""


def test_saved_files_are_read_and_written_as_before() -> None:
    plan, events = (SAVED / "plan.json").read_bytes(), (SAVED / "events.jsonl").read_bytes()
    # In the file, a value that fits in a line has one.
    assert json.dumps(json.loads(encode(decode(plan)))) == json.dumps(json.loads(plan))
    assert decode(plan) == replace(A_PLAN, changes=A_PLAN.effective)
    assert list(map(json.loads, log_of(*EVENTS).splitlines())) == list(
        map(json.loads, events.splitlines())
    )
    (logged,) = read_log(events) or ()
    assert (logged.plan_id, logged.exit_code, logged.changes) == (BACKFILLS.plan_id, 130, ())


@pytest.mark.parametrize(
    ("old", "new"), [(b"T02:00", b"T03:00"), (b'"runs":2', b'"runs":3'), (b'"rows":', b'"row":')]
)
def test_edited_backfills_in_an_audit_log_are_refused(old: bytes, new: bytes) -> None:
    lines = (SAVED / "events.jsonl").read_bytes().splitlines()
    (planned,) = (line for line in lines if b'"backfills_planned"' in line)
    with pytest.raises(InvalidPlanFile, match=r"log:1: .*plan"):
        read_log(planned.replace(old, new, 1), name="log")


def wrong(form: dict[str, Any], value: Any) -> list[str]:
    """What a schema by itself finds wrong: without a registry, a reference elsewhere fails."""
    errors = Draft202012Validator(form).iter_errors(value)
    return [f"{error.json_path}: {error.message}" for error in errors]


def test_the_schemas_are_generated_and_current() -> None:
    for path, text in generated().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, "run scripts/saved_schemas.py"


@pytest.mark.parametrize("form", [PLAN, EVENT], ids=lambda form: form["title"])
def test_a_schema_stands_alone_and_describes_every_value(form: dict[str, Any]) -> None:
    Draft202012Validator.check_schema(form)
    assert urlsplit(form["$id"]).scheme
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(form)))
    assert references <= {f"#/$defs/{name}" for name in form["$defs"]}
    assert list(_undescribed(form)) == []


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
    field = {"path": ["token"], "secret": True, "reset": False, "origin": "unknown", "written": []}
    plan["changes"][0]["fields"] = [field]
    assert wrong(PLAN, plan) == []
    plan["changes"][0]["fields"] = [{**field, "before": "hunter2"}]
    assert wrong(PLAN, plan)


@pytest.mark.parametrize("form", [PLAN, EVENT], ids=lambda form: form["title"])
@pytest.mark.parametrize("term", [Action, Severity, Origin, Reason, SecretUse])
def test_the_schemas_know_every_word_and_its_meaning(form: dict[str, Any], term: Any) -> None:
    node = form["$defs"][f"{term.__name__[:1].lower()}{term.__name__[1:]}"]
    assert node["enum"] == [word.value for word in term]
    assert all(word.meaning and word.meaning in node["description"] for word in term)
    assert set(PLAN["$defs"]["dialect"]["enum"]) == {dialect.value for dialect in Dialect}


def test_every_line_of_an_audit_log_is_as_its_schema_says() -> None:
    lines = [json.loads(line) for line in log_of(*EVENTS).splitlines()]
    assert [wrong(EVENT, line) for line in lines] == [[]] * len(EVENTS)
    assert wrong(EVENT, {**lines[1], "more": 1})
    names = [choice["$ref"].rpartition("/")[2] for choice in EVENT["anyOf"]]
    known = {EVENT["$defs"][name]["properties"]["event"]["const"] for name in names}
    assert {line["event"] for line in lines} == known


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
