"""The paths of the document, made from the routes that are served."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from reconciler.emulator.access import Operation
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.catalogue import PARAMETERS, TAGS, Doc, docs_of
from reconciler.emulator.openapi.parts import NUMBER, UUID, ref

_STATUSES: Mapping[int, str] = {
    400: "A field is not valid, or the body is not JSON.",
    401: "The key is missing or unknown.",
    402: "The organization's plan lacks this feature.",
    403: "A scope, a limit of the key, a role or a feature flag is missing.",
    404: "There is no such object.",
    409: "The name is taken.",
    415: "The body is not JSON.",
    429: "Too many calls; `Retry-After` says for how many seconds. Or too many backfills.",
    500: "The imitated server crashes here.",
}
_PLACES: Mapping[str, dict[str, Any]] = {
    "organization": {"type": "string", "description": "A UUID, or `@current`."},
    "project": {"type": ["integer", "string"], "description": "A number, or `@current`."},
    "run": UUID,
    "backfill": UUID,
}


def paths_of(served: Mapping[str, Mapping[str, Operation]], dialect: Dialect) -> dict[str, Any]:
    """Return every operation by path. Paths without operations do not exist in this dialect."""
    docs = docs_of(dialect)
    return {
        path: {
            "parameters": [_place(path, name) for name in re.findall(r"{(\w+)}", path)],
            **{
                method.lower(): _operation(path, operation, docs)
                for method, operation in operations.items()
            },
        }
        for path, operations in served.items()
        if operations
    }


def _place(path: str, name: str) -> dict[str, Any]:
    schema = _PLACES.get(name)
    if schema is None:
        schema = UUID if "batch_exports/{id}" in path else {**NUMBER, "minimum": 1}
        schema = {"type": "string"} if "personal_api_keys" in path else schema
    return _parameter(name, "path", schema)


def _parameter(name: str, place: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _operation(path: str, operation: Operation, docs: Mapping[str, Doc]) -> dict[str, Any]:
    name = operation.handler.__qualname__
    doc = docs[name]
    described: dict[str, Any] = {
        "summary": doc.summary,
        "tags": [TAGS[name.partition(".")[0]]],
        "responses": _responses(path, operation, doc),
    }
    if doc.body is not None:
        content = _json(ref(doc.body))
        described["requestBody"] = {"required": doc.body_required, "content": content}
    if doc.query:
        described["parameters"] = [
            _parameter(name.removeprefix("log_"), "query", PARAMETERS[name]) for name in doc.query
        ]
    return described


def _responses(path: str, operation: Operation, doc: Doc) -> dict[str, Any]:
    statuses = {401, 403}
    responses: dict[str, Any] = {}
    if operation.with_key:
        done: dict[str, Any] = {"description": "Done."}
        if doc.answer is not None:
            done["content"] = _json(ref(_answer(path, doc.answer)))
        responses[str(doc.status)] = done
        statuses |= {429, *doc.refusals}
        statuses |= {400, 415} if doc.body is not None else set()
    if "{" in path:
        statuses.add(404)
    for status in sorted(statuses):
        responses[str(status)] = _refusal(status, empty=status in doc.empty)
    for status in doc.empty:
        responses[str(status)] = _refusal(status, empty=True)
    return responses


def _answer(path: str, name: str) -> str:
    """Return the schema name of an answer; `environments/` shows more settings."""
    of_environment = name == "Project" and path.startswith("/api/environments/")
    return "ProjectOfEnvironment" if of_environment else name


def _refusal(status: int, *, empty: bool) -> dict[str, Any]:
    refusal: dict[str, Any] = {"description": _STATUSES[status]}
    if not empty:
        refusal["content"] = _json(ref("Error"))
    if status == 429:
        refusal["headers"] = {"Retry-After": {"schema": {"type": "string"}}}
    return refusal


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
