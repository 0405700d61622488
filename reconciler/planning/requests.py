"""A change as the requests that carry it out. Paths come from the kind, ids from the run."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.model.change import Action
from reconciler.model.kind import Kind
from reconciler.model.request import Repeat, Request
from reconciler.model.values import JSONObject


@dataclass(frozen=True, slots=True)
class Place:
    """Where a change happens: the organization, and the parent's live id if there is one."""

    organization: str
    parent_id: str | None


def collection_path(kind: Kind, place: Place) -> str:
    """The list that an object of this kind belongs to, or is created in."""
    if kind.parent is not None and place.parent_id is None and kind.paths.survey is not None:
        return kind.paths.survey.format(organization=place.organization)
    return kind.paths.collection.format(organization=place.organization, parent=place.parent_id)


def object_path(kind: Kind, place: Place, live_id: str) -> str:
    """One object."""
    return f"{collection_path(kind, place)}{live_id}/"


def read_request(kind: Kind, place: Place, live_id: str) -> Request:
    """Read one object."""
    return Request("GET", object_path(kind, place, live_id), Repeat.SAFE)


def create_request(kind: Kind, place: Place, body: JSONObject) -> Request:
    """Create: never repeated without looking first."""
    return Request("POST", collection_path(kind, place), Repeat.AFTER_LOOKING, body=body)


def patch_request(kind: Kind, place: Place, live_id: str, body: JSONObject) -> Request:
    """Set fields to fixed values: doing it twice is the same."""
    return Request("PATCH", object_path(kind, place, live_id), Repeat.SAFE, body=body)


def delete_request(kind: Kind, place: Place, live_id: str) -> Request:
    """Delete: a second time finds nothing."""
    return Request("DELETE", object_path(kind, place, live_id), Repeat.SAFE)


def toggle_request(kind: Kind, place: Place, live_id: str, action: Action) -> Request:
    """Pause or unpause: doing it twice changes nothing (service-facts 1.7)."""
    path = f"{object_path(kind, place, live_id)}{action.value}/"
    return Request("POST", path, Repeat.SAFE, body={})
