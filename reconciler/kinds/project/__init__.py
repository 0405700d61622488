"""Projects (service.md 4). Their fields are in `schemas/project.schema.json`."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.kind import Field, kind_of
from reconciler.model.schemas import ListOf, MergedObject, SetOf, Text
from reconciler.model.values import JSONObject

_SPECIAL = (
    Field("name", Text(trimmed=True)),
    # The server trims the items of lists of text, as it trims names.
    Field("app_urls", SetOf(Text(trimmed=True), drop_blank=True)),
    Field("recording_domains", SetOf(Text(trimmed=True), drop_blank=True)),
    Field("person_display_name_properties", ListOf(Text(trimmed=True))),
    Field("live_events_columns", ListOf(Text(trimmed=True))),
    # The server refuses null, although it is the initial value (service.md 4.2).
    Field("autocapture_exceptions_errors_to_ignore", ListOf(Text()), reset=[]),
    Field("session_replay_config", MergedObject(depth=2)),
    Field("survey_config", MergedObject()),
    Field("conversations_settings", MergedObject()),
    Field("modifiers", MergedObject()),
    # Replaced as a whole, but the server adds a key to it, recorder_script.
    Field("extra_settings", MergedObject(by_client=True)),
    # The server adds when the retention last changed.
    Field("logs_settings", MergedObject(by_client=True)),
    # Refused in a create: the server creates a dashboard (service.md 4.1).
    Field("primary_dashboard", after_create=True),
)


def _pending_deletion(body: JSONObject) -> bool:
    """Return whether the project is deleted, but still readable (service.md 4.3)."""
    return body.get("is_pending_deletion") is True


KIND = replace(
    kind_of("project", _SPECIAL),
    # service.md 13
    page="/project/{id}/settings/project-details",
    pending_deletion=_pending_deletion,
)
