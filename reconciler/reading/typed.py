"""Turn the body of an answer into a live object, or refuse it. No I/O.

An odd answer is never passed on as "does not exist": the object would be created a second time.
"""

from __future__ import annotations

from reconciler.errors import InvalidResponse
from reconciler.model.kind import Kind
from reconciler.model.live import LiveObject, id_text
from reconciler.model.values import JSON, JSONObject
from reconciler.model.wording import json_shown, printable


def live_object(
    kind: Kind, body: JSON, *, expected_id: str | None, complete: bool, label: str
) -> LiveObject:
    """Return the object of an answer.

    `expected_id` is the id that was requested, None for an object of a list or of a create.
    `complete`: the answer has every field, unlike the short form of a list. `label` is the request,
    for messages.

    Raises InvalidResponse: the body is no object, or its id, name or parent is wrong.
    """
    if not isinstance(body, dict):
        shown = "empty" if body is None else json_shown(body)
        raise _invalid(label, f"the response is {shown}, an object was expected")
    live_id, name = id_text(body.get("id")), body.get("name")
    if live_id is None:
        raise _invalid(label, f"id is {_field(body, 'id')}, a number or text was expected")
    if expected_id is not None and live_id != expected_id:
        raise _invalid(label, f"id is {live_id}, {printable(expected_id)} was expected")
    if not isinstance(name, str):
        raise _invalid(label, f"name is {_field(body, 'name')}, text was expected")
    parent_id = id_text(body.get(kind.parent_field)) if kind.parent_field else None
    if kind.parent_field and parent_id is None:
        shown = _field(body, kind.parent_field)
        raise _invalid(label, f"{kind.parent_field} is {shown}, a number was expected")
    return LiveObject(kind.name, live_id, name, body, parent_id, complete)


def _field(body: JSONObject, name: str) -> str:
    return json_shown(body[name]) if name in body else "missing"


def _invalid(label: str, problem: str) -> InvalidResponse:
    return InvalidResponse(
        f"{label}: {problem}",
        hint="run it again; if it persists, check that `base_url` is the address of the API",
    )
