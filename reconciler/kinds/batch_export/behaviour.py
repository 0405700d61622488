"""The behaviour of batch exports: what planning and operations need besides their fields."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from reconciler.kinds.batch_export import DESTINATION, INTEGRATIONS, PLACES
from reconciler.kinds.batch_export.consequences import (
    RULES,
    live_value,
    runs_of,
    wanted,
    wanted_type,
)
from reconciler.kinds.batch_export.query import tables_of
from reconciler.kinds.behaviour import (
    NOT_ACCEPTED,
    Behaviour,
    Objection,
    Overlap,
    RuleContext,
    Rules,
)
from reconciler.model.kind import SINCE_2026, Action, Dialect, Integrations
from reconciler.model.live import Operation, Paging, Repeat
from reconciler.model.plan import Consequence, Severity
from reconciler.model.schemas import known_schema, moment
from reconciler.model.text import printable
from reconciler.model.times import moment_as_option
from reconciler.model.values import MISSING, JSONObject, mapping_of, path_text, value_at

_READ, _WRITE = "batch_export:read", "batch_export:write"
_BY_SESSION = frozenset({Dialect.V2025})
"""Servers that refuse some operations to API keys."""
_reads = partial(Operation, method="GET", scope=_READ, below_parent=True)
_reads_since_2025 = partial(_reads, since=Dialect.V2025)
_writes = partial(Operation, method="POST", scope=_WRITE, below_parent=True, since=Dialect.V2025)
_creates = partial(_writes, repeat=Repeat.AFTER_LOOKING)
_ACTIVITY, _TEST = "/api/projects/{parent}/activity_log/", "/api/projects/{parent}/batch_exports/"

OPERATIONS = (
    Operation("pause", "POST", "pause/", _WRITE, source="1.7"),
    Operation("unpause", "POST", "unpause/", _WRITE, source="1.7"),
    _reads("runs", path="runs/", paging=Paging.CURSOR, source="7"),
    _reads("run", path="runs/{run}/", source="7"),
    _reads("logs", path="logs/", paging=Paging.PAGES, refused_to_keys=_BY_SESSION, source="9"),
    _reads("run_logs", path="runs/{run}/logs/", paging=Paging.PAGES, source="9"),
    # Until autumn 2025 a backfill is created on the second path only (8.1).
    _creates("backfill", path="backfills/", source="8.1"),
    replace(
        Operation("backfill_of_old_servers", "POST", "backfill/", _WRITE, source="8.1"),
        repeat=Repeat.AFTER_LOOKING,
        until=Dialect.V2025,
    ),
    _reads_since_2025("backfills", path="backfills/", paging=Paging.CURSOR, source="8.1"),
    _reads_since_2025("backfill_row", path="backfills/{backfill}/", source="8.1"),
    _writes("cancel_backfill", path="backfills/{backfill}/cancel/", source="8.1"),
    replace(
        _reads_since_2025("activity", path=_ACTIVITY, paging=Paging.CURSOR, source="10"),
        scope="activity_log:read",
        query={"scope": "BatchExport"},
    ),
    _reads_since_2025("test_steps", path=f"{_TEST}test/", refused_to_keys=_BY_SESSION, source="11"),
    _creates("run_test_step", path="run_test_step/", refused_to_keys=_BY_SESSION, source="11"),
    _creates(
        "run_test_step_new",
        path=f"{_TEST}run_test_step_new/",
        refused_to_keys=_BY_SESSION,
        source="11",
    ),
)
_TABLES = frozenset(tag for tag, words in PLACES.items() if "table" in words.values())
_DEFAULT_MODEL = "events"
_EVENT_LISTS = ("include_events", "exclude_events")
REFUSALS = Rules(refusals=[NOT_ACCEPTED])
_CREATES = (Action.CREATE, Action.REPLACE)
_WRITES = (*_CREATES, Action.UPDATE)
_MAY_DROP_INTEGRATION = frozenset({"Postgres"})
_SCHEDULE_KEPT = timedelta(days=7)


def backfill_warnings(body: JSONObject) -> Iterator[Consequence]:
    """Yield the consequences of backfilling an export, whatever the range is."""
    if (body.get("model") or _DEFAULT_MODEL) != _DEFAULT_MODEL:
        return
    yield Consequence(
        "selects-by-event-time",
        Severity.WARNING,
        "a backfill selects events by their timestamp, and scheduled runs by arrival: events that "
        "arrived late can be exported twice or not at all, most of all at the ends of the range",
    )
    destination = str(value_at(body, ("destination", "type")))
    if destination in _TABLES:
        yield Consequence(
            "appends-rows",
            Severity.WARNING,
            f"{destination} appends: rows of this range that were exported before, also by runs "
            "that failed later, are in the table twice",
        )
    elif destination == "HTTP":
        yield Consequence(
            "sends-again",
            Severity.WARNING,
            "events of this range that were sent before are sent again",
        )


def _has_ended(body: JSONObject, now: datetime) -> bool:
    """Return whether the last run was before an instant."""
    end = moment(body.get("end_at"))
    return end is not None and end <= now


_OVERLAP = Overlap(
    source=(("model",),),
    selection=(
        *(("sql_query",), ("filters",), ("hogql_modifiers",)),
        *(("destination", "config", name) for name in _EVENT_LISTS),
    ),
    has_ended=_has_ended,
    tables=tables_of,
)


def _by_integration(tag: str, release: Dialect) -> bool:
    """Return whether an integration must hold the credentials of a new destination."""
    since = known_schema(f"destinations/{tag}").get("x-integration-since")
    return since is not None and release.is_since(Dialect(since))


def _required(tag: str, config: JSONObject, release: Dialect, word: str) -> Iterator[str]:
    """Yield what a server requires in the config of a new destination, as dotted names.

    With the word `fields`, every field of the credentials that it uses.
    """
    schema = known_schema(f"destinations/{tag}")
    conditions = [{"required": schema["required"]}, *schema.get("x-required-when", ())]
    if not _by_integration(tag, release):
        conditions += [{"required": schema.get("x-required-unless", ())}]
        conditions += schema.get("x-credentials", ())
    for condition in conditions:
        if condition.get("when", {}).items() <= config.items():
            yield from condition.get(word, ())


def _missing(
    tag: str, config: JSONObject, release: Dialect | None, word: str = "required"
) -> Iterator[str]:
    """Yield what a new destination lacks. For an unknown version, what all of them require."""
    releases = (release,) if release is not None else DESTINATION.dialects[tag]
    first, *others = (tuple(_required(tag, config, release, word)) for release in releases)
    for name in first:
        value = value_at(config, tuple(name.split(".")))
        if value in (None, MISSING, {}) and all(name in names for names in others):
            yield name


def _server(context: RuleContext) -> str:
    return "the server" + (f" (dialect {context.dialect})" if context.dialect else "")


@REFUSALS.refusal("field-required", on=_WRITES)
def field_required(context: RuleContext) -> Objection | None:
    """A new export lacks what its destination type requires, or a required field is empty.

    Servers up to 2025 require address and credentials in the configuration. Servers of 2026 require
    an integration, which holds the credentials, and do not accept an empty prefix of a bucket. Set
    the field, or create an integration and name it in `destination.integration`.
    """
    tag, destination = wanted_type(context), mapping_of(context.sent("destination"))
    if tag not in DESTINATION.variants or not destination:
        return None
    config, dialect = mapping_of(destination.get("config")), context.dialect
    filled = known_schema(f"destinations/{tag}").get("x-not-empty", ())
    missing = [name for name in filled if config.get(name) == ""]
    missing += _missing(tag, config, dialect) if context.creates else ()
    fix, path = "set it in `destination.config`", ("destination", "config")[: 2 if missing else 1]
    if _lacks_integration(context, tag):
        missing.insert(0, "an integration")
        fix = "create an integration in the service, and set `destination: {integration: <name>}`"
    if not missing:
        return None
    return Objection(
        f"{_server(context)} requires {', '.join(missing)} for destination type {tag}", fix, path
    )


def _lacks_integration(context: RuleContext, tag: str) -> bool:
    if context.dialect is None or not _by_integration(tag, context.dialect):
        return False
    if value_at(wanted(context, "destination"), ("integration",)) not in (None, MISSING):
        return False
    is_removed = context.field("destination", "integration") is not None
    return context.creates or (is_removed and tag not in _MAY_DROP_INTEGRATION)


@REFUSALS.refusal("integration-of-another-project", on=_CREATES)
def integration_of_another_project(context: RuleContext) -> Objection | None:
    """An export moves to another project with its integration, or is created with a project.

    An integration belongs to one project. Apply the project first (`--target`), create the
    integration in it, and name that one.
    """
    change = context.change
    is_new = change.parent_id is None and change.parent is not None
    has_moved = change.old_parent_id not in (None, change.parent_id)
    for taken in INTEGRATIONS.get(wanted_type(context), ()) if context.creates else ():
        path = ("destination", *map(str, taken.path))
        named = context.sent(*path)
        name = taken.name_in(named)
        is_named = name is not None or str(named).isdigit()
        if is_named and (is_new or (has_moved and named == live_value(context, *path))):
            problem = (
                "is not in a project that does not exist yet"
                if is_new
                else "belongs to the project that the export moves from"
            )
            fix = f"set `{path_text(path)}` to the name of one of the new project"
            if is_new and change.parent is not None:
                fix = (
                    f"run `apply --target project.{change.parent.key}`, create the "
                    "integration in the project, then apply the rest"
                )
            return Objection(f"integration {name or named} {problem}", fix, path)
    return None


@REFUSALS.refusal("unknown-integration", on=_WRITES)
def unknown_integration(context: RuleContext) -> Objection | None:
    """An id is not that of an integration of the project, or the integration has another kind.

    Set the name or the id of one of the right kind.
    """
    table = context.integrations or Integrations(hidden="not read")
    for taken in INTEGRATIONS.get(wanted_type(context), ()) if not table.hidden else ():
        path = ("destination", *map(str, taken.path))
        value = context.sent(*path)
        item = table.of_id(value)
        if str(value).isdigit() and (item is None or item.kind != taken.kind):
            what = printable(str(item or value))
            problem = f"has the kind {item.kind}" if item is not None else "is not in the project"
            fix = "set it to the name or id of such an integration"
            message = f"integration {what} {problem}; the service requires one of kind {taken.kind}"
            return Objection(message, fix, path)
    return None


@REFUSALS.refusal("credentials-not-readable", on=(Action.REPLACE,))
def credentials_not_readable(context: RuleContext) -> Objection | None:
    """A replacement would lose credentials that only the service stores.

    The new export would fail without them. Set them in the configuration, or use `policy.attempt`
    if it needs none.
    """
    tag, release = wanted_type(context), context.dialect
    is_same = tag in DESTINATION.variants and tag == live_value(context, "destination", "type")
    if not context.creates or not is_same:
        return None
    config = mapping_of(context.sent("destination", "config"))
    properties = known_schema(f"destinations/{tag}")["properties"]
    whole = {**{name: node.get("default") for name, node in properties.items()}, **config}
    refused = set(_missing(tag, config, release))
    missing = [name for name in _missing(tag, whole, release, "fields") if name not in refused]
    if not missing:
        return None
    return Objection(
        f"{_server(context)} does not return {', '.join(missing)}, which the new export would lack",
        "set it in `destination.config`, as `${secret:…}`",
        ("destination", "config"),
    )


@REFUSALS.refusal("query-required", on=_WRITES)
def query_required(context: RuleContext) -> Objection | None:
    """An export of model hogql has no query.

    Set `hogql_query`.
    """
    if wanted(context, "model") != "hogql" or wanted(context, "sql_query"):
        return None
    if not context.creates and context.sent("hogql_query") is MISSING:
        return None
    return Objection("an export of model hogql needs a query", "set `hogql_query`", ("model",))


@REFUSALS.refusal("primary-key-required", on=_WRITES)
def primary_key_required(context: RuleContext) -> Objection | None:
    """An export with `incremental_mode: MERGE` does not name the columns that identify a row.

    Set `primary_key`.
    """
    names = ("incremental_mode", "primary_key")
    is_sent = any(context.sent(name) is not MISSING for name in names)
    if context.dialect not in SINCE_2026 or not (is_sent or context.creates):
        return None
    mode, key = (wanted(context, name) for name in names)
    if mode != "MERGE" or key or wanted(context, "model") != "hogql":
        return None
    text = f"{_server(context)} requires a primary key for incremental_mode MERGE"
    return Objection(text, "set `primary_key`", names[:1])


@REFUSALS.refusal("query-not-accepted", on=_WRITES)
def query_not_accepted(context: RuleContext) -> Objection | None:
    """The server accepts a query only with model hogql.

    Servers of autumn 2026 accept queries of other models only in a project that has such an export
    already. Use model hogql.
    """
    query = context.sent("hogql_query")
    if context.dialect not in SINCE_2026 or query in (None, MISSING):
        return None
    if (wanted(context, "model") or "events") == "hogql" or any(_has_query(context)):
        return None
    return Objection(
        f"{_server(context)} accepts a query only with model hogql in this project",
        "set `model: hogql`",
        ("sql_query",),
    )


@REFUSALS.refusal("filters-not-accepted", on=_WRITES)
def filters_not_accepted(context: RuleContext) -> Objection | None:
    """An export of another model than events has filters.

    Servers of 2026 accept them only with model events, also those that a replacement takes over
    from the live export. Set `filters: null`, or use model events.
    """
    is_sent = context.sent("filters") is not MISSING or context.sent("model") is not MISSING
    model = wanted(context, "model") or "events"
    if context.dialect not in SINCE_2026 or not is_sent or model == "events":
        return None
    if not wanted(context, "filters"):
        return None
    return Objection(
        f"{_server(context)} accepts filters only with model events",
        "set `filters: null`",
        ("filters",),
    )


def _has_query(context: RuleContext) -> Iterator[bool]:
    """Yield for every export of the project whether it allows others to have a query."""
    for sibling in context.siblings:
        body = sibling.body
        # Servers of spring 2026 do not have this field, and accept queries.
        is_older = "incremental_mode" not in body
        yield is_older or bool(body.get("hogql_query") and body.get("model") != "hogql")


@REFUSALS.refusal("query-not-removable", on=(Action.UPDATE,))
def query_not_removable(context: RuleContext) -> Objection | None:
    """The query of an export is removed.

    Servers of 2025 refuse null. Keep the query, or create another export without it.
    """
    if context.dialect is not Dialect.V2025 or context.sent("hogql_query") is not None:
        return None
    return Objection(
        f"{_server(context)} cannot remove the query of an export",
        "keep the query, or create another export without it",
        ("sql_query",),
    )


@REFUSALS.refusal("project-required", on=(Action.CREATE,))
def project_required(context: RuleContext) -> Objection | None:
    """A new export has no project.

    Real servers cannot create it. Set `project`.
    """
    if context.dialect in (None, Dialect.INTERFACE) or context.desired is None:
        return None
    if context.desired.parent is not None:
        return None
    return Objection(
        f"{_server(context)} cannot create an export without a project",
        "set `project: <key>`",
    )


@REFUSALS.refusal("schedule-deleted", on=(Action.UPDATE, Action.PAUSE))
def schedule_deleted(context: RuleContext) -> Objection | None:
    """An export changes or is paused more than a week after its `end_at`.

    Servers of 2025 and 2026 have deleted its schedule by then, and fail. Delete the export and
    create it again.
    """
    end = moment(live_value(context, "end_at"))
    if end is None or live_value(context, "paused") is True:
        return None
    # Writes and runs keep a schedule: it is deleted a week after the last of them.
    times = (
        live_value(context, "created_at"),
        live_value(context, "last_updated_at"),
        live_value(context, "last_paused_at"),
        *(run.get("created_at") for run in runs_of(context.live)),
    )
    last = max((end, *filter(None, map(moment, times))))
    if context.dialect in (None, Dialect.INTERFACE) or context.now - last <= _SCHEDULE_KEPT:
        return None
    return Objection(
        f"its end_at {moment_as_option(end)} passed more than 7 days ago, and the service has "
        "deleted its schedule",
        "delete it with `state: absent` and apply; then declare it again",
        ("end_at",),
    )


BEHAVIOUR = Behaviour(
    operations=OPERATIONS,
    rules=tuple(RULES.consequences),
    refusals=tuple(REFUSALS.refusals),
    backfill_warnings=backfill_warnings,
    overlap=_OVERLAP,
)
