"""`reconciler projects`: list projects, show one, reset its token."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    auto_approve_option,
    format_option,
    next_command,
    service_options,
    workspace_of,
)
from reconciler.commands.process import no_terminal, stop_on_signals, write_message, write_report
from reconciler.commands.screen import approved, render_options, run_shown, show_report
from reconciler.commands.workspace import Workspace
from reconciler.errors import (
    AmbiguousOutcome,
    BadUsage,
    Forbidden,
    InvalidResponse,
    ReconcilerError,
)
from reconciler.model.public import Count, Public, derived
from reconciler.model.redaction import Revealed
from reconciler.model.text import json_shown, listed, named, printable, quoted, several
from reconciler.model.values import JSON, Address
from reconciler.render import writer_of
from reconciler.render.document import Cell, Column, Document, Facts, Lines, Row, Table
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.model.live import LiveObject, Routes
    from reconciler.service.operations import ObjectCalls

RESET = "reset_token"
TOKEN = "api_token"  # noqa: S105 - the name of a field
_COLUMNS = tuple(map(Column, ("id", "name", "exports", "timezone", "resource")))
_MOST_MISSING = 5
_ANSWERS = ("activity", "demo-data")
_ACTIONS = ("list", "show", *_ANSWERS, "reset-token")
_OPTIONS = {"reveal": ("show", "reset-token"), "auto-approve": ("reset-token",)}
"""The actions that have an option."""
_BROKEN = """\
A new token replaces that of {address} {name} (id {id}).
Clients that send events with the old token stop working until they use the new one.
This can't be undone.
"""


class ProjectLine(Public, frozen=True):
    """A live project."""

    address: Address
    id: str
    """Its id."""
    name: str
    """Its live name."""
    timezone: str | None
    """Its time zone, null if unknown."""
    exports: Count
    """Batch exports in it."""

    @derived
    def managed(self) -> bool:
        """Whether a resource of the configuration claims it."""
        return not self.address.is_unmanaged


class ProjectReport(Public, frozen=True):
    """The projects of an organization, as `projects list --format json` prints them."""

    schema = "projects"
    version = 1

    environment: str
    """Name of the environment."""
    base_url: str
    """Address of the service."""
    organization: str
    """Id of the organization."""
    projects: tuple[ProjectLine, ...]
    """The projects."""
    missing: tuple[Address, ...] = ()
    """Resources that do not exist yet."""


class ProjectDetails(Public, frozen=True):
    """What an operation of a project returned."""

    schema = "project_details"
    version = 1

    address: Address
    id: str
    """Its id."""
    name: str
    """Its live name."""
    fields: Mapping[str, JSON]
    """The answer of the service, by the names of the API. Secrets are masked."""
    page: str | None = None
    """Address of its settings on the service, null if unknown."""


@command(
    "projects",
    examples=(
        ("projects list -e production", "List the projects, with the number of their exports"),
        ("projects show shop --format json", "Show the settings of one project, for programs"),
        ("projects reset-token shop --reveal", "Replace its token, and print the new one"),
    ),
    page="docs/operations.md",
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="ACTION")
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completion.parents)
@service_options
@option("--reveal", is_flag=True, help="Print the API token (show, reset-token).")
@auto_approve_option
@format_option("project_details")
def projects_command(action: str, name: str | None, output_format: str, **options: Any) -> None:
    """List projects, show one, or reset its API token.

    ACTION is one of: list; show, the settings; activity; demo-data, whether demo data is being
    generated; reset-token. NAME is an address, an id, a key, a name or a glob of one project; list
    shows all without it. Servers since 2025 refuse the last three to API keys.

    reset-token asks for the name of the project. The request is sent once. If its answer is lost,
    the project is read to see whether the token changed.
    """
    _check_options(action, name, options)
    workspace = workspace_of(options)
    if action == "list":
        every = partial(projects, names=(name,) if name else ())
        show_report("projects", output_format, every, workspace)
        return
    if action == "reset-token":
        details = _reset_shown(workspace, name or "", options)
        write_report(writer_of(output_format, "project_details")(details, render_options()))
        return
    operation = action.replace("-", "_") if action in _ANSWERS else None
    work = partial(show_project, name=name or "", operation=operation, reveal=options["reveal"])
    show_report("project_details", output_format, work, workspace)


def _reset_shown(workspace: Workspace, name: str, options: Mapping[str, Any]) -> ProjectDetails:
    from reconciler.planning.approval import typed

    asks = not options["auto_approve"]
    if asks and not workspace.runtime.interactive:
        raise no_terminal()

    async def approve(details: ProjectDetails) -> bool:
        address, name = printable(str(details.address)), quoted(details.name)
        write_message(_BROKEN.format(address=address, name=name, id=details.id))
        question = "\nType the name of the project to reset its token: "
        if asks and not await approved(typed(question, details.name)):
            return False
        # A signal may not hide whether the request took effect.
        stop_on_signals(workspace.runtime.stop)
        return True

    work = partial(reset_token, name=name, approve=approve, reveal=options["reveal"])
    return run_shown(work, workspace)


def _check_options(action: str, name: str | None, options: Mapping[str, Any]) -> None:
    """Raise BadUsage for a missing name, and for options of other actions."""
    if name is None and action != "list":
        raise BadUsage(
            f"projects {action} requires NAME",
            hint=f"list them: {next_command('projects', 'list')}",
        )
    for shown, actions in _OPTIONS.items():
        if options[shown.replace("-", "_")] and action not in actions:
            raise BadUsage(f"--{shown} is not an option of projects {action}")


async def projects(workspace: Workspace, names: Sequence[str] = ()) -> ProjectReport:
    """Return the live projects that names select, and the number of objects in them; all without.

    Raises InvalidConfiguration, BadUsage, ServiceError.
    """
    from reconciler.commands.targets import opened
    from reconciler.kinds import all_kinds

    async with opened(workspace, RESET) as targets:
        children = Counter(
            child.parent_id
            for kind in all_kinds()
            if kind.parent is not None
            for child in targets.live.of(kind.name)
        )
        lines = []
        for target in targets.named(names):
            live, zone = target.live, target.live.body.get("timezone")
            zone = zone if isinstance(zone, str) else None
            lines.append(ProjectLine(target.address, live.id, live.name, zone, children[live.id]))
        missing = () if names else targets.missing
        return workspace.masked(ProjectReport(*targets.where, tuple(lines), missing))


async def show_project(
    workspace: Workspace, name: str, *, operation: str | None = None, reveal: bool = False
) -> ProjectDetails:
    """Return one project with all of its fields. `reveal` shows its API token.

    With `operation`, what the service answers to it instead: `activity`, or `demo_data`, whether it
    is generated.

    Raises InvalidConfiguration, BadUsage, ServiceError; NotOffered where the server refuses the
    operation to API keys.
    """
    async with _opened(workspace, name) as selected:
        if operation is None:
            body: JSON = (await selected.read()).body
        else:
            body, reveal = await selected.calls.send(operation), False
        if not isinstance(body, Mapping):
            label = str(operation).replace("_", " ")
            raise InvalidResponse(f"{label}: the response is {json_shown(body)}, not an object")
        return workspace.masked(selected.details(body, reveal=reveal))


async def reset_token(
    workspace: Workspace,
    name: str,
    *,
    approve: Callable[[ProjectDetails], Awaitable[bool]],
    reveal: bool = False,
) -> ProjectDetails:
    """Give a project a new token, once, and return it, or `***` without `reveal`.

    Raises:
        NotOffered: the server refuses it to API keys; nothing was sent.
        AmbiguousOutcome: no answer, and the project still has the old token.
        ReconcilerError: not approved, and nothing was sent.
        InvalidConfiguration, BadUsage, ServiceError.

    """
    async with _opened(workspace, name) as selected:
        selected.calls.check(RESET)
        before = await selected.read()
        if not await approve(workspace.masked(selected.details(before.body))):
            raise ReconcilerError("not approved; nothing was sent")
        after = await _reset(selected, before)
        return workspace.masked(selected.details({TOKEN: _token(after)}, reveal=reveal))


class _Selected(Struct, frozen=True):
    """A project, its operations and paths. `page` is that of its settings, None if unknown."""

    address: Address
    calls: ObjectCalls
    routes: Routes
    page: str | None

    async def read(self) -> LiveObject:
        """Return the project in full. Raises ServiceError."""
        from reconciler.service.live import read_object

        return await read_object(self.calls.transport, self.routes, self.calls.live.id)

    def details(self, fields: Mapping[str, JSON], *, reveal: bool = False) -> ProjectDetails:
        """Return fields of the project. Its token is not masked later if it is revealed."""
        shown = dict(fields)
        if reveal and isinstance(token := fields.get(TOKEN), str):
            shown[TOKEN] = Revealed(token)
        live = self.calls.live
        return ProjectDetails(self.address, live.id, live.name, shown, self.page)


@asynccontextmanager
async def _opened(workspace: Workspace, name: str) -> AsyncIterator[_Selected]:
    """Yield a project. Errors of operations that keys may not use have its page."""
    from reconciler.commands.targets import opened
    from reconciler.model.live import Routes
    from reconciler.service.operations import NotOffered

    async with opened(workspace, RESET) as targets:
        target = targets.one(name)
        calls, page = targets.calls(target), targets.page(target)
        try:
            yield _Selected(target.address, calls, Routes(calls.kind, calls.organization), page)
        except (NotOffered, Forbidden) as error:
            if page is None or getattr(error, "lacks_scope", False):
                raise
            raise error.reworded(hint=f"use the page of the project: {page}") from None


async def _reset(selected: _Selected, before: LiveObject) -> LiveObject:
    """Reset the token and return the project; without a clear answer, read it again."""
    from reconciler.service.live import live_object

    try:
        body = await selected.calls.send(RESET)
        label = f"reset of the token of {selected.address}"
        after = live_object(
            selected.routes, body, expected_id=before.id, complete=True, label=label
        )
        _token(after)
    except (AmbiguousOutcome, InvalidResponse) as error:
        command = selected.calls.command("projects", "show", "--reveal")
        hint = f"read the token before you try again: {command}"
        try:
            after = await selected.read()
        except ReconcilerError:
            raise error.reworded(hint=hint) from None
        if _token(after) == before.body.get(TOKEN):
            message = f"{error.message}; the project still has the old token"
            raise error.reworded(message, hint=hint) from None
    return after


def _token(live: LiveObject) -> str:
    """Return the token of a project. Raises InvalidResponse."""
    token = live.body.get(TOKEN)
    if not isinstance(token, str) or not token:
        raise InvalidResponse(f"{TOKEN} of {live.kind} {live.id} is not text")
    return token


def projects_document(report: ProjectReport, _: RenderOptions) -> Document:
    """Return a table of the projects, the resources without one, and the counts."""
    where = f"{report.environment} · {report.base_url} · organization {report.organization}"
    table = Table(_COLUMNS, tuple(map(_row, report.projects)), indent=2)
    missing = f"Do not exist yet: {listed(report.missing, _MOST_MISSING)}"
    unmanaged = sum(not line.managed for line in report.projects)
    note = f", {unmanaged} unmanaged" if unmanaged else ""
    return Document(
        (Cell(f"Projects of {report.environment}"),),
        (Cell(f"Environment {where}"),),
        (
            table if report.projects else Lines(("No projects.",)),
            Lines((missing,) if report.missing else ()),
        ),
        f"{several(len(report.projects), 'project')}{note}.",
    )


def project_document(details: ProjectDetails, options: RenderOptions) -> Document:
    """Return a project with its fields; those that are null only if verbose."""
    name = Cell(str(details.address), code=True), Cell(f"{named(details.name)} (id {details.id})")
    fields = tuple(
        (field, Cell(_value(value)))
        for field, value in details.fields.items()
        if options.verbose or value is not None
    )
    page = (f"Page: {details.page}",) if details.page is not None else ()
    return Document(name, name, (Facts(fields, attached=True),), after=page)


def _row(line: ProjectLine) -> Row:
    resource = Cell(str(line.address), code=True) if line.managed else Cell("unmanaged")
    cells = map(Cell, (line.id, line.name, str(line.exports), line.timezone or "-"))
    return Row((*cells, resource))


def _value(value: JSON) -> str:
    is_text = isinstance(value, str)
    return str(value) if is_text else json.dumps(value, ensure_ascii=False, default=dict)
