"""Projects (interface 2.4 and 4.3; rules of the real servers: service-facts, section 4)."""

from __future__ import annotations

from reconciler.model.change import Action, Consequence, Danger, FieldChange
from reconciler.model.kind import ConsequenceRule, Field, Kind, OnCreate, Paths, Situation
from reconciler.model.shape import (
    Boolean,
    DecimalText,
    Integer,
    ListOf,
    MergedObject,
    OpenObject,
    SetOf,
    Shape,
    Text,
)
from reconciler.model.values import JSONObject
from reconciler.model.wording import quoted, several


def _flag(name: str, *, summary: bool = False) -> Field:
    """A three-state boolean: null, true and false differ (service-facts 4.2, trap 33)."""
    return Field(name, Boolean(), clearable=True, summary=summary)


def _open(name: str, *, clearable: bool = True) -> Field:
    return Field(name, OpenObject(), clearable=clearable)


def _merged(name: str, depth: int) -> Field:
    return Field(name, MergedObject(depth=depth), clearable=True)


def _plain(name: str, shape: Shape, *, clearable: bool = False) -> Field:
    return Field(name, shape, clearable=clearable)


FIELDS: tuple[Field, ...] = (
    Field("name", Text(trimmed=True), required=True, summary=True),
    Field("timezone", Text(), default="UTC", summary=True),
    _plain("week_start_day", Integer(), clearable=True),
    Field("app_urls", SetOf(Text(), drop_blank=True), reset=[]),
    _plain("recording_domains", SetOf(Text(), drop_blank=True), clearable=True),
    # A webhook address is a credential: whoever has it can post. It is treated as a secret even
    # though old servers return it; the newest drop it without a word (service-facts 4.2).
    Field("slack_incoming_webhook", Text(), clearable=True, secret=True),
    _plain("anonymize_ips", Boolean()),
    _plain("is_demo", Boolean()),
    Field("completed_snippet_onboarding", Boolean(), summary=True),
    Field("has_completed_onboarding_for", OpenObject(), clearable=True, summary=True),
    _open("onboarding_tasks"),
    # The newest servers overwrite it at creation (trap 29): creating re-reads and patches.
    _open("test_account_filters", clearable=False),
    _plain("test_account_filters_default_checked", Boolean(), clearable=True),
    _open("path_cleaning_filters"),
    Field("data_attributes", ListOf(Text()), default=["data-attr"]),
    _plain("person_display_name_properties", ListOf(Text()), clearable=True),
    _plain("live_events_columns", ListOf(Text()), clearable=True),
    _open("correlation_config"),
    _flag("autocapture_opt_out"),
    _flag("autocapture_exceptions_opt_in"),
    _flag("autocapture_web_vitals_opt_in"),
    # Null is its initial value and is refused afterwards: only [] resets it (trap 32).
    Field("autocapture_exceptions_errors_to_ignore", ListOf(Text(), empty_is_null=True), reset=[]),
    _flag("capture_console_log_opt_in"),
    _flag("capture_performance_opt_in"),
    _plain("session_recording_opt_in", Boolean()),
    _plain("session_recording_sample_rate", DecimalText(places=2), clearable=True),
    _plain("session_recording_minimum_duration_milliseconds", Integer(), clearable=True),
    _open("session_recording_linked_flag"),
    _open("session_recording_network_payload_capture_config"),
    _open("session_recording_masking_config"),
    _open("session_recording_trigger_groups"),
    _plain("session_recording_retention_period", Text()),
    _merged("session_replay_config", depth=2),
    _merged("survey_config", depth=1),
    _merged("conversations_settings", depth=1),
    _merged("modifiers", depth=1),
    # Replaced whole, but it holds a key of the server's own, recorder_script (trap 31).
    Field("extra_settings", MergedObject(depth=1, by_client=True), clearable=True),
    Field("access_control", Boolean(), summary=True),
    # Refused at creation: the server makes a dashboard of its own (service-facts 4.1).
    Field("primary_dashboard", Integer(), clearable=True, on_create=OnCreate.AFTER),
    _flag("inject_web_apps"),
    _flag("surveys_opt_in"),
    _flag("heatmaps_opt_in"),
    _open("logs_settings"),
    _plain("default_data_theme", Integer(), clearable=True),
)

CAPTURE_FIELDS = (
    "session_recording_opt_in",
    "capture_console_log_opt_in",
    "capture_performance_opt_in",
    "autocapture_exceptions_opt_in",
    "autocapture_web_vitals_opt_in",
    "surveys_opt_in",
    "heatmaps_opt_in",
    "inject_web_apps",
)


def _turned_off(situation: Situation, name: str) -> bool:
    change = situation.field(name)
    return change is not None and change.before is True and change.after is not True


def _updated(situation: Situation, name: str) -> FieldChange | None:
    return situation.field(name) if situation.action is Action.UPDATE else None


def data_lost_with_project(situation: Situation) -> Consequence | None:
    """Deleting a project destroys its events, persons, recordings and all that is inside."""
    if situation.action is not Action.DELETE:
        return None
    count = len(situation.children)
    inside = "no batch exports" if count == 0 else several(count, "batch export")
    named = ", ".join(quoted(child.name) for child in situation.children[:5])
    more = f" and {count - 5} more" if count > 5 else ""
    return Consequence(
        "project-data-lost",
        Danger.DANGER,
        "deleting a project destroys its data (events, persons, recordings, dashboards) and "
        f"{inside} inside, managed or not{': ' + named + more if named else ''}; "
        "it can't be undone",
    )


def token_of_a_new_project(situation: Situation) -> Consequence | None:
    """A project that is created has an api_token of its own."""
    if situation.action is not Action.CREATE:
        return None
    return Consequence(
        "new-api-token",
        Danger.INFO,
        "the project gets an api_token of its own: whatever sends events to it needs that token",
    )


def capture_turned_off(situation: Situation) -> Consequence | None:
    """What is not captured while a setting is off is never captured."""
    names = [name for name in CAPTURE_FIELDS if _turned_off(situation, name)]
    opt_out = _updated(situation, "autocapture_opt_out")
    if opt_out is not None and opt_out.after is True:
        names.append("autocapture_opt_out")
    if not names:
        return None
    return Consequence(
        "capture-turned-off",
        Danger.WARNING,
        f"{', '.join(names)}: nothing of this is captured from now on, and it can't be recovered",
    )


def anonymisation_turned_off(situation: Situation) -> Consequence | None:
    """IP addresses of visitors are kept from then on."""
    if not _turned_off(situation, "anonymize_ips"):
        return None
    return Consequence(
        "ip-anonymisation-off",
        Danger.DANGER,
        "IP addresses of visitors are stored from now on; check that this is allowed",
    )


def access_changed(situation: Situation) -> Consequence | None:
    """Who may see a project changes; the newest servers refuse the field."""
    if situation.field("access_control") is None:
        return None
    return Consequence(
        "access-control-changed",
        Danger.DANGER,
        "who may see the project changes; newer servers refuse this field whatever its value",
    )


def project_timezone_changed(situation: Situation) -> Consequence | None:
    """Days begin at another moment, in charts and in daily exports of older servers."""
    change = _updated(situation, "timezone")
    if change is None:
        return None
    return Consequence(
        "project-timezone-changed",
        Danger.WARNING,
        f"days begin at another moment ({change.before} → {change.after}): charts shift, and on "
        "older servers the daily and weekly exports of the project too",
    )


def filters_replaced(situation: Situation) -> Consequence | None:
    """Changing the filters for internal users changes past numbers as well."""
    if _updated(situation, "test_account_filters") is None:
        return None
    return Consequence(
        "test-filters-replaced",
        Danger.INFO,
        "insights that filter out internal users are recomputed with the new filters, past "
        "dates included",
    )


RULES: tuple[ConsequenceRule, ...] = (
    data_lost_with_project,
    token_of_a_new_project,
    capture_turned_off,
    anonymisation_turned_off,
    access_changed,
    project_timezone_changed,
    filters_replaced,
)

CONSEQUENCES: tuple[str, ...] = (
    "project-data-lost",
    "new-api-token",
    "capture-turned-off",
    "ip-anonymisation-off",
    "access-control-changed",
    "project-timezone-changed",
    "test-filters-replaced",
)


def _pending_deletion(body: JSONObject) -> bool:
    """A deleted project stays readable until the work is done (service-facts 4.3, trap 37)."""
    return body.get("is_pending_deletion") is True


KIND = Kind(
    name="project",
    collection="projects",
    paths=Paths("/api/organizations/{organization}/projects/"),
    fields=FIELDS,
    unique_names=True,
    deletion_switch="allow_project_deletion",
    detail=True,
    pending_deletion=_pending_deletion,
    last_changed="updated_at",
    rules=RULES,
    consequences=CONSEQUENCES,
)
