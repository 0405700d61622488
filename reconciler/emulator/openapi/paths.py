"""The operations of the document."""

from __future__ import annotations

from typing import Any

from reconciler.emulator.dialects import Dialect

_ERRORS = {
    "400": "A field is wrong, or the body is no JSON.",
    "401": "The key is missing or unknown.",
    "403": "A scope, a limit of the key, a role or a feature flag is missing.",
    "404": "There is no such object.",
    "415": "The body is not JSON.",
    "429": "Throttled; `Retry-After` says for how many seconds.",
}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _page(item: str, *, cursor: bool = False) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "next": {"type": ["string", "null"]},
        "previous": {"type": ["string", "null"]},
        "results": {"type": "array", "items": _ref(item)},
    }
    if not cursor:
        properties["count"] = {"type": "integer"}
    return {"type": "object", "properties": properties, "required": sorted(properties)}


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


_LIMITS = [
    _parameter("limit", "query", {"type": "integer", "minimum": 1}),
    _parameter("offset", "query", {"type": "integer", "minimum": 0}),
]
_CURSOR = [
    _parameter("cursor", "query", {"type": "string"}),
    _parameter("ordering", "query", {"type": "string"}),
]


def _operation(  # noqa: PLR0913 - an operation has these parts
    summary: str,
    tag: str,
    *,
    answer: dict[str, Any] | None,
    status: str = "200",
    body: dict[str, Any] | None = None,
    query: list[dict[str, Any]] | None = None,
    needed: bool = True,
) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done."}
    if answer is not None:
        done["content"] = _json(answer)
    operation: dict[str, Any] = {
        "summary": summary,
        "tags": [tag],
        "responses": {
            status: done,
            **{
                code: {"description": told, "content": _json(_ref("Error"))}
                for code, told in _ERRORS.items()
            },
        },
    }
    if body is not None:
        operation["requestBody"] = {"required": needed, "content": _json(body)}
    if query is not None:
        operation["parameters"] = query
    return operation


def paths_of(dialect: Dialect) -> dict[str, Any]:
    """All operations by path. Path parameters stand beside them."""
    paths: dict[str, Any] = {}
    uuid = {"type": "string", "format": "uuid"}
    places: dict[str, tuple[str, dict[str, Any]]] = {
        "/api/organizations/{organization_id}": ("organization_id", {"type": "string"}),
        "/api/projects/{project_id}": ("project_id", {"type": "integer", "minimum": 1}),
    }
    for base, (name, schema) in places.items():
        parameter = _parameter(name, "path", schema)
        one = [parameter, _parameter("id", "path", uuid)]
        creates = dialect.creates_for_organization or name == "project_id"
        paths[f"{base}/batch_exports/"] = {"parameters": [parameter], **_list(creates=creates)}
        paths[f"{base}/batch_exports/{{id}}/"] = {"parameters": one, **_one()}
        for rest, operation in _actions(dialect).items():
            if rest.startswith("backfill") and name == "organization_id":
                continue
            paths[f"{base}/batch_exports/{{id}}/{rest}/"] = {
                "parameters": one,
                "post": operation,
            }
        if name == "project_id":
            paths |= _runs(f"{base}/batch_exports/{{id}}/", one, uuid)
    paths |= _projects(dialect)
    return paths


def _list(*, creates: bool) -> dict[str, Any]:
    found = {
        "get": _operation(
            "List batch exports, newest first",
            "batch exports",
            answer=_page("BatchExport"),
            query=_LIMITS,
        )
    }
    if creates:
        found["post"] = _operation(
            "Create a batch export",
            "batch exports",
            answer=_ref("BatchExport"),
            status="201",
            body=_ref("BatchExportBody"),
        )
    return found


def _one() -> dict[str, Any]:
    tag, answer = "batch exports", _ref("BatchExport")
    return {
        "get": _operation("Read a batch export", tag, answer=answer),
        "patch": _operation(
            "Change fields; a config is merged",
            tag,
            answer=answer,
            body=_ref("BatchExportPatch"),
            needed=False,
        ),
        "delete": _operation("Delete, for good", tag, answer=None, status="204"),
    }


def _actions(dialect: Dialect) -> dict[str, Any]:
    small = dialect.small_answers
    paused = {"type": "object", "properties": {"paused": {"type": "boolean"}}}
    answer = paused if small else _ref("BatchExport")
    started = {"type": "object", "properties": {"backfill_id": {"type": "string"}}}
    moments = {
        "type": "object",
        "properties": {
            "start_at": {"type": ["string", "null"]},
            "end_at": {"type": ["string", "null"]},
        },
    }
    found = {
        "pause": _operation(
            "Pause", "batch exports", answer=answer, body={"type": "object"}, needed=False
        ),
        "unpause": _operation(
            "Unpause", "batch exports", answer=answer, body={"type": "object"}, needed=False
        ),
    }
    for path in dialect.backfill_paths:
        found[path] = _operation(
            "Export a past range",
            "batch exports",
            answer=started if small else _ref("BatchExport"),
            status="201" if dialect.integrations else "200",
            body=moments,
            needed=False,
        )
    return found


def _runs(base: str, one: list[dict[str, Any]], uuid: dict[str, Any]) -> dict[str, Any]:
    with_run = [*one, _parameter("run_id", "path", uuid)]
    return {
        f"{base}runs/": {
            "parameters": one,
            "get": _operation("List runs", "runs", answer=_page("Run", cursor=True), query=_CURSOR),
        },
        f"{base}runs/{{run_id}}/": {
            "parameters": with_run,
            "get": _operation("Read a run", "runs", answer=_ref("Run")),
        },
        f"{base}runs/{{run_id}}/logs/": {
            "parameters": with_run,
            "get": _operation("Logs of a run", "runs", answer=_page("LogEntry"), query=_LIMITS),
        },
        f"{base}logs/": {
            "parameters": one,
            "get": _operation(
                "Logs of an export, newest first", "runs", answer=_page("LogEntry"), query=_LIMITS
            ),
        },
    }


def _projects(dialect: Dialect) -> dict[str, Any]:
    base = "/api/organizations/{organization_id}/projects/"
    organization = _parameter("organization_id", "path", {"type": "string"})
    one = [organization, _parameter("id", "path", {"type": "integer", "minimum": 1})]
    tag, answer, body = "projects", _ref("Project"), _ref("ProjectBody")
    conflict = {"description": "The name is taken.", "content": _json(_ref("Error"))}
    create = _operation("Create a project", tag, answer=answer, status="201", body=body)
    change = _operation("Change settings", tag, answer=answer, body=body, needed=False)
    if dialect.strict_projects:
        create["responses"]["409"] = change["responses"]["409"] = conflict
    return {
        base: {
            "parameters": [organization],
            "get": _operation("List projects", tag, answer=_page("ProjectSummary"), query=_LIMITS),
            "post": create,
        },
        f"{base}{{id}}/": {
            "parameters": one,
            "get": _operation("Read a project", tag, answer=answer),
            "patch": change,
            "delete": _operation("Delete a project and its data", tag, answer=None, status="204"),
        },
        f"{base}{{id}}/activity/": {
            "parameters": one,
            "get": _operation("Activity", tag, answer=answer),
        },
        f"{base}{{id}}/is_generating_demo_data/": {
            "parameters": one,
            "get": _operation("Is demo data being made?", tag, answer=answer),
        },
        f"{base}{{id}}/reset_token/": {
            "parameters": one,
            "patch": _operation(
                "Give it another api_token", tag, answer=answer, body=body, needed=False
            ),
        },
    }
