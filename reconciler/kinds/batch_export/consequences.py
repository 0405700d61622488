"""What follows from changing a batch export: one small function a rule.

Each rule's id is stable: `policy.deny` names it, and docs/consequences.md explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.kinds.batch_export.destinations import PLACES
from reconciler.model.change import Action, Danger
from reconciler.model.field_types import Instant
from reconciler.model.live import Dialect
from reconciler.model.rule import Outcome, Rules, Situation
from reconciler.model.values import JSON, MISSING, value_at
from reconciler.model.wording import quoted

RULES = Rules()
_GONE = (Action.DELETE, Action.REPLACE)


def _moment(value: JSON) -> datetime | None:
    canonical = Instant().canonical(value)
    try:
        return datetime.fromisoformat(canonical) if isinstance(canonical, str) else None
    except ValueError:
        return None


def _text(moment: datetime) -> str:
    return str(Instant().canonical(moment.replace(microsecond=0)))


def _live(situation: Situation, *path: str) -> JSON:
    return value_at(situation.live.body, path) if situation.live else MISSING


def _wanted(situation: Situation, name: str) -> JSON:
    """The value after the change: declared, or else what is live."""
    if situation.desired is not None and name in situation.desired.spec:
        return situation.desired.spec[name]
    value = _live(situation, name)
    return None if value is MISSING else value


@RULES.rule("runs-missed-while-paused", Danger.WARNING)
def runs_missed_while_paused(situation: Situation) -> Outcome:
    """Pausing: runs that come due are not made, and not made up for later."""
    if situation.action is not Action.PAUSE:
        return None
    start = _text(situation.now)
    return (
        f"runs due from {start} on (interval: {_live(situation, 'interval')}) are not made while "
        "it is paused; after unpausing, repair the gap with: "
        f"reconciler backfill {situation.address} --start {start} --end <time of unpausing>"
    )


@RULES.rule("gap-before-unpausing", Danger.WARNING)
def gap_before_unpausing(situation: Situation) -> Outcome:
    """Unpausing: what was missed stays missed until it is backfilled."""
    if situation.action is not Action.UNPAUSE:
        return None
    since = _moment(_live(situation, "last_paused_at"))
    if since is None:
        return (
            "runs missed while it was paused are not made up for, and the server does not say "
            "since when it was paused; look at its runs before you backfill"
        )
    return (
        f"runs missed since {_text(since)} are not made up for; repair the gap with: "
        f"reconciler backfill {situation.address} --start {_text(since)} "
        f"--end {_text(situation.now)}"
    )


@RULES.rule("interval-changed", Danger.WARNING)
def interval_changed(situation: Situation) -> Outcome:
    """The schedule is rewritten at once; past ranges stay as they are."""
    change = situation.field("interval")
    if situation.action is not Action.UPDATE or change is None:
        return None
    return (
        f"the schedule is rewritten at once ({change.before} → {change.after}): files or batches "
        "cover other ranges from now on, past ones stay as they are"
    )


@RULES.rule("destination-moved", Danger.WARNING)
def destination_moved(situation: Situation) -> Outcome:
    """Bucket, prefix, table or the like changed: what is there stays there."""
    if situation.action is not Action.UPDATE:
        return None
    moved = []
    for change in situation.fields:
        config = change.path[:2] == ("destination", "config") and len(change.path) == 3
        place = PLACES.get(str(change.path[-1])) if config else None
        if place is not None:
            old = "the default" if change.before in (None, MISSING) else quoted(str(change.before))
            moved.append(f"{place} {old}")
    if not moved:
        return None
    return (
        f"what was exported before stays under the old {' and '.join(moved)}; new runs write to "
        "the new place only"
    )


@RULES.rule("destination-type-changed", Danger.WARNING)
def destination_type_changed(situation: Situation) -> Outcome:
    """Nothing is copied; old servers keep the old type's settings, credentials included."""
    change = situation.field("destination", "type")
    if change is None or situation.action not in (Action.UPDATE, Action.REPLACE):
        return None
    kept = (
        "; the server keeps the old type's settings, credentials included"
        if situation.action is Action.UPDATE
        else ""
    )
    return (
        f"what was exported to {change.before} stays there and is not copied to "
        f"{change.after}{kept}"
    )


@RULES.rule("model-changed", Danger.WARNING)
def model_changed(situation: Situation) -> Outcome:
    """Rows with other columns follow in the same place."""
    change = situation.field("model")
    if situation.action not in (Action.UPDATE, Action.REPLACE) or change is None:
        return None
    return (
        f"rows of {quoted(str(change.after))} follow rows of {quoted(str(change.before))} in the "
        "same place, with other columns; readers of the destination must cope"
    )


@RULES.rule("query-changed", Danger.INFO)
def query_changed(situation: Situation) -> Outcome:
    """Columns of new runs follow the new query."""
    if situation.action is not Action.UPDATE or situation.field("sql_query") is None:
        return None
    return "columns of new runs follow the new query; what is already exported keeps the old ones"


@RULES.rule("ends-in-the-past", Danger.WARNING)
def ends_in_the_past(situation: Situation) -> Outcome:
    """No run is triggered any more."""
    if situation.action is Action.UPDATE and situation.field("end_at") is None:
        return None
    if situation.action not in (Action.CREATE, Action.UPDATE, Action.REPLACE):
        return None
    end = _moment(_wanted(situation, "end_at"))
    if end is None or end > situation.now:
        return None
    return f"end_at {_text(end)} has passed: no run is triggered any more"


@RULES.rule("start-moved", Danger.WARNING, Danger.INFO)
def start_moved(situation: Situation) -> Outcome:
    """Runs until a later start are not made; an earlier start runs nothing by itself."""
    change = situation.field("start_at")
    if situation.action is not Action.UPDATE or change is None:
        return None
    start = _moment(change.after)
    if start is not None and start > situation.now:
        return f"no run is triggered before {_text(start)}: runs due until then are not made"
    return (
        Danger.INFO,
        "moving the start triggers no run for time that has passed; use a backfill for that",
    )


@RULES.rule("history-lost", Danger.DANGER)
def history_lost(situation: Situation) -> Outcome:
    """Deletion or replacement: runs, logs and the id are gone, backfills are cancelled."""
    if situation.action not in _GONE:
        return None
    runs = _live(situation, "latest_runs")
    last = ""
    if isinstance(runs, list) and runs and isinstance(runs[0], Mapping):
        last = f" (last run {runs[0].get('created_at')}, {runs[0].get('status')})"
    new_id = "; the new export has a new id" if situation.action is Action.REPLACE else ""
    return (
        f"its history of runs and logs is lost{last} and running backfills are cancelled; what "
        f"was exported stays at the destination{new_id}"
    )


@RULES.rule("schedule-moved", Danger.WARNING)
def schedule_moved(situation: Situation) -> Outcome:
    """Time zone or offsets changed: ranges may overlap or leave a gap once."""
    names = [
        name
        for name in ("timezone", "offset_day", "offset_hour")
        if situation.action is Action.UPDATE and situation.field(name) is not None
    ]
    if not names:
        return None
    return (
        f"{', '.join(names)}: days and weeks are cut at another moment, so that the first range "
        "after the change overlaps the last one before it or leaves a gap; check both"
    )


@RULES.rule("organization-path", Danger.WARNING)
def created_for_the_organization(situation: Situation) -> Outcome:
    """An export without a project: real servers can't create it."""
    if situation.action is not Action.CREATE or situation.desired is None:
        return None
    if situation.desired.parent is not None:
        return None
    return (
        "an export without `project` is created through the organization path, where real "
        "servers fail; write `project: <key>` on it"
    )


@RULES.rule("type-not-taken", Danger.DANGER)
def type_not_taken(situation: Situation) -> Outcome:
    """The newest servers take AwsS3 and S3Compatible instead of S3."""
    wanted = _wanted(situation, "destination")
    kind_of_store = wanted.get("type") if isinstance(wanted, Mapping) else None
    creates = situation.action in (Action.CREATE, Action.REPLACE)
    if not creates or situation.dialect is not Dialect.V2026 or kind_of_store != "S3":
        return None
    return (
        "this server no longer takes S3: write AwsS3 or S3Compatible with an `integration` that "
        "holds the credentials"
    )
