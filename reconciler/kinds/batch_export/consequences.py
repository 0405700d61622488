"""What follows from changing a batch export: one small function a rule.

Each rule's id is stable: `policy.deny` names it, and docs/consequences.md explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.kinds.batch_export.destinations import PLACES
from reconciler.model.change import Action, Consequence, Danger
from reconciler.model.kind import ConsequenceRule, Situation
from reconciler.model.live import Dialect
from reconciler.model.shape import Instant
from reconciler.model.values import JSON, MISSING, value_at
from reconciler.model.wording import quoted

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


def runs_missed_while_paused(situation: Situation) -> Consequence | None:
    """Runs whose time comes while an export is paused are not made up for by themselves."""
    if situation.action is not Action.PAUSE:
        return None
    start = _text(situation.now)
    return Consequence(
        "runs-missed-while-paused",
        Danger.WARNING,
        f"runs due from {start} on (interval: {_live(situation, 'interval')}) are not made while "
        "it is paused; after unpausing, repair the gap with: "
        f"reconciler backfill {situation.address} --start {start} --end <time of unpausing>",
    )


def gap_before_unpausing(situation: Situation) -> Consequence | None:
    """Unpausing does not run what was missed."""
    if situation.action is not Action.UNPAUSE:
        return None
    since = _moment(_live(situation, "last_paused_at"))
    if since is None:
        return Consequence(
            "gap-before-unpausing",
            Danger.WARNING,
            "runs missed while it was paused are not made up for, and the server does not say "
            "since when it was paused; look at its runs before you backfill",
        )
    return Consequence(
        "gap-before-unpausing",
        Danger.WARNING,
        f"runs missed since {_text(since)} are not made up for; repair the gap with: "
        f"reconciler backfill {situation.address} --start {_text(since)} "
        f"--end {_text(situation.now)}",
    )


def interval_changed(situation: Situation) -> Consequence | None:
    """The schedule is rewritten at once (service-facts, trap 19)."""
    change = situation.field("interval")
    if situation.action is not Action.UPDATE or change is None:
        return None
    return Consequence(
        "interval-changed",
        Danger.WARNING,
        f"the schedule is rewritten at once ({change.before} → {change.after}): files or batches "
        "cover other ranges from now on, past ones stay as they are",
    )


def destination_moved(situation: Situation) -> Consequence | None:
    """What was exported stays where it is."""
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
    return Consequence(
        "destination-moved",
        Danger.WARNING,
        f"what was exported before stays under the old {' and '.join(moved)}; new runs write to "
        "the new place only",
    )


def destination_type_changed(situation: Situation) -> Consequence | None:
    """Old servers keep the old type's config, credentials included (service-facts 1.3)."""
    change = situation.field("destination", "type")
    if change is None or situation.action not in (Action.UPDATE, Action.REPLACE):
        return None
    kept = (
        "; the server keeps the old type's settings, credentials included"
        if situation.action is Action.UPDATE
        else ""
    )
    return Consequence(
        "destination-type-changed",
        Danger.WARNING,
        f"what was exported to {change.before} stays there and is not copied to "
        f"{change.after}{kept}",
    )


def model_changed(situation: Situation) -> Consequence | None:
    """Rows of another shape arrive in the same place."""
    change = situation.field("model")
    if situation.action not in (Action.UPDATE, Action.REPLACE) or change is None:
        return None
    return Consequence(
        "model-changed",
        Danger.WARNING,
        f"rows of {quoted(str(change.after))} follow rows of {quoted(str(change.before))} in the "
        "same place, with other columns; readers of the destination must cope",
    )


def query_changed(situation: Situation) -> Consequence | None:
    """The columns of what is written may change."""
    if situation.action is not Action.UPDATE or situation.field("sql_query") is None:
        return None
    return Consequence(
        "query-changed",
        Danger.INFO,
        "columns of new runs follow the new query; what is already exported keeps the old ones",
    )


def ends_in_the_past(situation: Situation) -> Consequence | None:
    """An export whose end has passed makes no runs."""
    if situation.action is Action.UPDATE and situation.field("end_at") is None:
        return None
    if situation.action not in (Action.CREATE, Action.UPDATE, Action.REPLACE):
        return None
    end = _moment(_wanted(situation, "end_at"))
    if end is None or end > situation.now:
        return None
    return Consequence(
        "ends-in-the-past",
        Danger.WARNING,
        f"end_at {_text(end)} has passed: no run is triggered any more",
    )


def start_moved(situation: Situation) -> Consequence | None:
    """Moving the start triggers nothing for the time before now."""
    change = situation.field("start_at")
    if situation.action is not Action.UPDATE or change is None:
        return None
    start = _moment(change.after)
    if start is not None and start > situation.now:
        return Consequence(
            "start-moved",
            Danger.WARNING,
            f"no run is triggered before {_text(start)}: runs due until then are not made",
        )
    return Consequence(
        "start-moved",
        Danger.INFO,
        "moving the start triggers no run for time that has passed; use a backfill for that",
    )


def history_lost(situation: Situation) -> Consequence | None:
    """A deleted export can't be brought back; its runs and logs go with it."""
    if situation.action not in _GONE:
        return None
    runs = _live(situation, "latest_runs")
    last = ""
    if isinstance(runs, list) and runs and isinstance(runs[0], Mapping):
        last = f" (last run {runs[0].get('created_at')}, {runs[0].get('status')})"
    new_id = "; the new export has a new id" if situation.action is Action.REPLACE else ""
    return Consequence(
        "history-lost",
        Danger.DANGER,
        f"its history of runs and logs is lost{last} and running backfills are cancelled; what "
        f"was exported stays at the destination{new_id}",
    )


def schedule_moved(situation: Situation) -> Consequence | None:
    """Days and weeks are cut at another moment."""
    names = [
        name
        for name in ("timezone", "offset_day", "offset_hour")
        if situation.action is Action.UPDATE and situation.field(name) is not None
    ]
    if not names:
        return None
    return Consequence(
        "schedule-moved",
        Danger.WARNING,
        f"{', '.join(names)}: days and weeks are cut at another moment, so that the first range "
        "after the change overlaps the last one before it or leaves a gap; check both",
    )


def created_for_the_organization(situation: Situation) -> Consequence | None:
    """Real servers can't create on the organization path (service-facts 1.10, trap 5)."""
    if situation.action is not Action.CREATE or situation.desired is None:
        return None
    if situation.desired.parent is not None:
        return None
    return Consequence(
        "organization-path",
        Danger.WARNING,
        "an export without `project` is created through the organization path, where real "
        "servers fail; write `project: <key>` on it",
    )


def type_not_taken(situation: Situation) -> Consequence | None:
    """The newest servers split S3 into two types and take no keys (service-facts 1.3, trap 15)."""
    wanted = _wanted(situation, "destination")
    kind_of_store = wanted.get("type") if isinstance(wanted, Mapping) else None
    creates = situation.action in (Action.CREATE, Action.REPLACE)
    if not creates or situation.dialect is not Dialect.V2026 or kind_of_store != "S3":
        return None
    return Consequence(
        "type-not-taken",
        Danger.DANGER,
        "this server no longer takes S3: write AwsS3 or S3Compatible with an `integration` that "
        "holds the credentials",
    )


RULES: tuple[ConsequenceRule, ...] = (
    runs_missed_while_paused,
    gap_before_unpausing,
    interval_changed,
    destination_moved,
    destination_type_changed,
    model_changed,
    query_changed,
    ends_in_the_past,
    start_moved,
    history_lost,
    schedule_moved,
    created_for_the_organization,
    type_not_taken,
)

CONSEQUENCES: tuple[str, ...] = (
    "runs-missed-while-paused",
    "gap-before-unpausing",
    "interval-changed",
    "destination-moved",
    "destination-type-changed",
    "model-changed",
    "query-changed",
    "ends-in-the-past",
    "start-moved",
    "history-lost",
    "schedule-moved",
    "organization-path",
    "type-not-taken",
)
