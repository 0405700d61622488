"""No perpetual diff: every field of both kinds, every destination type, every dialect.

I8, I12: every field absent, null, empty, default and set, from one to the other. The cases come
from the schemas, so a new field has them without a change here. What is stored is read from the
service; what the plan changes is compared with what the schemas say is equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.kinds import all_kinds
from reconciler.model.kind import Dialect
from reconciler.model.schemas import (
    MergedObject,
    known_schema,
    own_properties,
    schema_names,
    types_of,
)
from tests.conftest import StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.declared import seed
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.fields import AWS_KEYS, COPY_INPUTS, INLINE, INTEGRATIONS, QUERIES
from tests.support.git import Git
from tests.support.limits import LONG

ABSENT = "absent"
SECRETS = {"RECONCILER_SECRET_U": "user-name", "RECONCILER_SECRET_P": "pass-word"}
MERGED = {
    field.name
    for kind in all_kinds()
    for field in kind.fields
    if isinstance(field.type, MergedObject)
}
GIVEN: dict[str, list[Any]] = {
    "filters": [[{"type": "event", "key": name}] for name in "ab"],
    "logs_settings": [{"retention_days": 14}, {"retention_days": 30}],
    "test_account_filters": [[{"key": "email", "type": "person", "value": "x"}]],
    "path_cleaning_filters": [[{"alias": "a", "regex": "b"}]],
    "session_recording_linked_flag": [
        {"id": 1, "key": "a"},
        {"id": 1, "key": "a", "variant": "b"},
    ],
    "session_recording_masking_config": [{"maskAllInputs": True}, {"blockSelector": "b"}],
    "session_recording_trigger_groups": [
        {"version": 2, "groups": groups}
        for groups in ([], [{"id": "a", "sampleRate": 1, "conditions": {}}])
    ],
    "session_replay_config": [{"record_canvas": True}, {"ai_config": {"a": 1}}],
    "modifiers": [{"debug": True}, {"timings": True}],
    "sql_query": QUERIES[:1],
    "timezone": ["Europe/Berlin", "Asia/Tokyo"],
    # Both formats take it.
    "compression": ["gzip", "brotli"],
    "interval": ["hour", "day"],
    "copy_inputs": [{**COPY_INPUTS, "s3_bucket": bucket} for bucket in "bc"],
    "url": [f"https://{region}.i.posthog.com/batch/" for region in ("eu", "us")],
    "endpoint_url": ["https://a", "https://b"],
    "include_events": [["c"], ["d"]],
}
"""Values of fields whose schemas accept more than the service does."""
REFUSED_EMPTY = {"session_recording_linked_flag", "session_recording_trigger_groups"}
LEFT_OUT = {
    *("name", "id", "project", "destination", "hogql_query", "slack_incoming_webhook"),
    # A dashboard of the project, and a pause by a request of its own, have tests of their own.
    *("primary_dashboard", "paused"),
    # They can't change back: service.md 1.3 and 4.2.
    *("legacy_parquet_extension", "access_control"),
}

INLINE_ONLY = {"host", "port", "account", "project_id", "copy_inputs"}
"""Fields of what an integration has, and of exports that copy without one."""


def values_of(name: str, node: Mapping[str, Any], *, required: bool = False) -> list[Any]:
    """Return the values that a field goes through, each once."""
    types = list(types_of(node))
    values: list[Any] = [] if required else [ABSENT]
    values += [None] if "null" in types and not (required and name == "sql_query") else []
    if not required and name not in REFUSED_EMPTY:
        values += [[]] if "array" in types else []
        values += [{}] if "object" in types else []
    values += [node[word] for word in ("default", "x-initial") if word in node]
    values += GIVEN.get(name) or list(_samples(node, types))
    return [value for at, value in enumerate(values) if value not in values[:at] or value is False]


def _samples(node: Mapping[str, Any], types: list[str]) -> Iterator[Any]:
    if "x-open-enum" in node:
        yield from node["x-open-enum"][:2]
    elif node.get("x-rate"):
        yield from (0.4, 1)
    elif node.get("format") == "date-time":
        yield from ("2030-01-01T01:00:00Z", "2031-01-01T00:00:00Z")
    elif "boolean" in types:
        yield from (True, False)
    elif "integer" in types:
        least = node.get("minimum", 1)
        yield from (least, least + 1)
    elif "string" in types:
        yield from ("a", "b")
    elif "array" in types:
        items = list(types_of(node.get("items", {})))
        yield from (["a"], ["b", "c"]) if items == ["string"] else ([{"a": 1}], [{"b": 2}])
    else:
        # By the properties, if the schema lists all.
        names = node.get("properties", {"a": {}, "b": {}})
        yield from ({name: True} for name in list(names)[:2])


def in_dialect(dialect: str, nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a dialect has."""

    def has(node: Mapping[str, Any]) -> bool:
        words = (Dialect(node[word]) if word in node else None for word in ("x-since", "x-until"))
        return Dialect(dialect) in Dialect.between(*words) and not node.get("x-secret")

    return {name: node for name, node in nodes.items() if name not in LEFT_OUT and has(node)}


def spread(values: Mapping[str, list[Any]], at: int) -> dict[str, Any]:
    """Return the value of every field at a step, without those that are absent."""
    chosen = {name: each[at % len(each)] for name, each in values.items()}
    return {name: value for name, value in chosen.items() if value != ABSENT}


def projects(dialect: str) -> dict[str, list[dict[str, Any]]]:
    """Return the specs of projects by key, one for each step."""
    nodes = in_dialect(dialect, own_properties("project"))
    values = {name: values_of(name, node) for name, node in nodes.items()}
    count = max(map(len, values.values()))
    return {
        f"p{number}": [
            {"name": f"P{number}", **spread(values, number + step)} for step in steps(count)
        ]
        for number in range(count)
    }


def destination_types(dialect: str) -> list[str]:
    names = [name.split("/")[1] for name in schema_names() if name.startswith("destinations/")]
    nodes = {name: known_schema(f"destinations/{name}") for name in names}
    hidden = {"Workflows", "FileDownload"}
    return [name for name in sorted(in_dialect(dialect, nodes)) if name not in hidden]


def exports(dialect: str) -> dict[str, list[dict[str, Any]]]:
    """Return the specs of exports by key: those of each type, and those of each own field."""
    result: dict[str, list[dict[str, Any]]] = {}
    for type_name in destination_types(dialect):
        schema = known_schema(f"destinations/{type_name}")
        fields = in_dialect(dialect, schema["properties"])
        integrated = Dialect(dialect).is_since(Dialect(schema.get("x-integration-since", "2026")))
        integrated = integrated and type_name in INTEGRATIONS
        hidden = INLINE_ONLY - ({"host"} if type_name == "Redshift" else set())
        fields = {name: fields[name] for name in fields if not (integrated and name in hidden)}
        needed = {*schema["required"], *schema.get("x-required-unless", ())}
        values = {
            name: values_of(name, node, required=name in needed) for name, node in fields.items()
        }
        secrets = {} if integrated else _secrets(type_name)
        if "mode" in values:
            # An export that copies needs `copy_inputs`, which go through their values here.
            values["mode"] = ["INSERT", ABSENT]
        for number in range(max(map(len, values.values()))):
            bodies = [spread(values, number + step) for step in steps(6)]
            result[f"{type_name}-{number}".lower()] = [
                export(
                    f"{type_name} {number}",
                    destination={
                        "type": type_name,
                        "config": body | secrets,
                        **({"integration": _integration(type_name)} if integrated else {}),
                    },
                )
                for body in bodies
            ]
    for name, node in in_dialect(dialect, own_properties("batch_export")).items():
        if name in ("model", "incremental_mode"):
            continue
        only = {key: words[-1] for key, words in node.get("x-only-with", {}).items()}
        if only.get("model") == "hogql":
            only["sql_query"] = "select event from events"
        own = values_of(name, node, required=name == "interval")
        if name == "sql_query" and dialect == "2025":
            own = QUERIES  # It refuses null.
        elif name == "sql_query" and dialect == "2026":
            continue  # It takes one with its own model only.
        for number in range(len(own)):
            result[f"{name}-{number}"] = [
                export(f"{name} {number}", **only, **spread({name: own}, number + step))
                for step in steps(len(own))
            ]
    return result


def export(name: str, **fields: Any) -> dict[str, Any]:
    plain = {"interval": "hour", "destination": {"type": "NoOp", "config": {}}}
    return {"name": name, "project": {"id": 1}, **plain, **fields}


def _secrets(type_name: str) -> dict[str, str]:
    """Return the secrets of a type without an integration."""
    values = {**INLINE.get(type_name, {}), **(AWS_KEYS if type_name == "S3" else {})}
    return {name: value for name, value in values.items() if str(value).startswith("${secret")}


def _integration(type_name: str) -> int:
    return 1 + list(INTEGRATIONS).index(type_name)


def steps(count: int) -> Iterator[int]:
    """Yield the steps: to the next value; in the long run, from each value to each other."""
    at = 0
    for by in range(count if LONG else 3):
        at += by
        yield at


@pytest.fixture
def running(dialect: str, service_of: StartService) -> RunningEmulator:
    kinds = enumerate(INTEGRATIONS.values(), start=1)
    made = [{"id": number, "project": 1, "kind": kind} for number, kind in kinds]
    given = {**seed({"id": 1, "name": "Web"}), "integrations": made}
    return service_of(given, "--dialect", dialect)


def run(running: RunningEmulator, folder: Path, *words: str) -> Ran:
    return reconciler(*words, "-C", folder, environ={**running.environ(), **SECRETS})


def write_json(folder: Path, resources: Any) -> Path:
    return write(folder, {"reconciler.yaml": "version: 1\n", "all.yaml": json.dumps(resources)})


def check_settled(running: RunningEmulator, folder: Path, where: str) -> None:
    """Apply the files; afterwards a plan is empty."""
    applied = run(running, folder, "apply", "--auto-approve")
    assert applied.code == 0, f"{where}: {applied.err}\n{applied.out[-3000:]}"
    assert "ignored or altered" not in applied.err, f"{where}: {applied.err}"
    again = run(running, folder, "plan", "--detailed-exitcode")
    assert again.code == 0, f"{where}: {again.out[-3000:]}"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_value_of_every_field(
    dialect: str,
    running: RunningEmulator,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """After each step, what is declared is stored, and the next plan is empty.

    So is the plan of what an import writes.
    """
    git = Git.init(tmp_path)
    every = {"projects": projects(dialect), "batch_exports": exports(dialect)}
    last = max(len(specs) for kind in every.values() for specs in kind.values())
    for step in range(last):
        now = {
            collection: {key: specs[min(step, len(specs) - 1)] for key, specs in kind.items()}
            for collection, kind in every.items()
        }
        write_json(tmp_path, now)
        git.commit()
        # logs_settings change once a day.
        running.advance(days=2)
        before = stored(running)
        planned = run(running, tmp_path, "plan", "--format", "json")
        assert planned.code in (0, 2), [
            (item["addresses"], item["message"]) for item in json.loads(planned.out)["refusals"]
        ]
        changes = changed(json.loads(planned.out))
        check_settled(running, tmp_path, f"step {step}")
        after = stored(running)
        for kind, collection in (("project", "projects"), ("batch_export", "batch_exports")):
            for key, spec in now[collection].items():
                was, live = before.get(spec["name"]), after[spec["name"]]
                names = changes.get(key, set())
                check(f"{step} {key}", (spec, own_properties(kind)), (was, live), names)
                if kind == "batch_export":
                    to = spec["destination"]
                    nodes = known_schema(f"destinations/{to['type']}")["properties"]
                    old, new = (body and body["destination"]["config"] for body in (was, live))
                    check(f"{step} {key}", (to["config"], nodes), (old, new or {}), names)
        assert SECRETS["RECONCILER_SECRET_P"] not in json.dumps(running.state())
        folder = write(tmp_path_factory.mktemp("imported"), {"reconciler.yaml": "version: 1\n"})
        imported = run(running, folder, "import")
        count = 1 + sum(map(len, now.values()))
        assert imported.code == 0, imported.err
        planned = run(running, folder, "plan", "--detailed-exitcode")
        assert planned.code == 0, f"step {step}: {planned.out[-3000:]}"
        assert f"({count} resources)." in planned.out


def stored(running: RunningEmulator) -> dict[str, dict[str, Any]]:
    """Return the answer for each object by kind and name."""
    exports = running.call("GET", "/api/projects/1/batch_exports/?limit=10000").json()["results"]
    path = f"/api/organizations/{running.organization}/projects/"
    listed = running.call("GET", f"{path}?limit=10000").json()["results"]
    read = [running.call("GET", f"{path}{item['id']}/").json() for item in listed]
    return {item["name"]: item for item in (*exports, *read)}


def changed(plan: dict[str, Any]) -> dict[str, set[str]]:
    """Return the names of the fields that updates change, by the key of the resource."""
    result: dict[str, set[str]] = {}
    for change in plan["changes"]:
        names = {str(field["path"][-1]) for field in change.get("fields", ())}
        if change["action"] == "update" and names:
            result.setdefault(change["address"].partition(".")[2], set()).update(names)
    return result


def check(
    where: str,
    specs: tuple[Mapping[str, Any], Mapping[str, Any]],
    lives: tuple[Mapping[str, Any] | None, Mapping[str, Any]],
    changes: set[str],
) -> None:
    """Check what is stored, and that the plan changed what was different, in one body.

    `specs` are the declared values and their schemas, `lives` those of before and of now.
    """
    (spec, nodes), (before, after) = specs, lives
    for name, value in spec.items():
        node = nodes.get(name)
        if node is None or name in LEFT_OUT or (isinstance(value, str) and "${secret" in value):
            continue
        if name == "sql_query" and shown(name, after) not in after:
            continue  # Servers of 2025 show the schema of a query.
        is_stored = same(name, node, value, after.get(shown(name, after)))
        assert is_stored, f"{where}.{name}: {value} is {after.get(name)}"
        # A merged object also changes by the keys that the files no longer have.
        if before is not None and not (name in MERGED and isinstance(value, dict)):
            was = same(name, node, value, before.get(shown(name, before)))
            assert (name in changes) is not was, f"{where}.{name}: {before.get(name)} -> {value}"


def shown(name: str, body: Mapping[str, Any]) -> str:
    """Return the name that a field has in an answer."""
    return "hogql_query" if name == "sql_query" and "sql_query" not in body else name


def same(name: str, node: Mapping[str, Any], value: Any, live: Any) -> bool:
    """Return whether the service holds a declared value, or one of the same meaning."""
    if name in MERGED and isinstance(value, dict):
        return bool(value.items() <= (live or {}).items())
    return bool(meaning(name, node, value) == meaning(name, node, live))


def meaning(name: str, node: Mapping[str, Any], value: Any) -> Any:
    is_empty = (name in MERGED or node.get("x-empty-is-null")) and value in ([], {})
    if value is None or is_empty:
        return None if "x-initial-only" in node else leaf(node.get("default"))
    return leaf(value)


def leaf(value: Any) -> Any:
    """Return a value without secrets, with scalars as text: 1, "1", 1.0 and "True" of true."""
    if isinstance(value, dict):
        items = {key: leaf(item) for key, item in value.items() if "secret" not in str(item)}
        return {key: item for key, item in items.items() if item != {}}
    if isinstance(value, list):
        return [leaf(item) for item in value]
    if isinstance(value, bool) or value is None:
        return value if value is None else str(value).lower()
    try:
        return float(value)
    except ValueError:
        return value.lower() if value in ("True", "False") else value


NULL = {"extra_settings": None, "primary_dashboard": None}
"""Without them, servers of 2026 set a dashboard, and a setting of their own."""
_LISTS = ("app_urls", "recording_domains", "live_events_columns", "person_display_name_properties")
TRIMMED = {name: [" https://a ", "b\n"] for name in _LISTS}
"""A block of YAML or a file ends with a line break; the server stores the items trimmed."""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fields", [NULL, TRIMMED], ids=["null", "trimmed"])
def test_fields_of_a_new_project_that_the_service_would_set_itself(
    dialect: str, fields: dict[str, Any], running: RunningEmulator, tmp_path: Path
) -> None:
    # Servers of 2025 crash at null.
    left_out = "primary_dashboard" if dialect == "2025" else None
    new = {name: value for name, value in fields.items() if name != left_out}
    write_json(tmp_path, {"projects": {"new": {"name": "New", **new}}})
    check_settled(running, tmp_path, "new")


@pytest.mark.parametrize("dialect", ["2026"])
def test_an_export_that_lists_hide_is_created_once(
    running: RunningEmulator, tmp_path: Path
) -> None:
    """Lists hide Workflows exports: every plan would create another one."""
    destination = {"type": "Workflows", "config": {"hog_function_id": "a"}}
    flow = export("Flow", destination=destination)
    write_json(tmp_path, {"batch_exports": {"flow": flow}})
    refused = run(running, tmp_path, "apply", "--auto-approve")
    assert refused.code == 5
    assert "pin it here with `id:`" in refused.out
    body = {name: value for name, value in flow.items() if name != "project"}
    made = running.call("POST", "/api/projects/1/batch_exports/", body).json()["id"]
    write_json(tmp_path, {"batch_exports": {"flow": {**flow, "id": made}}})
    plan = run(running, tmp_path, "plan")
    assert "No changes. Live state matches the configuration (1 resource; 1 unmanaged" in plan.out


@pytest.mark.parametrize("dialect", ["2026"])
def test_i13_a_former_name_of_a_time_zone_is_no_change(
    running: RunningEmulator, tmp_path: Path
) -> None:
    """I13: Asia/Calcutta and Asia/Kolkata were a change, with `schedule-moved`."""

    def planned(zone: str, *words: str) -> str:
        daily = export("Daily", interval="day", timezone=zone, project="web")
        web = {"name": "Web", "timezone": zone}
        write_json(tmp_path, {"projects": {"web": web}, "batch_exports": {"daily": daily}})
        ran = run(running, tmp_path, *words or ["plan"])
        assert ran.code == 0, ran.err
        return ran.out

    planned("Asia/Calcutta", "apply", "--auto-approve")
    assert running.exports()["Daily"]["timezone"] == "Asia/Calcutta"
    assert "No changes" in planned("Asia/Kolkata")
    moved = planned("Europe/Kiev")
    assert moved.count('"Asia/Calcutta" -> "Europe/Kiev"') == 2, moved
    assert "schedule-moved" in moved
