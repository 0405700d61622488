"""The result of an import; for a dry run, a unified difference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reconciler.model.imported import Adopted, Imported, Left
from reconciler.model.text import listed, printable, several
from reconciler.render.difference import differences_as_text
from reconciler.render.document import Cell, Column, Document, Lines, Row, Table
from reconciler.render.options import RenderOptions

_MOST = 10
_COLUMNS = tuple(
    Column(title, before, padded=False)
    for title, before in (("resource", ""), ("name", " "), ("file", " in "))
)


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
    rows = tuple(map(_row, imported.adopted))
    blocks = (
        Table(_COLUMNS, rows, headed=False, noun="resource"),
        Lines((f"Imported: {_counts(imported)}",)),
        Lines(tuple(_secrets(imported)) if imported.secrets else ()),
    )
    return Document(heading, (), blocks)


def _row(resource: Adopted) -> Row:
    name = Cell(f'"{resource.name}"')
    return Row((Cell(str(resource.address), code=True), name, Cell(resource.file)), "+")


def remarks_on_import(imported: Imported) -> str:
    """Return what was not imported, and why."""
    lines: list[str] = []
    if not imported.written:
        lines.append(f"Would import: {_counts(imported)}. No file was written.")
        lines += _secrets(imported) if imported.secrets else []
    lines += [f"Not imported: {_left(left)}" for left in imported.refused]
    lines += [f"Field not imported: {_left(left)}" for left in imported.left_out]
    if imported.ignored:
        names = [f"'{printable(live.name)}'" for live in imported.ignored]
        lines.append(f"Ignored by policy.ignore: {listed(names, _MOST)}")
    lines += [
        printable(f"{file} can't be extended and is unchanged. New resources are in {beside}")
        for file, beside in imported.beside.items()
    ]
    lines += [printable(f"Removed from {lost.file}: {lost.what}") for lost in imported.gone]
    if imported.namesakes:
        pairs = [f"{pair.address} ({pair.elsewhere})" for pair in imported.namesakes]
        lines.append(f"Same name as a resource of another environment: {listed(pairs, _MOST)}")
        lines.append(
            "  hint: to merge two resources, list both environments in one of them, put what "
            "differs into `overrides:`, and remove the other"
        )
    lines.append(f"{several(imported.calls, 'API call')}")
    return _joined(lines)


def _secrets(imported: Imported) -> Iterator[str]:
    width = max(len(secret.variable) for secret in imported.secrets)
    count = several(len(imported.secrets), "secret")
    yield f"Set {count} as environment variables (the API does not return secrets):"
    yield from (f"  {secret.variable:{width}}  {secret.address}" for secret in imported.secrets)
    yield "They are needed to create or update a destination, not to plan."


def _left(left: Left) -> str:
    field = f" {left.what}" if left.path else ""
    return printable(f"{left.live.kind} '{left.live.name}' (id {left.live.id}){field}: {left.why}")


def _counts(imported: Imported) -> str:
    kinds = Counter(resource.address.kind for resource in imported.adopted)
    parts = [", ".join(several(count, kind) for kind, count in kinds.items()) or "nothing"]
    extended = len(imported.before)
    if imported.files:
        files = several(len(imported.files), "file")
        parts.append(f"into {files}" + (f" ({extended} existing)" if extended else ""))
    managed = f"; {imported.claimed} already in the configuration" if imported.claimed else ""
    return " ".join(parts) + managed


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
