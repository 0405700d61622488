"""The behaviour of projects: consequences of changes, known refusals, operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TypeAlias

from reconciler.kinds.behaviour import (
    NOT_ACCEPTED,
    Behaviour,
    Objection,
    Outcome,
    RuleContext,
    Rules,
)
from reconciler.model.kind import SINCE_2026, Action, Dialect
from reconciler.model.live import Operation, Repeat
from reconciler.model.plan import Effect, Severity
from reconciler.model.schemas import DecimalText
from reconciler.model.text import listed, quoted, several
from reconciler.model.values import CLEARED, JSON, MISSING, leaves, mapping_of

RULES = Rules(refusals=[NOT_ACCEPTED])
_OPT_INS = (
    "session_recording_opt_in",
    "capture_console_log_opt_in",
    "capture_performance_opt_in",
    "autocapture_exceptions_opt_in",
    "autocapture_web_vitals_opt_in",
    "surveys_opt_in",
    "heatmaps_opt_in",
)
_WRITES = (Action.CREATE, Action.UPDATE)
_UPDATES = (Action.UPDATE,)
_DEGREES = (Severity.DANGER, Severity.WARNING)
_MOST_NAMES = 5
_MOST_EXPORTS = 20
_WEBHOOK = "slack_incoming_webhook"
_Test: TypeAlias = Callable[[JSON, JSON], bool]
"""Whether the values before and after a change have some relation."""


def _parts(value: JSON) -> set[tuple[JSON, ...]]:
    """Return the leaves of a value with their names; positions in lists have no meaning."""
    return {
        (*(name for name in path if isinstance(name, str)), leaf)
        for path, leaf in leaves(value)
        if leaf not in (None, MISSING)
    }


def _switched_on(before: JSON, after: JSON) -> bool:
    """Return whether a value, or one inside of it, is true and was not."""
    return any(part[-1] is True for part in _parts(after) - _parts(before))


def _switched_off(before: JSON, after: JSON) -> bool:
    return _switched_on(after, before)


def _restricts_less(before: JSON, after: JSON) -> bool:
    return not _parts(before) <= _parts(after)


def _is_condition(before: JSON, after: JSON) -> bool:
    """Return whether a condition for recording is removed or changed."""
    return before not in (None, MISSING) and before != after


def _grows(absent: int) -> _Test:
    """Return a test of whether a number grows, which is `absent` where it is not set."""
    number = DecimalText().as_number

    def test(before: JSON, after: JSON) -> bool:
        sides = [absent if side in (None, MISSING) else number(side) for side in (before, after)]
        was, now = (side if isinstance(side, (int, float)) else None for side in sides)
        # What cannot be read may be smaller.
        return was is None or now is None or now > was

    return test


def _swapped(test: _Test) -> _Test:
    return lambda before, after: test(after, before)


def _new_sites(before: JSON, after: JSON) -> list[str]:
    return [str(site) for (site,) in sorted(_parts(after) - _parts(before))]


def _new_domains(before: JSON, after: JSON) -> list[str]:
    """Return the domains that may record sessions, and could not: without any, all may."""
    if not _parts(before):
        return []
    return _new_sites(before, after) if _parts(after) else ["any site"]


def _no_longer_masked(before: JSON, after: JSON) -> list[str]:
    """Return what recordings show that was masked or left out."""
    was, now = _masks(before), _masks(after)
    return [" ".join(mask) for mask in sorted(was - now) if (mask[0], "*") not in now]


_MASKING, _DOMAINS = "session_recording_masking_config", "recording_domains"
_MORE_CAPTURED: Mapping[str, _Test] = {
    **dict.fromkeys(_OPT_INS, _switched_on),
    "autocapture_opt_out": _switched_off,
    "autocapture_exceptions_errors_to_ignore": _restricts_less,
    "conversations_settings": _switched_on,
    "logs_settings": _switched_on,
    "session_recording_linked_flag": _is_condition,
    "session_recording_minimum_duration_milliseconds": _swapped(_grows(absent=0)),
    "session_recording_network_payload_capture_config": _switched_on,
    "session_recording_sample_rate": _grows(absent=1),
    "session_recording_trigger_groups": _is_condition,
    "session_replay_config": _switched_on,
}
"""How a change of a field makes the service capture more. The reverse captures less."""
_LESS_CAPTURED: Mapping[str, _Test] = {
    **{name: _swapped(test) for name, test in _MORE_CAPTURED.items()},
    "anonymize_ips": _switched_on,
    _DOMAINS: lambda before, after: bool(_new_domains(after, before)),
    _MASKING: lambda before, after: bool(_no_longer_masked(after, before)),
}
_RETENTION: Mapping[str, str] = {
    "session_recording_retention_period": "recordings",
    "logs_settings": "logs",
}
_DAYS = {"d": 1, "y": 365}
_REPORTS: Mapping[str, str] = {
    "week_start_day": "weeks start on another day",
    "test_account_filters_default_checked": "new insights have another default for test filters",
    "path_cleaning_filters": "paths are combined by other rules",
    "data_attributes": "elements are identified by other attributes",
    "correlation_config": "correlations leave out other events or properties",
    "modifiers": "queries have other results",
    "test_account_filters": "insights filter out other internal users",
}
"""What a change of a field does to reports."""


@RULES.rule("project-data-lost", Severity.DANGER, Effect.LOST, on=(Action.DELETE,))
def data_lost_with_project(context: RuleContext) -> Outcome:
    """Deletion of a project deletes its events, persons, recordings, dashboards and exports.

    This cannot be undone. It also needs `policy.allow_project_deletion`.
    """
    exports = ""
    if context.children:
        count = several(len(context.children), "batch export")
        names = listed((quoted(child.name) for child in context.children), _MOST_EXPORTS)
        exports = f" and {count}, managed or not ({names})"
    return (
        f"all data is lost (events, persons, recordings, dashboards){exports}; this cannot be "
        "undone"
    )


@RULES.rule("new-api-token", Severity.INFO, on=(Action.CREATE,))
def token_of_a_new_project(_: RuleContext) -> Outcome:
    """A new project has a new token.

    Use it in clients that send events to the project.
    """
    return "a new project has a new api_token: use it in clients that send events there"


@RULES.rule("capture-turned-off", Severity.WARNING, Effect.LOST, on=_UPDATES, of=_LESS_CAPTURED)
def capture_turned_off(context: RuleContext) -> Outcome:
    """Less is captured: what is not captured cannot be recovered.

    Recordings of fewer sessions, or with more masked, and IP addresses, too. Check that no report
    needs it.
    """
    text = "less data of visitors is captured, and cannot be recovered"
    return _of_fields(context, _LESS_CAPTURED, text)


@RULES.rule("capture-turned-on", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES, of=_MORE_CAPTURED)
def capture_turned_on(context: RuleContext) -> Outcome:
    """More data of visitors is captured: recordings, logs, requests, autocapture and so on.

    Also if a condition for it is removed or changed. A new project is compared with the defaults
    of the service. Check that this is allowed where the visitors are.
    """
    text = "more data of visitors is captured; check that this is allowed"
    return _of_fields(context, _MORE_CAPTURED, text)


def _of_fields(context: RuleContext, tests: Mapping[str, _Test], text: str) -> Outcome:
    """Return a text about the changed fields of which the test is true."""
    names = [name for name in tests if context.field(name) and tests[name](*context.sides(name))]
    return f"{', '.join(names)}: {text}" if names else None


@RULES.rule("retention-changed", Severity.WARNING, Effect.LOST, on=_UPDATES, of=_RETENTION)
def retention_changed(context: RuleContext) -> Outcome:
    """Recordings or logs are kept for a shorter or longer time.

    What was deleted cannot be recovered. Check that readers agree.
    """
    texts, effects = [], []
    for name, what in _RETENTION.items():
        (was, before), (now, after) = map(_kept, context.sides(name))
        if before != after:
            texts.append(f"{what} are kept for {after} (before: {before})")
            effects.append(Effect.ELSEWHERE if 0 < was < now else Effect.LOST)
    return (min(effects, key=attrgetter("rank")), "; ".join(texts)) if texts else None


def _kept(value: JSON) -> tuple[int, str]:
    """Return for how many days something is kept, 0 if unknown, and the same as text."""
    days = value.get("retention_days") if isinstance(value, Mapping) else value
    text = f"{days}d" if isinstance(days, int) else str(days or "the default of the service")
    known = re.fullmatch(r"(\d+)([dy])", text)
    return (int(known[1]) * _DAYS[known[2]], text) if known else (0, text)


@RULES.rule("notifications-changed", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES, of=[_WEBHOOK])
def notifications_changed(context: RuleContext) -> Outcome:
    """Notifications of the project are sent to a webhook, or no longer.

    Check who reads them there.
    """
    if context.sent(_WEBHOOK) == CLEARED:
        return Effect.OTHER, "project notifications are no longer sent to a webhook"
    return f"project notifications are sent to {context.sent(_WEBHOOK)}; check who reads them"


@RULES.rule("masking-reduced", Severity.DANGER, Effect.ELSEWHERE, on=_WRITES, of=[_MASKING])
def masking_reduced(context: RuleContext) -> Outcome:
    """Recordings show inputs, texts or elements that were masked or left out.

    Check that recordings may show them.
    """
    shown = _no_longer_masked(*context.sides(_MASKING))
    text = f"no longer masked: {listed(shown, _MOST_NAMES)}; check that recordings may show it"
    return text if shown else None


def _masks(config: JSON) -> set[tuple[str, ...]]:
    """Return what recordings mask or leave out: inputs, and selectors with their field."""
    masks = mapping_of(config)
    inputs = {("maskAllInputs",)} if masks.get("maskAllInputs") is not False else set()
    return inputs | {
        (name, part.strip())
        for name in ("maskTextSelector", "blockSelector")
        for part in str(masks.get(name) or "").split(",")
        if part.strip()
    }


@RULES.rule(
    *("web-access-widened", Severity.WARNING, Effect.ELSEWHERE),
    on=_WRITES,
    of=["app_urls", _DOMAINS, "inject_web_apps"],
)
def web_access_widened(context: RuleContext) -> Outcome:
    """More sites may use the toolbar or record sessions, or sites may run site apps.

    Check who controls the sites.
    """
    may = {
        "use the toolbar": _new_sites(*context.sides("app_urls")),
        "record sessions": _new_domains(*context.sides(_DOMAINS)),
    }
    widened = [f"{listed(new, _MOST_NAMES)} may {what}" for what, new in may.items() if new]
    if _switched_on(*context.sides("inject_web_apps")):
        widened.append("sites may run site apps")
    return "; ".join(widened) or None


@RULES.rule("ip-anonymisation-off", _DEGREES, Effect.ELSEWHERE, on=_WRITES, of=["anonymize_ips"])
def anonymisation_turned_off(context: RuleContext) -> Outcome:
    """IP addresses of visitors are stored.

    A new project with `false` has a warning, because the organization may anonymize them in new
    projects. Check that this is allowed where the visitors are.
    """
    before, after = context.sides("anonymize_ips")
    text = "IP addresses of visitors are stored from now on; check that this is allowed"
    if context.creates and after is False:
        return Severity.WARNING, text
    return text if _switched_off(before, after) else None


@RULES.rule(
    "access-control-changed", Severity.DANGER, Effect.ELSEWHERE, on=_WRITES, of=["access_control"]
)
def access_changed(_: RuleContext) -> Outcome:
    """Access to the project changes.

    Check who can read it then. Newer servers refuse the field: see `not-accepted`.
    """
    return "project access changes; check who can read the data then"


@RULES.refusal("name-taken", on=_WRITES)
def name_taken(context: RuleContext) -> Objection | None:
    """Another project has the name or gets it, perhaps in another case.

    Newer servers require a unique name, and ignore its case. Use the name as it is in the service,
    or another one.
    """
    name = context.sent("name")
    if context.dialect not in SINCE_2026 or not isinstance(name, str):
        return None
    taken = name.strip().casefold()
    for other in context.siblings:
        if other.name.strip().casefold() == taken and other.id != context.change.live_id:
            return Objection(
                f"project {quoted(other.name)} (id {other.id}) has this name, and the server "
                "ignores its case",
                f"to manage that one, set `name: {quoted(other.name)}`; otherwise use another name",
                ("name",),
                because_of=other,
            )
    for create in context.created:
        if create.name.strip().casefold() == taken:
            return Objection(
                f"{create.address} is created with the name {quoted(create.name)}, and the server "
                "ignores its case",
                "use another name, or remove one of the two",
                ("name",),
            )
    return None


@RULES.rule("project-timezone-changed", Severity.WARNING, Effect.FORM, on=_UPDATES, of=["timezone"])
def project_timezone_changed(context: RuleContext) -> Outcome:
    """Days start at another time in charts, past dates included.

    Exports do not follow: they have a time zone of their own, or use UTC on older servers.
    """
    before, after = context.sides("timezone")
    return f"days start at another time ({before} → {after}): charts shift"


@RULES.rule("reports-changed", Severity.INFO, Effect.FORM, on=_UPDATES, of=_REPORTS)
def reports_changed(context: RuleContext) -> Outcome:
    """Insights and other reports are computed in another way, past dates included.

    Expect other numbers.
    """
    texts = (text for name, text in _REPORTS.items() if context.field(name))
    return f"{', '.join(texts)}: expect other numbers, also for past dates"


_BY_SESSION = frozenset(Dialect.between(Dialect.V2025, None))
"""Servers that refuse the actions of a project to API keys (service.md 4.3)."""
_OPERATIONS = (
    Operation("activity", "GET", "activity/", None, refused_to_keys=_BY_SESSION, source="4.3"),
    Operation(
        *("demo_data", "GET", "is_generating_demo_data/", None),
        refused_to_keys=_BY_SESSION,
        source="4.3",
    ),
    Operation(
        "reset_token",
        "PATCH",
        "reset_token/",
        None,
        # Every request makes a new token.
        repeat=Repeat.AFTER_LOOKING,
        refused_to_keys=_BY_SESSION,
        source="4.3",
    ),
)

BEHAVIOUR = Behaviour(
    operations=_OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(RULES.refusals),
)
