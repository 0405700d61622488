"""The behaviour of projects: consequences of changes, known refusals, operations."""

from __future__ import annotations

from reconciler.model.action import Action
from reconciler.model.behaviour import Behaviour
from reconciler.model.change import Severity
from reconciler.model.dialect import Dialect
from reconciler.model.operation import Operation
from reconciler.model.request import Repeat
from reconciler.model.rule import Objection, Outcome, RuleContext, Rules
from reconciler.model.values import MISSING
from reconciler.model.wording import quoted, several

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


def _turned_off(context: RuleContext, name: str) -> bool:
    change = context.field(name)
    return change is not None and change.before is True and change.after is not True


@RULES.rule("project-data-lost", Severity.DANGER, on=(Action.DELETE,))
def data_lost_with_project(context: RuleContext) -> Outcome:
    """Deletion of a project deletes its events, persons, recordings, dashboards and exports.

    This cannot be undone. It also needs `policy.allow_project_deletion`.
    """
    exports = ""
    if context.children:
        count = several(len(context.children), "batch export")
        names = ", ".join(quoted(child.name) for child in context.children)
        exports = f" and {count}, managed or not ({names})"
    return (
        "deleting a project deletes its data (events, persons, recordings, dashboards)"
        f"{exports}; this cannot be undone"
    )


@RULES.rule("new-api-token", Severity.INFO, on=(Action.CREATE,))
def token_of_a_new_project(_: RuleContext) -> Outcome:
    """A new project has a new token.

    Use it in clients that send events to the project.
    """
    return "the project gets a new api_token: use it in clients that send events to the project"


@RULES.rule("capture-turned-off", Severity.WARNING, on=(Action.UPDATE,))
def capture_turned_off(context: RuleContext) -> Outcome:
    """Data that is not captured cannot be recovered.

    Check that no report needs it.
    """
    names = [name for name in CAPTURE_FIELDS if _turned_off(context, name)]
    opt_out = context.field("autocapture_opt_out")
    if opt_out is not None and opt_out.after is True:
        names.append("autocapture_opt_out")
    if not names:
        return None
    return f"{', '.join(names)}: this data is no longer captured and cannot be recovered"


@RULES.rule("ip-anonymisation-off", Severity.DANGER, on=(Action.UPDATE,))
def anonymisation_turned_off(context: RuleContext) -> Outcome:
    """IP addresses of visitors are stored.

    Check that this is allowed where the visitors are.
    """
    if not _turned_off(context, "anonymize_ips"):
        return None
    return "IP addresses of visitors are stored from now on; check that this is allowed"


@RULES.rule("access-control-changed", Severity.DANGER, on=(Action.CREATE, Action.UPDATE))
def access_changed(context: RuleContext) -> Outcome:
    """Access to the project changes.

    Check who can read it then. Newer servers refuse the field: see `access-control-not-accepted`.
    """
    if context.field("access_control") is None:
        return None
    return "access to the project changes; check who can read it then"


@RULES.refusal("access-control-not-accepted", on=(Action.CREATE, Action.UPDATE))
def access_control_refused(context: RuleContext) -> Objection | None:
    """The server does not accept `access_control`.

    Newer servers refuse every value but null, even false. Remove the field, and set access in the
    service.
    """
    if context.dialect is not Dialect.V2026:
        return None
    if context.sent("access_control") in (None, MISSING):
        return None
    return Objection(
        f"the server (dialect {context.dialect}) does not accept access_control",
        "remove it, and set the access in the service",
        ("access_control",),
    )


@RULES.refusal("name-taken", on=(Action.CREATE, Action.UPDATE))
def name_taken(context: RuleContext) -> Objection | None:
    """Another project has the name, perhaps in another case.

    Newer servers require a unique name, and ignore its case. Use the name as it is in the service,
    or another one.
    """
    name = context.sent("name")
    if context.dialect is not Dialect.V2026 or not isinstance(name, str):
        return None
    for other in context.siblings:
        is_same = other.name.strip().casefold() == name.strip().casefold()
        if is_same and other.id != context.change.live_id:
            return Objection(
                f"project {quoted(other.name)} (id {other.id}) has this name, and the server "
                "ignores its case",
                f"to manage that one, set `name: {quoted(other.name)}`; otherwise use another name",
                ("name",),
                because_of=other,
            )
    return None


@RULES.rule("project-timezone-changed", Severity.WARNING, on=(Action.UPDATE,))
def project_timezone_changed(context: RuleContext) -> Outcome:
    """Days start at another time in charts, past dates included.

    Exports do not follow: they have a time zone of their own, or use UTC on older servers.
    """
    change = context.field("timezone")
    if change is None:
        return None
    return f"days start at another time ({change.before} → {change.after}): charts shift"


@RULES.rule("test-filters-replaced", Severity.INFO, on=(Action.UPDATE,))
def filters_replaced(context: RuleContext) -> Outcome:
    """Insights with the filters are recomputed, past dates included.

    Expect other numbers in insights that filter out internal users.
    """
    if context.field("test_account_filters") is None:
        return None
    return (
        "insights that filter out internal users are recomputed with the new filters, past dates "
        "included"
    )


_BY_SESSION = frozenset({Dialect.V2025, Dialect.V2026})
"""Servers that refuse the actions of a project to API keys (docs/service.md 4.3)."""
_OPERATIONS = (
    Operation("activity", "GET", "activity/", None, refused_to_keys=_BY_SESSION, source="4.3"),
    Operation(
        "demo_data",
        "GET",
        "is_generating_demo_data/",
        None,
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
