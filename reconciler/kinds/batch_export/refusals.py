"""Changes of exports that servers are known to refuse. `policy.attempt` uses the ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from functools import cache

from reconciler.kinds.batch_export.consequences import (
    live_value,
    runs_of,
    wanted,
    wanted_type,
)
from reconciler.kinds.batch_export.destinations import DESTINATION, INTEGRATIONS
from reconciler.model.behaviour import Objection, RuleContext, Rules, ignored
from reconciler.model.field_types import moment
from reconciler.model.kind import Action, Dialect, Integrations
from reconciler.model.schemas import known_schema
from reconciler.model.text import printable, quoted
from reconciler.model.times import moment_as_option
from reconciler.model.values import MISSING, JSONObject, mapping_of, path_text, value_at

REFUSALS = Rules()
_CREATES = (Action.CREATE, Action.REPLACE)
_WRITES = (*_CREATES, Action.UPDATE)
_MAY_DROP_INTEGRATION = frozenset({"Postgres"})
_MODELS_SINCE: Mapping[str, Dialect] = {"hogql": Dialect.V2026}
_SCHEDULE_KEPT = timedelta(days=7)
_CAPTURE_ADDRESSES = ("https://us.i.posthog.com/batch/", "https://eu.i.posthog.com/batch/")
_INSTEAD = {"S3": "use AwsS3 or S3Compatible, with an `integration` for the credentials"}


def _release(context: RuleContext) -> Dialect | None:
    """Return the dialect that accepts the same: the interface is not older than 2025 here."""
    return Dialect.V2025 if context.dialect is Dialect.INTERFACE else context.dialect


def _has(release: Dialect, since: Dialect | None, until: Dialect | None) -> bool:
    return release in Dialect.between(since, until)


@cache
def _range_of(tag: str) -> tuple[Dialect | None, Dialect | None]:
    schema = known_schema(f"destinations/{tag}")
    since, until = schema.get("x-since"), schema.get("x-until")
    return Dialect(since) if since else None, Dialect(until) if until else None


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
    releases = (release,) if release is not None else Dialect.between(*_range_of(tag))
    first, *others = (tuple(_required(tag, config, release, word)) for release in releases)
    for name in first:
        value = value_at(config, tuple(name.split(".")))
        if value in (None, MISSING, {}) and all(name in names for names in others):
            yield name


def _server(context: RuleContext) -> str:
    return "the server" + (f" (dialect {context.dialect})" if context.dialect else "")


@REFUSALS.refusal("type-not-accepted", on=_WRITES)
def type_not_accepted(context: RuleContext) -> Objection | None:
    """The server does not have the destination type.

    Servers of 2026 have AwsS3 and S3Compatible instead of S3, and refuse every change of the
    destination of an S3 export. Older servers do not have the newer types. Use another type.
    """
    tag, release = wanted_type(context), _release(context)
    if release is None or tag not in DESTINATION.variants or context.sent("destination") is MISSING:
        return None
    if _has(release, *_range_of(tag)):
        return None
    known = [other for other in DESTINATION.variants if _has(release, *_range_of(other))]
    return Objection(
        f"{_server(context)} does not accept destination type {tag}",
        _INSTEAD.get(tag, f"use one of {', '.join(known)}"),
        ("destination", "type"),
    )


@REFUSALS.refusal("integration-required", on=_WRITES)
def integration_required(context: RuleContext) -> Objection | None:
    """The destination type requires an integration.

    It holds the credentials. Create it in the service, and set `destination.integration` to its
    name or id.
    """
    removed = context.field("destination", "integration")
    if not context.creates and removed is None:
        return None
    tag, release = wanted_type(context), _release(context)
    if release is None or tag not in DESTINATION.variants or not _by_integration(tag, release):
        return None
    if not context.creates and tag in _MAY_DROP_INTEGRATION:
        return None
    if value_at(wanted(context, "destination"), ("integration",)) not in (None, MISSING):
        return None
    return Objection(
        f"{_server(context)} requires an integration for destination type {tag}",
        "create an integration in the service, and set `destination: {integration: <name>}`",
        ("destination",),
    )


@REFUSALS.refusal("integration-of-another-project", on=_CREATES)
def integration_of_another_project(context: RuleContext) -> Objection | None:
    """An export moves to another project with its integration, or is created with a project.

    An integration belongs to one project. Set `destination.integration` to one of the new project,
    after that is created. A name finds the integration of the project that the export is in.
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
            return Objection(f"integration {name or named} {problem}", fix, path)
    return None


@REFUSALS.refusal("unknown-integration", on=_WRITES)
def unknown_integration(context: RuleContext) -> Objection | None:
    """An id is not that of an integration of the project, or the integration has another kind.

    Ids are checked only in projects of which the configuration names an integration. Set the name
    or the id of an integration of the right kind.
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


@REFUSALS.refusal("field-not-accepted", on=_WRITES)
def field_not_accepted(context: RuleContext) -> Objection | None:
    """The server does not know a field of the destination.

    Such as credentials of object stores and `endpoint_url` on servers of 2026, and
    `legacy_parquet_extension` on older ones. Remove the field.
    """
    release, config = _release(context), context.sent("destination", "config")
    if release is None or not isinstance(config, Mapping):
        return None
    tag, fields = wanted_type(context), DESTINATION.named_fields_of(wanted(context, "destination"))
    names = [
        name
        for name in config
        if name in fields and not _has(release, fields[name].since, fields[name].until)
    ]
    if not names:
        return None
    is_secret = any(fields[name].secret for name in names)
    return Objection(
        f"{_server(context)} does not accept {', '.join(names)} for destination type {tag}",
        "remove it and use an `integration`" if is_secret else "remove it",
        ("destination", "config", names[0]),
    )


@REFUSALS.refusal("field-ignored", on=_WRITES)
def field_ignored(context: RuleContext) -> Objection | None:
    """The server does not have a field of the export, and would ignore it.

    Such as `timezone` and offsets on servers before 2026. Every plan would show the change again.
    Remove the field, or leave it out of this environment.
    """
    return ignored(context)


@REFUSALS.refusal("field-required", on=_WRITES)
def field_required(context: RuleContext) -> Objection | None:
    """A new export lacks a field that its destination requires, or a required field is empty.

    Servers up to 2025 require address and credentials in the configuration. Servers of 2026 do not
    accept an empty prefix of a bucket. Set the field.
    """
    tag, sent = wanted_type(context), context.sent("destination", "config")
    if tag not in DESTINATION.variants:
        return None
    config = mapping_of(sent)
    filled = known_schema(f"destinations/{tag}").get("x-not-empty", ())
    missing = [name for name in filled if config.get(name) == ""]
    if context.creates:
        missing += _missing(tag, config, _release(context))
    if not missing:
        return None
    return Objection(
        f"{_server(context)} requires {', '.join(missing)} for destination type {tag}",
        "set it in `destination.config`",
        ("destination", "config"),
    )


@REFUSALS.refusal("credentials-not-readable", on=(Action.REPLACE,))
def credentials_not_readable(context: RuleContext) -> Objection | None:
    """A replacement would lose credentials that only the service stores.

    No server returns them, so the new export would be created without them, and fail. Set them in
    the configuration. An export that needs none, because its server has a role, is replaced with
    `policy.attempt`.
    """
    tag, release = wanted_type(context), _release(context)
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


@REFUSALS.refusal("legacy-extension", on=_WRITES)
def legacy_extension(context: RuleContext) -> Objection | None:
    """`legacy_parquet_extension` is switched on.

    Servers only switch it off: it exists for exports from before 2026. Remove it.
    """
    path = ("destination", "config", "legacy_parquet_extension")
    if context.dialect is not Dialect.V2026 or context.sent(*path) is not True:
        return None
    return Objection(f"{_server(context)} does not set {path[-1]} to true", "remove it", path)


@REFUSALS.refusal("address-not-accepted", on=_WRITES)
def address_not_accepted(context: RuleContext) -> Objection | None:
    """An HTTP export has another address than those of PostHog.

    Servers of 2026 send HTTP exports only to the capture addresses of PostHog Cloud. Use one of
    them.
    """
    path = ("destination", "config", "url")
    url = context.sent(*path)
    if context.dialect is not Dialect.V2026 or not isinstance(url, str):
        return None
    if url in _CAPTURE_ADDRESSES or wanted_type(context) != "HTTP":
        return None
    return Objection(
        f"{_server(context)} does not send exports to {quoted(url)}",
        f"use {' or '.join(_CAPTURE_ADDRESSES)}",
        path,
    )


@REFUSALS.refusal("model-not-accepted", on=_WRITES)
def model_not_accepted(context: RuleContext) -> Objection | None:
    """The server does not have the model.

    Older servers do not have model hogql. Use another one.
    """
    model, release = str(context.sent("model")), _release(context)
    since = _MODELS_SINCE.get(model)
    if since is None or release is None or release.is_since(since):
        return None
    return Objection(
        f"{_server(context)} does not accept model {model}", "use model events", ("model",)
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


@REFUSALS.refusal("query-not-accepted", on=_WRITES)
def query_not_accepted(context: RuleContext) -> Objection | None:
    """The server accepts a query only with model hogql.

    Servers of autumn 2026 accept queries of other models only in a project that has such an export
    already. Use model hogql.
    """
    query = context.sent("hogql_query")
    if context.dialect is not Dialect.V2026 or query in (None, MISSING):
        return None
    if (wanted(context, "model") or "events") == "hogql" or any(_has_query(context)):
        return None
    return Objection(
        f"{_server(context)} accepts a query only with model hogql in this project",
        "set `model: hogql`",
        ("sql_query",),
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

    Servers of 2025 and 2026 have deleted its schedule by then, and fail. They keep that of a paused
    export, and the week begins again with each change and run. Delete the export and create it
    again.
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
