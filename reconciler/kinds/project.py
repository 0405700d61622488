"""Projects (docs/service.md 4)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.change import Action, Danger, FieldChange
from reconciler.model.described import kind_of
from reconciler.model.field_types import ListOf, MergedObject, SetOf, Text
from reconciler.model.kind import Field, OnCreate
from reconciler.model.rule import Outcome, Rules, Situation
from reconciler.model.values import JSONObject
from reconciler.model.wording import quoted, several

_SPECIAL = (
    Field("name", Text(trimmed=True)),
    Field("app_urls", SetOf(Text(), drop_blank=True), reset=[]),
    Field("recording_domains", SetOf(Text(), drop_blank=True)),
    # Null is its initial value and is refused afterwards: only [] resets it
    # (docs/service.md 4.2).
    Field("autocapture_exceptions_errors_to_ignore", ListOf(Text(), empty_is_null=True), reset=[]),
    Field("session_replay_config", MergedObject(depth=2)),
    Field("survey_config", MergedObject()),
    Field("conversations_settings", MergedObject()),
    Field("modifiers", MergedObject()),
    # Replaced whole, but it holds a key of the server's own, recorder_script.
    Field("extra_settings", MergedObject(by_client=True)),
    # Refused at creation: the server makes a dashboard of its own (docs/service.md 4.1).
    Field("primary_dashboard", on_create=OnCreate.AFTER),
)

RULES = Rules()
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


@RULES.rule("project-data-lost", Danger.DANGER)
def data_lost_with_project(situation: Situation) -> Outcome:
    """Deletion: events, persons, recordings, dashboards and every export inside, managed or not."""
    if situation.action is not Action.DELETE:
        return None
    count = len(situation.children)
    inside = "no batch exports" if count == 0 else several(count, "batch export")
    named = ", ".join(quoted(child.name) for child in situation.children[:5])
    more = f" and {count - 5} more" if count > 5 else ""
    return (
        "deleting a project destroys its data (events, persons, recordings, dashboards) and "
        f"{inside} inside, managed or not{': ' + named + more if named else ''}; "
        "it can't be undone"
    )


@RULES.rule("new-api-token", Danger.INFO)
def token_of_a_new_project(situation: Situation) -> Outcome:
    """A new project has a token of its own."""
    if situation.action is not Action.CREATE:
        return None
    return "the project gets an api_token of its own: whatever sends events to it needs that token"


@RULES.rule("capture-turned-off", Danger.WARNING)
def capture_turned_off(situation: Situation) -> Outcome:
    """What is not captured now is never captured."""
    names = [name for name in CAPTURE_FIELDS if _turned_off(situation, name)]
    opt_out = _updated(situation, "autocapture_opt_out")
    if opt_out is not None and opt_out.after is True:
        names.append("autocapture_opt_out")
    if not names:
        return None
    return f"{', '.join(names)}: nothing of this is captured from now on, and it can't be recovered"


@RULES.rule("ip-anonymisation-off", Danger.DANGER)
def anonymisation_turned_off(situation: Situation) -> Outcome:
    """Addresses of visitors are stored from now on."""
    if not _turned_off(situation, "anonymize_ips"):
        return None
    return "IP addresses of visitors are stored from now on; check that this is allowed"


@RULES.rule("access-control-changed", Danger.DANGER)
def access_changed(situation: Situation) -> Outcome:
    """Who may see the project changes; newer servers refuse the field."""
    if situation.field("access_control") is None:
        return None
    return "who may see the project changes; newer servers refuse this field whatever its value"


@RULES.rule("project-timezone-changed", Danger.WARNING)
def project_timezone_changed(situation: Situation) -> Outcome:
    """Days begin at another moment, in charts and in daily exports of older servers."""
    change = _updated(situation, "timezone")
    if change is None:
        return None
    return (
        f"days begin at another moment ({change.before} → {change.after}): charts shift, and on "
        "older servers the daily and weekly exports of the project too"
    )


@RULES.rule("test-filters-replaced", Danger.INFO)
def filters_replaced(situation: Situation) -> Outcome:
    """Insights that use the filters are recomputed, past dates included."""
    if _updated(situation, "test_account_filters") is None:
        return None
    return (
        "insights that filter out internal users are recomputed with the new filters, past "
        "dates included"
    )


def _pending_deletion(body: JSONObject) -> bool:
    """A deleted project stays readable until the work is done (docs/service.md 4.3)."""
    return body.get("is_pending_deletion") is True


KIND = replace(kind_of("project", _SPECIAL), pending_deletion=_pending_deletion, rules=tuple(RULES))
