"""The requests of a change. Paths come from the kind, ids from the run."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.change import Action
from reconciler.model.kind import Kind
from reconciler.model.request import Repeat, Request
from reconciler.model.values import JSONObject


@dataclass(frozen=True, slots=True)
class Place:
    """The scope of a change: the organization, and the parent's live id if there is one."""

    organization: str
    parent_id: str | None


def collection_path(kind: Kind, place: Place) -> str:
    """Return the path that lists and creates objects of this kind."""
    if kind.parent is not None and place.parent_id is None and kind.paths.survey is not None:
        return kind.paths.survey.format(organization=place.organization)
    return kind.paths.collection.format(organization=place.organization, parent=place.parent_id)


def object_path(kind: Kind, place: Place, live_id: str) -> str:
    """Return the path of one object."""
    return f"{collection_path(kind, place)}{live_id}/"


def read_request(kind: Kind, place: Place, live_id: str) -> Request:
    """Return the request that reads one object."""
    return Request("GET", object_path(kind, place, live_id), Repeat.SAFE)


def create_request(kind: Kind, place: Place, body: JSONObject) -> Request:
    """Return the request that creates an object: never repeated without a search."""
    return Request("POST", collection_path(kind, place), Repeat.AFTER_LOOKING, body=body)


def patch_request(kind: Kind, place: Place, live_id: str, body: JSONObject) -> Request:
    """Return the request that sets fields. Repeating it has the same effect."""
    return Request("PATCH", object_path(kind, place, live_id), Repeat.SAFE, body=body)


def delete_request(kind: Kind, place: Place, live_id: str) -> Request:
    """Return the request that deletes an object. Repeating it is a 404."""
    return Request("DELETE", object_path(kind, place, live_id), Repeat.SAFE)


def toggle_request(kind: Kind, place: Place, live_id: str, action: Action) -> Request:
    """Return the request that pauses or unpauses (docs/service.md 1.7). Repeating is safe."""
    path = f"{object_path(kind, place, live_id)}{action.value}/"
    return Request("POST", path, Repeat.SAFE, body={})
