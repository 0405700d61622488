"""What import wrote and what it left out: lines, a difference for a dry run, JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import orjson

from reconciler.model.imported import Imported, Left
from reconciler.model.live import LiveObject
from reconciler.model.values import JSON
from reconciler.model.wording import printable, several
from reconciler.render.difference import difference_as_text
from reconciler.render.style import PLAIN, Style

_FORMAT_VERSION = 1
_MOST_NAMES = 10


def imported_as_text(imported: Imported, style: Style = PLAIN) -> str:
    """Return each resource with its file, the count, and the secrets to set.

    If nothing was written, return what would be, as a unified difference that `patch` takes.
    """
    if not imported.written:
        return _difference(imported, style)
    lines = [
        f'+ {resource.address} "{printable(resource.name)}" in {resource.file}'
        for resource in imported.adopted
    ]
    if lines:
        lines.append("")
    lines.append(f"Imported: {_counts(imported)}")
    if imported.secrets:
        lines += ["", *_secrets(imported)]
    return _joined(imported, lines)


def _difference(imported: Imported, style: Style) -> str:
    files = [
        difference_as_text(
            name, before.lines, after.lines, shown=(before.shown, after.shown), style=style
        )
        for name, (before, after) in imported.sides.items()
    ]
    return imported.mask("".join(files))


def import_as_json(imported: Imported) -> str:
    """Return one object for programs; its keys are stable."""
    value: dict[str, JSON] = {
        "format_version": _FORMAT_VERSION,
        "written": imported.written,
        "files": [{"path": name, "new": name not in imported.before} for name in imported.files],
        "resources": [
            {
                "address": str(resource.address),
                "id": resource.id,
                "name": resource.name,
                "file": resource.file,
            }
            for resource in imported.adopted
        ],
        "secrets": [
            {"variable": name, "address": str(address)} for name, address in imported.secrets
        ],
        "left_out": [
            {**_object(imported, left.live), "field": left.what, "why": imported.mask(left.why)}
            for left in imported.left_out
        ],
        "not_imported": [
            {**_object(imported, left.live), "why": imported.mask(left.why)}
            for left in imported.refused
        ],
        "ignored": [_object(imported, live) for live in imported.ignored],
        "unmatched": list(imported.unmatched),
        "dropped": [{"file": file, "what": what} for file, what in imported.gone],
        "namesakes": [
            {"address": str(pair.address), "elsewhere": str(pair.elsewhere)}
            for pair in imported.namesakes
        ],
        "in_the_files_already": imported.claimed,
        "calls": imported.calls,
    }
    return imported.mask(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()) + "\n"


def remarks_on_import(imported: Imported) -> str:
    """Return what is not in the files, and why: nothing is left out silently."""
    lines: list[str] = []
    if not imported.written:
        lines.append(f"Would import: {_counts(imported)}. Nothing was written")
        lines += _secrets(imported) if imported.secrets else []
    lines += [f"Not imported: {_left(left)}" for left in imported.refused]
    lines += [f"Left to the service: {_left(left)}" for left in imported.left_out]
    if imported.ignored:
        names = [f"'{printable(live.name)}'" for live in imported.ignored]
        lines.append(f"Ignored, as the policy says: {_first_of(names)}")
    lines += [f"Nothing live fits {part}" for part in imported.unmatched]
    lines += [
        f"{file} can't be extended line by line and stays as it is: see {beside} beside it"
        for file, beside in imported.beside.items()
    ]
    lines += [f"No more in {file}: {printable(what)}" for file, what in imported.gone]
    if imported.namesakes:
        pairs = [f"{pair.address} ({pair.elsewhere})" for pair in imported.namesakes]
        lines.append(f"Other environments have resources of the same names: {_first_of(pairs)}")
        lines.append(
            "  they are kept apart; where two should be one, let it name both environments, with "
            "what differs in `overrides:`, and remove the other"
        )
    lines.append(f"{imported.calls} calls to read")
    return _joined(imported, lines)


def _secrets(imported: Imported) -> Iterator[str]:
    width = max(len(name) for name, _ in imported.secrets)
    yield f"Secrets that nobody can read back, to be set as variables: {len(imported.secrets)}"
    yield from (f"  {name:{width}}  {address}" for name, address in imported.secrets)
    yield "A plan needs none of them; creating and changing a destination does."


def _object(imported: Imported, live: LiveObject) -> dict[str, JSON]:
    return {"kind": live.kind, "id": live.id, "name": imported.mask(live.name)}


def _left(left: Left) -> str:
    live = left.live
    field = f" {left.what}" if left.path else ""
    name = printable(live.name)
    return f"{live.kind} '{name}' (id {live.id}){field}: {printable(left.why)}"


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def _counts(imported: Imported) -> str:
    kinds = Counter(resource.address.kind for resource in imported.adopted)
    parts = [", ".join(several(count, kind) for kind, count in kinds.items()) or "nothing"]
    extended = len(imported.before)
    if imported.files:
        files = several(len(imported.files), "file")
        parts.append(f"into {files}" + (f", {extended} of them there before" if extended else ""))
    if imported.claimed:
        parts.append(f"({imported.claimed} in the files already)")
    return " ".join(parts)


def _joined(imported: Imported, lines: list[str]) -> str:
    return imported.mask("".join(f"{line}\n" for line in lines))
