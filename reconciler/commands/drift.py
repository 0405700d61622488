"""`reconciler drift`: the command and its report."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.options import (
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.process import write_calls, write_note, write_result
from reconciler.commands.screen import (
    differences_as_text,
    print_warnings,
    render_options,
    run_shown,
    show_report,
    style_of,
)
from reconciler.errors import BadUsage
from reconciler.exit_codes import ExitCode
from reconciler.model.kind import Action
from reconciler.model.plan import Change, Origin
from reconciler.model.text import listed, named, printable, several
from reconciler.model.times import time_as_shown
from reconciler.render import writer_of
from reconciler.render.document import Cell, Column, Document, Group, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import applied_commit
from reconciler.render.plan_fields import FieldLine, plain_lines

if TYPE_CHECKING:
    from reconciler.commands.drifted import Drift, DriftedField, DriftedObject

_MOST_LISTED = 5
_COLUMNS = (
    Column("field", padded=False),
    Column("configured", padded=False),
    Column("live", " -> ", padded=False),
    Column("changed", "  (", ")", padded=False),
)


@command(
    "drift",
    examples=(
        ("drift", "Show what changed in live state, and who changed it"),
        ("drift 'orders-*' --no-attribute", "Look at some resources, without the activity log"),
        ("drift orders --write", "Keep the live values of one resource in the files"),
    ),
    page="docs/operations.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources)
@workspace_options
@option(
    "--attribute/--no-attribute",
    default=True,
    help="Say who changed each object; one call to the activity log for each.",
)
@option("--write", is_flag=True, help="Write the live values into the files. Comments stay.")
@option("--diff", "--dry-run", "diff", is_flag=True, help="With --write: print a patch instead.")
@format_option("drift")
@rate_option
def drift_command(
    names: tuple[str, ...],
    *,
    output_format: str,
    attribute: bool,
    write: bool,
    diff: bool,
    **options: Any,
) -> ExitCode:
    """Show what changed in live state since it was applied. Changes nothing in the service.

    Shows all resources, or those that NAME selects: address, id, key, name or glob. What changed in
    the files is not drift. Exits with 2 if there is drift; `apply` sets it back.

    With --write, a value goes into the layer that defines it if no other resource or environment
    has it from there, else into the resource or into the overrides of the environment. Exits with
    0 if nothing differs, 2 if all was written, 3 if a value could not be. Secrets cannot be read,
    so they are never written. Without an inventory, it needs a NAME.
    """
    from reconciler.commands.drifted import drift, pull, pull_summary

    if diff and not write:
        raise BadUsage("--diff requires --write")
    workspace = workspace_of(options)
    how, writer = render_options(workspace.folder), writer_of(output_format, "drift")
    if not write:
        work = partial(drift, names=names, attribute=attribute)
        report = show_report("drift", output_format, work, workspace, how).report
        return ExitCode.FINE if report.empty else ExitCode.CHANGES
    result = run_shown(partial(pull, names=names, write=not diff), workspace)
    pulled = result.report
    print_warnings(result.diagnostics)
    patch = differences_as_text(pulled.changes, style_of(sys.stdout))
    write_result(patch if diff else writer(pulled.drift, how))
    write_note(pull_summary(pulled, "Would write" if diff else "Wrote"))
    write_calls(result.calls)
    if pulled.left_out:
        return ExitCode.PARTLY_APPLIED
    return ExitCode.CHANGES if pulled.placed else ExitCode.FINE


def drift_document(drift: Drift, _: RenderOptions) -> Document:
    """Return what drifted, each field with its configured and its live value."""
    rows = tuple(row for item in drift.objects for row in _rows(item))
    after = [*_rest(drift), *(f"note: {text}" for text in drift.remarks)]
    if drift.objects:
        after.append(
            "hint: reconciler drift --write keeps live values in the files; apply sets them back"
        )
    applied = "nothing recorded as applied"
    if drift.source.applied:
        applied = f"applied {applied_commit(drift.source)}"
    return Document(
        (Cell(f"Drift of {drift.source.environment}"),),
        (Cell(f"Environment {drift.source.environment} · {applied}"),),
        (Table(_COLUMNS, rows, headed=False, indent=6, noun="field"),),
        _counts(drift),
        tuple(after),
    )


def _rows(item: DriftedObject) -> Iterator[Row]:
    parent = f" in {item.parent_name}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    name = Cell(str(item.address), Colour.BOLD, code=True), Cell(named(item.name))
    group = Group(name, f"{parent}{place}", "~")
    for drifted in item.fields:
        about = Cell(_about(item, drifted))
        for line in _lines(item, drifted):
            sides = ("…", "…") if line.hunk else (line.before or "-", line.after or "-")
            cells = (Cell(line.name, code=True), *(Cell(side, code=True) for side in sides), about)
            yield Row(cells, group=group, lines=line.hunk)


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if field.change.origin is Origin.UNKNOWN:
        parts.append("differs from the files")
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append("paused by the service after failures; fix the cause before it is unpaused")
    if (known := field.attribution) is not None:
        by = f"by {known.by}" if known.by is not None else "by the service or an API key"
        parts.append(printable(f"{by}, {time_as_shown(known.at)}"))
    return "; ".join(parts)


def _counts(drift: Drift) -> str:
    if drift.empty:
        count = several(drift.compared, "resource")
        return f"No drift. Live state is as in the files or as applied ({count})."
    if not drift.objects:
        return ""
    fields = several(sum(len(item.fields) for item in drift.objects), "field")
    of = several(drift.compared, "resource")
    return f"Drift in {len(drift.objects)} of {of} ({fields})."


def _rest(drift: Drift) -> Iterator[str]:
    deleted = [str(address) for address in drift.deleted]
    renamed = [f"{address} to {named(name)}" for address, name in drift.renamed.items()]
    happened = (deleted, "deleted since the apply"), (renamed, "probably renamed")
    for texts, what in happened:
        if texts:
            names = listed(texts, _MOST_LISTED)
            yield f"{several(len(texts), 'live object')} {what}: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"
