"""`reconciler import`, and its report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from reconciler.commands import completion
from reconciler.commands.command import command, option
from reconciler.commands.import_choice import (
    Choice,
)
from reconciler.commands.options import (
    KINDS,
    PARENTS,
    format_option,
    rate_option,
    workspace_of,
    workspace_options,
)
from reconciler.commands.process import write_message, write_result
from reconciler.commands.screen import (
    differences_as_text,
    print_warnings,
    render_options,
    run_shown,
)
from reconciler.exit_codes import ExitCode
from reconciler.kinds import kinds_by_name
from reconciler.model.text import listed, named, printable, several
from reconciler.model.values import Address
from reconciler.render import writer_of
from reconciler.render.document import Cell, Document, Lines, Row, Table, unpadded
from reconciler.render.options import RenderOptions

if TYPE_CHECKING:
    from reconciler.commands.import_drafts import Left
    from reconciler.commands.import_live import Imported

_KINDS = ", ".join(kinds_by_name())
_MOST = 10
_MOST_USERS = 3
_COLUMNS = unpadded({"resource": "", "name": " ", "file": " in "})


@command(
    "import",
    examples=(
        ("import", "Import everything that is not in the files"),
        ("import --project 'Web shop' --dry-run", "Show what would be written for one project"),
        (
            "import 0192a3c4-0000-0000-0000-5b6d7e8f9a0b --into exports/web.yaml",
            "Import one object into a file",
        ),
    ),
    page="docs/adopt.md",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources)
@workspace_options
@rate_option
@option("--project", **PARENTS, help="Only these projects and their contents.")
@option("--kind", **KINDS, help=f"Only objects of these kinds: {_KINDS}.")
@option("--into", default="", metavar="PATH", help="File or folder in the workspace to write to.")
@option(
    "--share-secrets",
    is_flag=True,
    help="Use one variable for exports with the same host, bucket, account or warehouse project.",
)
@option("--dry-run", is_flag=True, help="Write nothing; show a diff.")
@format_option("imported")
def import_command(names: tuple[str, ...], *, output_format: str, **options: Any) -> ExitCode:
    """Write live objects into files of the workspace. Does not change live state.

    Imports everything that is not in the files yet, or what NAME selects: name, id, key, address or
    glob. An id also selects what no list shows. A plan of the written files is empty: this is
    checked before any file changes. Existing files are extended.

    The API hides secrets: each becomes a reference to an environment variable, and these are
    listed. Exits with 1 if an object can't be imported; the others are.
    """
    from reconciler.commands.import_live import import_live

    choice = Choice(names, parents=options["project"], kinds=options["kind"])
    how = {name: options[name] for name in ("into", "dry_run", "share_secrets")}
    imported = run_shown(partial(import_live, choice=choice, **how), workspace_of(options))
    print_warnings(imported.warnings)
    write_result(writer_of(output_format, "imported")(imported, render_options()))
    write_message(remarks_on_import(imported))
    return ExitCode.ERROR if imported.refused else ExitCode.FINE


def imported_document(imported: Imported, options: RenderOptions) -> Document:
    """Return the resources with their files, the counts, and the secrets to set.

    If nothing was written, return a unified difference that `patch` accepts.
    """
    heading = (Cell("Import"),)
    if not imported.written:
        text = differences_as_text(imported.changes, options.style).removesuffix("\n")
        return Document(
            heading, (), (Lines(tuple(text.split("\n")), language="diff"),) if text else ()
        )
    rows = [
        Row((Cell(str(it.address), code=True), Cell(f'"{it.name}"'), Cell(it.file)), "+")
        for it in imported.adopted
    ]
    blocks = (
        Table(_COLUMNS, tuple(rows), headed=False, noun="resource"),
        Lines((f"Imported: {_counts(imported)}",)),
        Lines(tuple(_secrets(imported)) if imported.secrets else ()),
    )
    return Document(heading, (), blocks)


def remarks_on_import(imported: Imported) -> str:
    """Return what was not imported, and why."""
    lines: list[str] = []
    if not imported.written:
        lines.append(f"Would import: {_counts(imported)}. No file was written.")
        lines += _secrets(imported) if imported.secrets else []
    lines += [f"Not imported: {_left(left)}" for left in imported.refused]
    lines += [f"Field not imported: {_left(left)}" for left in imported.left_out]
    if imported.ignored:
        names = [named(live.name) for live in imported.ignored]
        lines.append(f"Ignored by policy.ignore: {listed(names, _MOST)}")
    lines.append(f"{several(imported.calls, 'API call')}")
    return "".join(f"{line}\n" for line in lines)


def _secrets(imported: Imported) -> Iterator[str]:
    users: dict[str, list[Address]] = {}
    for secret in imported.secrets:
        users.setdefault(secret.variable, []).append(secret.address)
    width = max(map(len, users))
    count = several(len(users), "secret")
    yield f"Set {count} as environment variables (the API does not return secrets):"
    for variable, addresses in users.items():
        yield f"  {variable:{width}}  {listed(list(map(str, addresses)), _MOST_USERS)}"
    if len(users) < len(imported.secrets):
        yield "Exports with the same host, bucket, account or warehouse project share them."
    yield "They are needed to create or update a destination, not to plan."


def _left(left: Left) -> str:
    field = f" {left.field}" if left.field else ""
    return printable(f"{left.kind} {named(left.name)} (id {left.id}){field}: {left.why}")


def _counts(imported: Imported) -> str:
    kinds = Counter(resource.address.kind for resource in imported.adopted)
    parts = [", ".join(several(count, kind) for kind, count in kinds.items()) or "nothing"]
    extended = sum(not file.new for file in imported.files)
    if imported.files:
        files = several(len(imported.files), "file")
        parts.append(f"into {files}" + (f" ({extended} existing)" if extended else ""))
    managed = f"; {imported.claimed} already in the configuration" if imported.claimed else ""
    return " ".join(parts) + managed
