"""The behaviour of projects: consequences of changes, known refusals, operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.model.accepted import NOT_ACCEPTED
from reconciler.model.behaviour import Behaviour, Objection, Outcome, RuleContext, Rules
from reconciler.model.field_types import DecimalText
from reconciler.model.kind import Action, Dialect
from reconciler.model.plan import Effect, Severity
from reconciler.model.request import Operation, Repeat
from reconciler.model.text import listed, quoted, several
from reconciler.model.values import JSON, MISSING, leaves, mapping_of

RULES = Rules(refusals=[NOT_ACCEPTED])
CAPTURE_FIELDS = (
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


_SHARE = DecimalText()


def _larger(before: JSON, after: JSON) -> bool:
    shares = [1 if part in (None, MISSING) else _SHARE.as_number(part) for part in (before, after)]
    was, now = (part if isinstance(part, (int, float)) else None for part in shares)
    # What cannot be read may be smaller.
    return was is None or now is None or now > was


_MORE_CAPTURED: Mapping[str, Callable[[JSON, JSON], bool]] = {
    **dict.fromkeys(CAPTURE_FIELDS, _switched_on),
    "autocapture_opt_out": _switched_off,
    "autocapture_exceptions_errors_to_ignore": _restricts_less,
    "conversations_settings": _switched_on,
    "session_recording_linked_flag": _restricts_less,
    "session_recording_network_payload_capture_config": _switched_on,
    "session_recording_sample_rate": _larger,
    "session_recording_trigger_groups": _restricts_less,
    "session_replay_config": _switched_on,
}
"""How a change of a field makes the service capture more."""


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
        f"all its data is lost (events, persons, recordings, dashboards){exports}; this cannot be "
        "undone"
    )


@RULES.rule("new-api-token", Severity.INFO, on=(Action.CREATE,))
def token_of_a_new_project(_: RuleContext) -> Outcome:
    """A new project has a new token.

    Use it in clients that send events to the project.
    """
    return "the project gets a new api_token: use it in clients that send events to the project"


@RULES.rule("capture-turned-off", Severity.WARNING, Effect.LOST, on=_UPDATES)
def capture_turned_off(context: RuleContext) -> Outcome:
    """Data that is not captured cannot be recovered.

    Check that no report needs it.
    """
    names = [name for name in CAPTURE_FIELDS if _switched_off(*context.sides(name))]
    if _switched_on(*context.sides("autocapture_opt_out")):
        names.append("autocapture_opt_out")
    text = f"{', '.join(names)}: this data is no longer captured and cannot be recovered"
    return text if names else None


@RULES.rule("capture-turned-on", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES)
def capture_turned_on(context: RuleContext) -> Outcome:
    """More data of visitors is captured: recordings, logs, requests, autocapture and so on.

    Also if a condition for it is removed or changed. A new project is compared with the defaults
    of the service. Check that this is allowed where the visitors are.
    """
    names = [name for name, test in _MORE_CAPTURED.items() if test(*context.sides(name))]
    text = f"{', '.join(names)}: more data of visitors is captured; check that this is allowed"
    return text if names else None


@RULES.rule("masking-reduced", Severity.DANGER, Effect.ELSEWHERE, on=_WRITES)
def masking_reduced(context: RuleContext) -> Outcome:
    """Recordings show inputs, texts or elements that were masked or left out.

    Without a setting, inputs are masked. Check that recordings may show them.
    """
    was, now = map(_masks, context.sides("session_recording_masking_config"))
    shown = [" ".join(mask) for mask in sorted(was - now) if (mask[0], "*") not in now]
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


@RULES.rule("web-access-widened", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES)
def web_access_widened(context: RuleContext) -> Outcome:
    """More sites may use the toolbar or record sessions, or sites may run site apps.

    Check who controls the sites.
    """
    widened = []
    for name, may in (("app_urls", "use the toolbar"), ("recording_domains", "record sessions")):
        before, after = map(_parts, context.sides(name))
        sites = [str(site) for (site,) in sorted(after - before)]
        if name == "recording_domains" and not (before and after):
            sites = ["any site"] if before else []  # Without domains, any site may.
        widened += [f"{listed(sites, _MOST_NAMES)} may {may}"] if sites else []
    if _switched_on(*context.sides("inject_web_apps")):
        widened.append("the sites of the project may run site apps")
    return "; ".join(widened) or None


@RULES.rule("ip-anonymisation-off", _DEGREES, Effect.ELSEWHERE, on=_WRITES)
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


@RULES.rule("access-control-changed", Severity.DANGER, Effect.ELSEWHERE, on=_WRITES)
def access_changed(context: RuleContext) -> Outcome:
    """Access to the project changes.

    Check who can read it then. Newer servers refuse the field: see `not-accepted`.
    """
    text = "access to the project changes; check who can read it then"
    return text if context.field("access_control") else None


@RULES.refusal("name-taken", on=_WRITES)
def name_taken(context: RuleContext) -> Objection | None:
    """Another project has the name or gets it, perhaps in another case.

    Newer servers require a unique name, and ignore its case. Use the name as it is in the service,
    or another one.
    """
    name = context.sent("name")
    if context.dialect is not Dialect.V2026 or not isinstance(name, str):
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


@RULES.rule("test-filters-replaced", Severity.INFO, Effect.FORM, on=_UPDATES)
def filters_replaced(context: RuleContext) -> Outcome:
    """Insights with the filters are recomputed, past dates included.

    Expect other numbers in insights that filter out internal users.
    """
    text = "insights that filter out internal users are recomputed with the new filters, "
    return f"{text}past dates included" if context.field("test_account_filters") else None


_BY_SESSION = frozenset({Dialect.V2025, Dialect.V2026})
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
