"""The consequences of changes of batch exports. Ids are stable: `policy.deny` uses them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.kinds.batch_export.destinations import DESTINATION, PLACES
from reconciler.model.change import Action, Severity
from reconciler.model.field_types import Instant
from reconciler.model.live import Dialect
from reconciler.model.rule import Outcome, RuleContext, Rules
from reconciler.model.secret_names import looks_like_address
from reconciler.model.values import JSON, MISSING, value_at
from reconciler.model.wording import quoted

RULES = Rules()
_CREATES = (Action.CREATE, Action.REPLACE)
_CHANGES = (Action.UPDATE, Action.REPLACE)


def _moment(value: JSON) -> datetime | None:
    canonical = Instant().canonical(value)
    try:
        return datetime.fromisoformat(canonical) if isinstance(canonical, str) else None
    except ValueError:
        return None


def _text(moment: datetime) -> str:
    return str(Instant().canonical(moment.replace(microsecond=0)))


def _live(context: RuleContext, *path: str) -> JSON:
    return value_at(context.live.body, path) if context.live else MISSING


def _wanted(context: RuleContext, name: str) -> JSON:
    """Return the value after the change: the declared one, or else the live one."""
    if context.desired is not None and name in context.desired.spec:
        return context.desired.spec[name]
    value = _live(context, name)
    return None if value is MISSING else value


@RULES.rule("runs-missed-while-paused", Severity.WARNING, on=(Action.PAUSE,))
def runs_missed_while_paused(context: RuleContext) -> Outcome:
    """A paused export skips its runs, and does not make up for them."""
    start = _text(context.now)
    return (
        f"runs due from {start} on (interval: {_live(context, 'interval')}) are skipped while it "
        "is paused; after unpausing, fill the gap with: "
        f"reconciler backfill {context.address} --start {start} --end <time of unpausing>"
    )


@RULES.rule("gap-before-unpausing", Severity.WARNING, on=(Action.UNPAUSE,))
def gap_before_unpausing(context: RuleContext) -> Outcome:
    """Unpausing does not make up for skipped runs; a backfill does."""
    since = _moment(_live(context, "last_paused_at"))
    if since is None:
        return (
            "runs skipped while it was paused are not made up for, and the time of the pause is "
            "unknown; check its runs before you backfill"
        )
    return (
        f"runs skipped since {_text(since)} are not made up for; fill the gap with: "
        f"reconciler backfill {context.address} --start {_text(since)} "
        f"--end {_text(context.now)}"
    )


@RULES.rule("interval-changed", Severity.WARNING, on=(Action.UPDATE,))
def interval_changed(context: RuleContext) -> Outcome:
    """The schedule changes immediately; past ranges stay as they are."""
    change = context.field("interval")
    if change is None:
        return None
    return (
        f"the schedule changes immediately ({change.before} → {change.after}): new files or "
        "batches cover other ranges, past ones stay as they are"
    )


@RULES.rule("destination-moved", Severity.WARNING, on=(Action.UPDATE,))
def destination_moved(context: RuleContext) -> Outcome:
    """Another bucket, prefix, table or the like: exported data stays at the old one."""
    moved = []
    for change in context.fields:
        config = change.path[:2] == ("destination", "config") and len(change.path) == 3
        place = PLACES.get(str(change.path[-1])) if config else None
        if place is not None:
            old = "(default)" if change.before in (None, MISSING) else quoted(str(change.before))
            moved.append(f"{place} {old}")
    if not moved:
        return None
    return (
        f"exported data stays at the old {' and '.join(moved)}; new runs write to the new location "
        "only"
    )


@RULES.rule("credentials-to-new-address", Severity.DANGER, on=_CHANGES)
def credentials_to_new_address(context: RuleContext) -> Outcome:
    """Credentials of the destination are sent to another host; they are sent again with it."""
    destination = _wanted(context, "destination")
    if not _has_credentials(destination) or context.field("destination", "type") is not None:
        return None
    moved = [
        f"{_address(change.after)} (was {_address(change.before)})"
        for change in context.fields
        if change.path[:2] == ("destination", "config") and len(change.path) == 3
        if looks_like_address(str(change.path[-1])) and not change.secret
    ]
    return f"credentials of {context.address} go to {' and '.join(moved)}" if moved else None


def _has_credentials(destination: JSON) -> bool:
    """Return whether a destination may have credentials: one of an unknown type may."""
    if not isinstance(destination, Mapping):
        return False
    fields = DESTINATION.variants.get(str(destination.get("type")))
    if fields is None or any(destination.get(extra.name) for extra in DESTINATION.extras):
        return True
    return any(field.secret for field in fields)


def _address(value: JSON) -> str:
    if value in (None, MISSING):
        return "the default address"
    return quoted(", ".join(map(str, value)) if isinstance(value, list) else str(value))


@RULES.rule("destination-type-changed", Severity.WARNING, on=_CHANGES)
def destination_type_changed(context: RuleContext) -> Outcome:
    """No data is copied; old servers keep the settings of the old type, with credentials."""
    change = context.field("destination", "type")
    if change is None:
        return None
    kept = (
        "; the server keeps the settings of the old type, credentials included"
        if context.action is Action.UPDATE
        else ""
    )
    return f"data exported to {change.before} stays there and is not copied to {change.after}{kept}"


@RULES.rule("model-changed", Severity.WARNING, on=_CHANGES)
def model_changed(context: RuleContext) -> Outcome:
    """Rows with other columns follow at the same location."""
    change = context.field("model")
    if change is None:
        return None
    return (
        f"rows of {quoted(str(change.after))} follow rows of {quoted(str(change.before))} at the "
        "same location, with other columns; check the readers of the destination"
    )


@RULES.rule("query-changed", Severity.INFO, on=(Action.UPDATE,))
def query_changed(context: RuleContext) -> Outcome:
    """New runs have the columns of the new query."""
    if context.field("sql_query") is None:
        return None
    return "new runs have the columns of the new query; exported data keeps the old ones"


@RULES.rule("ends-in-the-past", Severity.WARNING, on=(*_CREATES, Action.UPDATE))
def ends_in_the_past(context: RuleContext) -> Outcome:
    """No more runs are scheduled."""
    if context.action is Action.UPDATE and context.field("end_at") is None:
        return None
    end = _moment(_wanted(context, "end_at"))
    if end is None or end > context.now:
        return None
    return f"end_at {_text(end)} has passed: no more runs are scheduled"


@RULES.rule("start-moved", Severity.WARNING, Severity.INFO, on=(Action.UPDATE,))
def start_moved(context: RuleContext) -> Outcome:
    """A later start skips runs; an earlier start does not run anything by itself."""
    change = context.field("start_at")
    if change is None:
        return None
    start = _moment(change.after)
    if start is not None and start > context.now:
        return f"no runs are scheduled before {_text(start)}"
    return (
        Severity.INFO,
        "an earlier start schedules no runs for past time; use a backfill for that",
    )


@RULES.rule("history-lost", Severity.DANGER, on=(Action.DELETE, Action.REPLACE))
def history_lost(context: RuleContext) -> Outcome:
    """Deletion or replacement loses runs, logs and the id, and cancels backfills."""
    runs = _live(context, "latest_runs")
    last = ""
    if isinstance(runs, list) and runs and isinstance(runs[0], Mapping):
        last = f" (last run {runs[0].get('created_at')}, {runs[0].get('status')})"
    new_id = "; the new export has a new id" if context.action is Action.REPLACE else ""
    return (
        f"its history of runs and logs is lost{last} and running backfills are cancelled; exported "
        f"data stays at the destination{new_id}"
    )


@RULES.rule("schedule-moved", Severity.WARNING, on=(Action.UPDATE,))
def schedule_moved(context: RuleContext) -> Outcome:
    """Another time zone or offset: ranges overlap or leave a gap once."""
    fields = ("timezone", "offset_day", "offset_hour")
    names = [name for name in fields if context.field(name) is not None]
    if not names:
        return None
    return (
        f"{', '.join(names)}: days and weeks start at another time, so the first range after the "
        "change overlaps the last one before it or leaves a gap; check both"
    )


@RULES.rule("organization-path", Severity.WARNING, on=(Action.CREATE,))
def created_for_the_organization(context: RuleContext) -> Outcome:
    """Real servers cannot create an export without a project."""
    if context.desired is None or context.desired.parent is not None:
        return None
    return (
        "an export without `project` is created through the organization path, which fails on real "
        "servers; add `project: <key>`"
    )


@RULES.rule("type-not-taken", Severity.DANGER, on=_CREATES)
def type_not_taken(context: RuleContext) -> Outcome:
    """Servers of 2026 accept AwsS3 and S3Compatible instead of S3."""
    wanted = _wanted(context, "destination")
    kind_of_store = wanted.get("type") if isinstance(wanted, Mapping) else None
    if context.dialect is not Dialect.V2026 or kind_of_store != "S3":
        return None
    return (
        "this server does not accept S3; use AwsS3 or S3Compatible with an `integration` for the "
        "credentials"
    )
