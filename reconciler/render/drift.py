"""Drift, and what `pull` writes, as text, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from reconciler.model.action import Action
from reconciler.model.change import Change
from reconciler.model.drift import (
    Attribution,
    Drift,
    DriftedField,
    DriftedObject,
    Placed,
    Pulled,
)
from reconciler.model.values import path_text
from reconciler.model.wording import listed, printable, quoted, several
from reconciler.render.difference import differences_as_text
from reconciler.render.markup import code, inline, within
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.fields import FieldLine, plain_lines
from reconciler.render.plan.header import base_name
from reconciler.render.style import Colour, Style

_MOST_LISTED = 5
_MARGIN = 300
"""Characters for the head of the table and the count of what is missing."""
_UNATTRIBUTED = "by the service or an API key"
_BY_SERVICE = "probably paused by the service after failures; fix the cause before it is unpaused"


def drift_as_text(drift: Drift, options: RenderOptions = DEFAULTS) -> str:
    """Return what drifted, each field with its configured and its live value."""
    source, style = drift.source, options.style
    lines = [f"Environment {printable(source.environment)} · base {_base(drift)}", ""]
    for item in drift.objects:
        lines += [*_object(item, style), ""]
    lines += [*_counts(drift), *(f"note: {printable(text)}" for text in drift.remarks)]
    if drift.objects:
        lines.append(
            "hint: reconciler pull writes live values into the files; apply sets them back"
        )
    return "\n".join(lines) + "\n"


def drift_as_markdown(drift: Drift, options: RenderOptions = DEFAULTS) -> str:
    """Return a table with a row for each field that drifted."""
    lines = [f"### {inline(drift.source.environment)}: {inline(_headline(drift))}", ""]
    rest = [inline(text) for text in (*_rest(drift), *drift.remarks)]
    used = sum(len(line) + 1 for line in (*lines, *rest))
    rows, missing = within(_rows(drift), options.limit - used - _MARGIN)
    if rows:
        lines += ["| resource | field | configured | live | changed |", "|---|---|---|---|---|"]
        lines += [*rows, ""]
    lines += [f"… and {several(missing, 'more field')} not in this table", ""] if missing else []
    lines += rest
    return "\n".join(lines).rstrip() + "\n"


def _rows(drift: Drift) -> Iterator[str]:
    for item in drift.objects:
        for field in item.fields:
            for line in _lines(item, field):
                yield (
                    f"| {code(str(item.address))} {inline(item.name)} | {code(line.name)} | "
                    f"{code(_side(line.before, line))} | {code(_side(line.after, line))} | "
                    f"{inline(_about(item, field))} |"
                )


def pulled_as_text(pulled: Pulled, style: Style, *, diff: bool) -> str:
    """Return the unified difference of the files, or what is written where."""
    if diff:
        return differences_as_text(pulled.changes, style)
    return "".join(f"{_placed(item)}\n" for item in pulled.placed)


def pull_summary(pulled: Pulled) -> str:
    """Return what was left out, and how many values were written."""
    lines = [
        f"left out: {item.address} {printable(path_text(item.path))}: {printable(item.reason)}"
        for item in pulled.left_out
    ]
    lines += [
        f"left out: {address}: its live object was deleted; remove it from the files, or apply "
        "creates it again"
        for address in pulled.drift.deleted
    ]
    lines += [
        f"left out: {address}: its live object was probably renamed to {quoted(name)}; set "
        "`name` or `lifecycle.renamed_from`"
        for address, name in pulled.drift.renamed.items()
    ]
    verb = "Wrote" if pulled.written else "Would write"
    where = several(len(pulled.texts), "file")
    if pulled.placed:
        lines.append(f"{verb} {several(len(pulled.placed), 'value')} to {where}")
    elif not lines:
        lines.append("No drift. Live state has not changed since the base.")
    return "".join(f"{line}\n" for line in lines)


def _placed(item: Placed) -> str:
    stays = f" ({printable(item.replaces)} stays for other environments)" if item.replaces else ""
    place = f"{item.at}: {item.address} {printable(path_text(item.path))}"
    return f"{place} -> {printable(item.layer)}{stays}"


def _base(drift: Drift) -> str:
    source = drift.source
    distance = several(source.base_commits, "commit")
    return base_name(source) + (f" ({distance} ago)" if source.base_commits else "")


def _object(item: DriftedObject, style: Style) -> Iterator[str]:
    parent = f" in {printable(item.parent_name)}" if item.parent_name else ""
    place = f"  {item.at.file}:{item.at.line}" if item.at is not None else ""
    sign = style.paint(Colour.YELLOW, "~")
    address = style.paint(Colour.BOLD, str(item.address))
    yield f'  {sign} {address} "{printable(item.name)}"{parent}{place}'
    for field in item.fields:
        about = _about(item, field)
        for line in _lines(item, field):
            shown = "" if line.hunk else f"  {line.before or '-'} -> {line.after or '-'}"
            yield f"      {line.name}{shown}" + (f"  ({about})" if about else "")
            yield from (f"        {text}" for text in line.hunk)


def _lines(item: DriftedObject, field: DriftedField) -> list[FieldLine]:
    """Return the lines of a field, with the configured value before the live one."""
    change = replace(field.change, before=field.change.after, after=field.change.before)
    return list(plain_lines(Change(item.address, Action.UPDATE, item.name, fields=(change,))))


def _side(text: str, line: FieldLine) -> str:
    return "…" if line.hunk else text


def _about(item: DriftedObject, field: DriftedField) -> str:
    """Return what is known about a field: who changed it and when, and conflicts."""
    parts = ["conflict: the configuration changed too"] if field.conflict else []
    if item.paused_by_service and field.change.path == ("paused",):
        parts.append(_BY_SERVICE)
    if field.attribution is not None:
        parts.append(_attribution(field.attribution))
    return "; ".join(parts)


def _attribution(attribution: Attribution) -> str:
    by = f"by {printable(attribution.by)}" if attribution.by is not None else _UNATTRIBUTED
    return f"{by}, {printable(attribution.at)}"


def _headline(drift: Drift) -> str:
    if not drift.objects:
        return "no drift"
    return f"drift in {len(drift.objects)} of {several(drift.compared, 'resource')}"


def _counts(drift: Drift) -> Iterator[str]:
    if drift.empty:
        yield (
            f"No drift. Live state has not changed since the base "
            f"({several(drift.compared, 'resource')})."
        )
    elif drift.objects:
        fields = sum(len(item.fields) for item in drift.objects)
        yield f"{_headline(drift).capitalize()} ({several(fields, 'field')})."
    yield from _rest(drift)


def _rest(drift: Drift) -> Iterator[str]:
    if drift.deleted:
        names = listed([str(address) for address in drift.deleted], _MOST_LISTED)
        yield f"{several(len(drift.deleted), 'live object')} deleted since the base: {names}"
    if drift.renamed:
        names = listed(
            [f"{address} to {quoted(name)}" for address, name in drift.renamed.items()],
            _MOST_LISTED,
        )
        yield f"{several(len(drift.renamed), 'live object')} probably renamed: {names}"
    if drift.unmanaged:
        yield f"{several(drift.unmanaged, 'unmanaged object')} (list with plan --show-unmanaged)"
