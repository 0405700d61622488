"""The consequences of changes of batch exports, and the facts that rules depend on.

Ids are stable: `policy.deny` uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta

from reconciler.kinds.batch_export import DESTINATION
from reconciler.kinds.batch_export.query import code_of, hides_code
from reconciler.kinds.behaviour import Outcome, RuleContext, Rules
from reconciler.model.kind import Action, Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import Effect, FieldChange, NewPlace, Novelty, Severity
from reconciler.model.run import (
    BILLING,
    COMPLETED,
    FAILED,
    Cause,
    cause_of_pause,
    failures_in_a_row,
)
from reconciler.model.schemas import canonical_host, looks_like_address, moment
from reconciler.model.text import command_text, in_ascii, listed, quoted, several, shortened
from reconciler.model.times import moment_as_option, step_of
from reconciler.model.values import JSON, MISSING, JSONObject, Path, mapping_of, value_at

_UNITS = ((10**9, "B"), (10**6, "M"), (10**3, "k"))
_SUNDAY = datetime(1970, 1, 4, tzinfo=UTC)
RULES = Rules()
_CHANGES = (Action.UPDATE, Action.REPLACE)
_WRITES = (Action.CREATE, *_CHANGES)
_RUNS = (*_WRITES, Action.UNPAUSE)
_CONFIG, _TYPE = ("destination", "config"), ("destination", "type")
_CERT = (*_CONFIG, "has_self_signed_cert")
_QUERY, _WHEN = ("model", "sql_query"), ("timezone", "offset_day", "offset_hour")


def _in_config(*names: str) -> AbstractSet[Path]:
    return {(*_CONFIG, name) for name in names}


_PLACES = _in_config(*(name for words in DESTINATION.places.values() for name in words))
_EVENTS = _in_config("include_events", "exclude_events") | {("filters",)}
_FORMATS = _in_config(
    *("file_format", "compression", "legacy_parquet_extension", "use_json_type"),
    *("use_variant_type", "use_automatic_schema_evolution", "properties_data_type"),
) | {(name,) for name in ("incremental_mode", "primary_key", "version_key")}
_ENCRYPTION = _in_config("encryption", "kms_key_id")
_OTHER_TABLES = "dataWarehouseEventsModifiers"
"""The modifier with the tables that a query reads in place of events."""
_PERSONS = r"(?i)\b(?:raw_)?persons?\b|\bpoe\b"
_LONGEST_PLACE = 60
_LONGEST_ERROR = 121
_MOST_NAMES = 10
_DEGREES = (Severity.WARNING, Severity.INFO)
_SEVERE = (Severity.WARNING, Severity.DANGER)
_INTERVALS = {"hour": "hourly", "day": "daily", "week": "weekly"}
_OTHERS = "all others"
_LONG = 31
"""Days without runs that count as lost data."""


def live_value(context: RuleContext, *path: str) -> JSON:
    """Return the live value at a path, or MISSING."""
    return value_at(context.live.body, path) if context.live else MISSING


def wanted(context: RuleContext, name: str) -> JSON:
    """Return the value after the change: the declared one, or else the live one."""
    if context.desired is not None and name in context.desired.spec:
        return context.desired.spec[name]
    value = live_value(context, name)
    return None if value is MISSING else value


def wanted_type(context: RuleContext) -> str:
    """Return the destination type after the change."""
    return str(value_at(wanted(context, "destination"), ("type",)))


def aligned(instant: datetime, step: timedelta, body: JSONObject) -> datetime:
    """Return the last start of an interval, in UTC; weeks start on `offset_day`, else on Sunday."""
    day = body.get("offset_day")
    origin = _SUNDAY + timedelta(days=day if isinstance(day, int) else 0)
    return instant - (instant - origin) % step


def runs_of(live: LiveObject | None) -> tuple[JSONObject, ...]:
    """Return the latest runs of an export, newest first."""
    runs = live.body.get("latest_runs") if live is not None else None
    return tuple(run for run in runs if isinstance(run, Mapping)) if isinstance(runs, list) else ()


def rows_of_a_run(live: LiveObject | None) -> str | None:
    """Return the median number of rows of completed runs as text, None without any."""
    counts = [
        count
        for run in runs_of(live)
        if run.get("status") == COMPLETED
        if isinstance(count := run.get("records_completed"), int)
    ]
    if not counts:
        return None
    count = _median(counts)
    return f"about {_short(count)} {'row' if count == 1 else 'rows'}"


def _median(counts: Sequence[int]) -> int:
    """Return the median, rounded down. The module statistics takes 4 ms to import."""
    ordered = sorted(counts)
    return int((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2)


def _short(count: int) -> str:
    """Return a number with at most three digits: 950, 1.2 k, 28 M."""
    for size, unit in _UNITS:
        if count >= size:
            return f"{count / size:.1f}".removesuffix(".0") + f" {unit}"
    return str(count)


@RULES.rule("runs-missed-while-paused", Severity.WARNING, Effect.DELAYED, on=(Action.PAUSE,))
def runs_missed_while_paused(context: RuleContext) -> Outcome:
    """A paused export skips its runs, and does not make up for them.

    Fill the gap with a backfill: the plan that unpauses shows the command.
    """
    end = moment(live_value(context, "end_at"))
    if end is not None and end <= context.now:
        return None
    interval = str(live_value(context, "interval"))
    word, command = _INTERVALS.get(interval, f"'{interval}'"), _backfill(context, "--since-pause")
    return (
        f"{word} runs{_volume(context)} are not made during the pause; after unpausing, fill the "
        f"gap with: {command}"
    )


def _backfill(context: RuleContext, *options: str) -> str:
    words = ("backfill", context.change.address, *options)
    return command_text(*words, environment=context.environment)


def _volume(context: RuleContext) -> str:
    rows = rows_of_a_run(context.live)
    return f" ({rows} each)" if rows else ""


@RULES.rule("offset-kept", Severity.INFO, on=(Action.UPDATE,), of=("interval", *_WHEN))
def offset_kept(context: RuleContext) -> Outcome:
    """A PATCH of one offset resets the other, so its live value is sent.

    Declare both to decide them in the files.
    """
    body, declared = context.change.body or {}, context.desired.spec if context.desired else {}
    changed = {change.path[0] for change in context.change.fields}
    kept = [
        f"{name} stays {body[name]}"
        for name in ("offset_day", "offset_hour")
        if name in body and name not in declared and name not in changed
    ]
    return f"{kept[0]}: also sent, since the server resets it otherwise" if kept else None


@RULES.rule("gap-before-unpausing", Severity.WARNING, Effect.DELAYED, on=(Action.UNPAUSE,))
def gap_before_unpausing(context: RuleContext) -> Outcome:
    """Unpausing does not make up for skipped runs; a backfill does.

    Only the last pause is known: check the runs if it was paused twice.
    """
    since = moment(live_value(context, "last_paused_at"))
    if since is None:
        return (
            "runs skipped during the pause are not made up for, and the time of the pause is "
            "unknown; check the latest runs before you backfill"
        )
    end = moment(live_value(context, "end_at")) or context.now
    step, body = step_of(live_value(context, "interval")), context.live.body if context.live else {}
    bounds = (since, min(end, context.now))
    start, last = bounds if step is None else (aligned(bound, step, body) for bound in bounds)
    missed = None if step is None else max(0, int((last - start) / step))
    if missed == 0:
        return None
    count = several(missed, "run") if missed is not None else "runs"
    verb = "is" if missed == 1 else "are"
    begin, first, end_of_gap = map(moment_as_option, (since, start, last))
    command = _backfill(context, "--from", first, "--to", end_of_gap)
    return (
        f"{count}{_volume(context)} skipped since {begin} {verb} not made up for; fill the gap "
        f"with: {command}"
    )


@RULES.rule("paused-by-service", Severity.WARNING, Effect.DELAYED, on=(Action.UNPAUSE,))
def paused_by_service(context: RuleContext) -> Outcome:
    """The last runs failed, so the service paused the export.

    The failures still count: one more pauses it again, and cancels its backfills. Fix the cause,
    then backfill a short range.
    """
    runs = runs_of(context.live)
    if context.live is None or cause_of_pause(context.live.body) is not Cause.SERVICE:
        return None
    ended = [run for run in runs if run.get("status") in {COMPLETED, *FAILED}]
    failed = failures_in_a_row(str(run.get("status")) for run in ended)
    which = f"{'at least ' if failed == len(runs) else ''}the last {failed} runs"
    error = ended[0].get("latest_error")
    line = " ".join(error.split()) if isinstance(error, str) else ""
    text = shortened(line, _LONGEST_ERROR)
    reason = f" (last error: {text})" if text else ""
    return (
        f"paused by the service: {which} failed{reason}; fix the cause first, since one more "
        "failure causes another pause"
    )


@RULES.rule("billing-limit", Severity.WARNING, Effect.DELAYED, on=(Action.UNPAUSE,))
def billing_limit(context: RuleContext) -> Outcome:
    """The last run failed because a billing limit was exceeded.

    Settle it first: until then, neither runs nor backfills export anything.
    """
    runs = runs_of(context.live)
    if not runs or runs[0].get("status") != BILLING:
        return None
    return (
        "the last run exceeded a billing limit and exported nothing; runs and backfills fail until "
        "billing is settled"
    )


@RULES.rule("interval-changed", Severity.WARNING, Effect.DELAYED, on=_CHANGES, of=["interval"])
def interval_changed(context: RuleContext) -> Outcome:
    """The schedule changes immediately; past ranges stay as they are.

    New files or batches have other ranges. With a longer interval, data arrives later.
    """
    before, after = context.sides("interval")
    text = (
        f"the schedule changes immediately ({before} → {after}): new files or batches cover other "
        "ranges, past ones stay as they are"
    )
    was, now = step_of(before), step_of(after)
    is_shorter = was is not None and now is not None and now < was
    return (Effect.FORM, text) if is_shorter else text


@RULES.rule("destination-moved", Severity.WARNING, Effect.FORM, on=_CHANGES, of=_PLACES)
def destination_moved(context: RuleContext) -> Outcome:
    """Another bucket, prefix, table or the like: exported data stays at the old one.

    Move the data yourself, or backfill into the new location.
    """
    if context.field(*_TYPE) is not None:
        return None
    places = DESTINATION.places.get(wanted_type(context), {})
    moved = {
        name: "(default)" if change.before in (None, MISSING) else quoted(str(change.before))
        for change in context.change.fields
        if change.path in _PLACES
        if (name := str(change.path[-1])) in places and not _is_same_host(change)
    }
    if not moved:
        return None
    old = " and ".join(f"{places[name]} {value}" for name, value in moved.items())
    message = f"exported data stays at the old {old}; new runs write to the new location only"
    address = next(iter(places))
    leaves = any(name == address or looks_like_address(name) for name in moved)
    return (Effect.ELSEWHERE, message) if leaves else message


def _is_same_host(change: FieldChange) -> bool:
    before, after, name = str(change.before), str(change.after), str(change.path[-1])
    return looks_like_address(name) and canonical_host(before) == canonical_host(after)


@RULES.rule("credentials-to-new-address", Severity.DANGER, Effect.ELSEWHERE, on=_WRITES)
def credentials_to_new_address(context: RuleContext) -> Outcome:
    """A known secret, or credentials that the service stores, are sent to another address.

    Known is what an applied declaration uses; without an inventory, the live address. Check who
    controls the new one.
    """
    exposed = [item for item in context.change.new if item.sort is Novelty.SECRET]
    return "; ".join(map(_receiving, exposed)) or None


def _receiving(item: NewPlace) -> str:
    where = in_ascii(item.text)
    if len(where) > _LONGEST_PLACE:
        # The end of a name decides who has it.
        where = f"{where[: _LONGEST_PLACE // 2]}…{where[-_LONGEST_PLACE // 2 :]}"
    before = f" (before: {item.before})" if item.before else ""
    # An integration has credentials of its own.
    given = "" if where.startswith("integration") else f", with {item.what}"
    return f"data goes to {where}{before}{given}"


@RULES.rule("certificate-not-checked", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES, of=[_CERT])
def certificate_not_checked(context: RuleContext) -> Outcome:
    """A server with a certificate of its own is accepted, so another one can take its place.

    Check that the server has no certificate of a known authority.
    """
    before, after = context.sides(*_CERT)
    text = "server certificates are not checked: another server can pose as the destination"
    return text if after is True and before is not True else None


@RULES.rule("destination-type-changed", Severity.WARNING, Effect.ELSEWHERE, on=_CHANGES, of=[_TYPE])
def destination_type_changed(context: RuleContext) -> Outcome:
    """No data is copied; old servers keep the settings of the old type, with credentials.

    Copy the data yourself, and revoke credentials that you do not need.
    """
    before, after = context.sides(*_TYPE)
    kept = "; the server keeps the settings of the old type, credentials included"
    kept = kept if context.action is Action.UPDATE else ""
    return f"data exported to {before} stays there and is not copied to {after}{kept}"


@RULES.rule("model-changed", Severity.WARNING, Effect.FORM, on=_CHANGES, of=["model"])
def model_changed(context: RuleContext) -> Outcome:
    """Rows with other columns follow at the same location.

    Check the readers of the destination, or write to another table or prefix.
    """
    before, after = (quoted(str(side)) for side in context.sides("model"))
    return (
        f"rows of {after} follow rows of {before} at the same location, with other columns; check "
        "the readers of the destination"
    )


@RULES.rule("persons-exported", Severity.WARNING, Effect.ELSEWHERE, on=_WRITES, of=_QUERY)
def persons_exported(context: RuleContext) -> Outcome:
    """Persons with all their properties are exported, or a query reads them.

    Properties of persons are personal data, such as e-mail addresses. Check who can read the
    destination.
    """
    models, queries = context.sides("model"), context.sides("sql_query")
    before, after = (
        model == "persons" or re.search(_PERSONS, code_of(query)) is not None
        for model, query in zip(models, queries, strict=True)
    )
    text = "persons with their properties are exported; check who can read the destination"
    return text if after and not before else None


@RULES.rule("query-without-interval", Severity.WARNING, Effect.FORM, on=_WRITES, of=_QUERY)
def query_without_interval(context: RuleContext) -> Outcome:
    """A query of model hogql without `{data_interval_start}`: each run exports all rows.

    The destination gets the same rows again and again. Compare a time with
    `{data_interval_start}` and `{data_interval_end}`, or set `incremental_mode: MERGE`. A comment
    or a text does not count.
    """
    (_, model), (_, query) = context.sides("model"), context.sides("sql_query")
    has_interval = re.search(r"{\s*data_interval_start\s*}", code_of(query)) is not None
    if model != "hogql" or has_interval or wanted(context, "incremental_mode") == "MERGE":
        return None
    return "the query has no {data_interval_start}: each run exports all rows again"


@RULES.rule("query-in-comment", Severity.WARNING, Effect.FORM, on=_WRITES, of=["sql_query"])
def query_in_comment(context: RuleContext) -> Outcome:
    """A query of one line has a `--` comment, and what follows looks like a part of the query.

    The comment ends with the line, and a folded block (`>`) has one line. Write the query as a
    literal block (`|`), or the comment as `/* … */`.
    """
    _, query = context.sides("sql_query")
    text = "the query has one line, and a `--` comment hides the rest of it; write it as a block |"
    return text if hides_code(query) else None


@RULES.rule("events-changed", Severity.WARNING, Effect.LOST, on=_CHANGES, of=_EVENTS)
def events_changed(context: RuleContext) -> Outcome:
    """Events that were exported are not any more, or others are now, also by other filters.

    Check that no reader needs the first, and that all may see the second.
    """
    (only, only_after), (but, but_after) = (
        [set(names or ()) for names in context.sides(*_CONFIG, field)]
        for field in ("include_events", "exclude_events")
    )
    known = {_OTHERS, *only, *only_after, *but, *but_after}
    before, after = (only or known) - but, (only_after or known) - but_after
    was, now = (side if isinstance(side, list) else [] for side in context.sides("filters"))
    added, dropped = any(item not in was for item in now), any(item not in now for item in was)
    texts = {
        f"no longer exported: {listed(sorted(before - after), _MOST_NAMES)}": before - after,
        f"exported from now on: {listed(sorted(after - before), _MOST_NAMES)}": after - before,
        "more filters exclude events": added and not dropped,
        "fewer filters exclude events": dropped and not added,
        "other filters choose the events": added and dropped,
    }
    message = "; ".join(text for text, is_true in texts.items() if is_true)
    effect = Effect.LOST if before - after or added else Effect.ELSEWHERE
    return (effect, message) if message else None


@RULES.rule("region-changed", Severity.WARNING, Effect.LOST, on=_CHANGES, of=_in_config("region"))
def region_changed(context: RuleContext) -> Outcome:
    """Another region with the same bucket, which must be there: otherwise all runs fail.

    A bucket cannot move. Check its region.
    """
    before, after = context.sides(*_CONFIG, "region")
    old, bucket = context.sides(*_CONFIG, "bucket_name")
    text = f"bucket {quoted(str(bucket))} must be in region {after}, or all runs fail"
    return text if before != after and old == bucket else None


@RULES.rule("format-changed", Severity.WARNING, Effect.FORM, on=_CHANGES, of=_FORMATS)
def format_changed(context: RuleContext) -> Outcome:
    """Another file format, compression, type of columns or way to write rows for new data.

    Exported data stays as it is. Check that the readers of the destination accept both.
    """
    changed = [change.path[-1] for change in context.change.fields if change.path in _FORMATS]
    text = f"{listed(changed, _MOST_NAMES)}: readers must accept new and exported data"
    return text if context.field(*_TYPE) is None else None


@RULES.rule("encryption-changed", Severity.WARNING, Effect.ELSEWHERE, on=_CHANGES, of=_ENCRYPTION)
def encryption_changed(context: RuleContext) -> Outcome:
    """New files are not encrypted in the same way, or with another key.

    Check who can read them then, and that their readers have the key.
    """
    sides = context.sides(*_CONFIG, "encryption")
    was, now = (side if isinstance(side, str) else "" for side in sides)
    if context.field(*_TYPE) is not None or not (was or now):
        return None
    if was == now:
        return f"new files are encrypted with another key of {now}"
    text = f"new files are encrypted with {now}" if now else "new files are not encrypted"
    return f"{text}, no longer with {was}" if was else text


@RULES.rule(
    "query-modifiers-changed", Severity.WARNING, Effect.FORM, on=_WRITES, of=["hogql_modifiers"]
)
def query_modifiers_changed(context: RuleContext) -> Outcome:
    """The query has other results, or reads other tables in place of events.

    Check the rows of a run, and that the destination may have the data of these tables.
    """
    before, after = map(mapping_of, context.sides("hogql_modifiers"))
    if before.get(_OTHER_TABLES) != after.get(_OTHER_TABLES):
        return Effect.ELSEWHERE, f"{_OTHER_TABLES}: the query reads other tables in place of events"
    names = sorted(key for key in {**before, **after} if before.get(key) != after.get(key))
    text = f"{listed(names, _MOST_NAMES)}: the query has other results"
    return None if context.action is Action.CREATE else text


@RULES.rule("secret-reference-changed", Severity.WARNING, Effect.ELSEWHERE, on=_CHANGES)
def secret_reference_changed(context: RuleContext) -> Outcome:
    """A secret comes from another reference than it was applied from, so another one may be sent.

    Check that the destination may know it.
    """
    changed = [
        note.path[-1]
        for note in context.change.secrets
        if note.former and note.use.sent and note.ref.sources
    ]
    text = f"{listed(changed, _MOST_NAMES)}: another secret is sent; check that it may go there"
    return text if changed else None


@RULES.rule("query-changed", Severity.INFO, Effect.FORM, on=_CHANGES, of=["sql_query"])
def query_changed(context: RuleContext) -> Outcome:
    """New runs have the columns of the new query, or of the model without one.

    Exported data keeps the old ones. Check the readers of the destination.
    """
    _, after = context.sides("sql_query")
    source = "new query" if after not in (None, MISSING) else "model"
    return f"new runs have the columns of the {source}; exported data keeps the old ones"


@RULES.rule("ends-in-the-past", _SEVERE, Effect.LOST, on=_RUNS)
def ends_in_the_past(context: RuleContext) -> Outcome:
    """No more runs are scheduled. It is a danger for an export that runs: it stops for good.

    For past ranges use a backfill. A week after `end_at`, the service deletes the schedule of the
    export, and refuses changes: remove `end_at` before, or create the export again.
    """
    if context.action is Action.UPDATE and context.field("end_at") is None:
        return None
    end = moment(wanted(context, "end_at"))
    if end is None or end > context.now:
        return None
    text = f"end_at {moment_as_option(end)} has passed: no more runs are scheduled"
    # Not the live value: the pause may be a change of its own, and done before.
    if context.action not in _CHANGES or wanted(context, "paused") is True:
        return text
    before = moment(live_value(context, "end_at"))
    is_over = before is not None and before <= context.now
    return text if is_over else (Severity.DANGER, f"all runs stop for good: {text}")


@RULES.rule("end-moved", Severity.WARNING, Effect.LOST, on=_CHANGES, of=["end_at"])
def end_moved(context: RuleContext) -> Outcome:
    """The export ends, or ends earlier.

    Check that no reader needs later data.
    """
    before, end = map(moment, context.sides("end_at"))
    if end is None or end <= context.now or (before is not None and before <= end):
        return None
    return f"no runs are scheduled after {moment_as_option(end)}"


@RULES.rule("start-moved", _DEGREES, Effect.DELAYED, on=_WRITES, of=["start_at"])
def start_moved(context: RuleContext) -> Outcome:
    """A later start skips runs; an earlier start does not run anything by itself.

    A start in more than 31 days counts as lost data. For past ranges use a backfill.
    """
    start = moment(context.sides("start_at")[1])
    days = (start - context.now).days if start is not None else -1
    text = f"no runs are scheduled before {moment_as_option(start)}" if start is not None else ""
    if days > _LONG:
        return Effect.LOST, f"{text}, for {several(days, 'day')}"
    if context.action is Action.CREATE:
        return None
    if days >= 0:
        return text
    text = "an earlier start schedules no runs for past time; use a backfill for that"
    return Severity.INFO, text


@RULES.rule("history-lost", Severity.DANGER, Effect.LOST, on=(Action.DELETE, Action.REPLACE))
def history_lost(context: RuleContext) -> Outcome:
    """Deletion or replacement loses runs, logs and the id, and cancels backfills.

    To keep them, pause the export instead.
    """
    runs, rows, last = runs_of(context.live), rows_of_a_run(context.live), ""
    if runs:
        start = moment(runs[0].get("created_at"))
        facts = (
            f"{start:%Y-%m-%d %H:%M} UTC" if start is not None else "",
            str(runs[0].get("status") or ""),
            f"{rows} a run" if rows else "",
        )
        last = f" (last run {', '.join(filter(None, facts))})"
    new_id = "; a replacement has a new id" if context.action is Action.REPLACE else ""
    return (
        f"the history of runs and logs is lost{last} and running backfills are cancelled; exported "
        f"data stays at the destination{new_id}"
    )


@RULES.rule("schedule-moved", Severity.WARNING, Effect.FORM, on=_CHANGES, of=_WHEN)
def schedule_moved(context: RuleContext) -> Outcome:
    """Another time zone or offset: ranges of days and weeks overlap or leave a gap once.

    Compare the last range before it with the first one after; backfill a gap.
    """
    names = [name for name in _WHEN if context.field(name)]
    if wanted(context, "interval") not in ("day", "week"):
        return None
    return (
        f"{', '.join(names)}: days and weeks start at another time, so the first range after the "
        "change overlaps the last one before it or leaves a gap; check both"
    )


@RULES.rule("organization-path", Severity.WARNING, on=(Action.CREATE,))
def created_for_the_organization(context: RuleContext) -> Outcome:
    """The documented interface creates exports without a project, but no real server does.

    Set `project`. A server of a known version is a policy violation, `project-required`.
    """
    has_parent = context.desired is None or context.desired.parent is not None
    if has_parent or context.dialect not in (None, Dialect.INTERFACE):
        return None
    return (
        "an export without `project` is created through the organization path, which fails on real "
        "servers; add `project: <key>`"
    )
