"""The comparison of two environments as text, Markdown and JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from reconciler.diagnostics import Mark
from reconciler.model.compared import (
    EnvironmentComparison,
    FieldDifference,
    FieldSide,
    Intent,
    OnlyIn,
    ResourceDifference,
)
from reconciler.model.values import JSON, MISSING, path_text
from reconciler.model.wording import printable, quoted, several, shortened
from reconciler.render.diagnostics import place_as_text
from reconciler.render.markup import code, inline
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.words import first_of
from reconciler.render.style import Colour, Style
from reconciler.render.yaml_line import yaml_line

_LONGEST = 80
_MOST_NAMES = 5
_MOST_ROWS = 400
"""Rows of a Markdown table: a comment of a pull request is limited."""
_NOT_SET = "not set"


class _Group(Struct, frozen=True):
    """An intended difference that several resources have, as the files write it."""

    path: str
    why: str
    keys: tuple[str, ...]


def compared_as_text(comparison: EnvironmentComparison, options: RenderOptions = DEFAULTS) -> str:
    """Return the differences, then the intended ones (grouped unless verbose), and the counts."""
    style = options.style
    blocks = [
        [_head(comparison)],
        *([*_resource(comparison, item, item.unintended, style)] for item in comparison.differing),
        *([*_only(name, items, style)] for name, items in _sides(comparison)),
        [*_intended(comparison, options)],
        [_summary(comparison)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def compared_as_markdown(comparison: EnvironmentComparison, _: RenderOptions = DEFAULTS) -> str:
    """Return a table of the differences, and a folded one of the intended differences."""
    first, second = inline(comparison.first), inline(comparison.second)
    lines = [f"### {first} and {second}: {inline(_counts(comparison))}", ""]
    for name, items in _sides(comparison):
        if items:
            shown = first_of((code(str(item.address)) for item in items), _MOST_ROWS)
            lines += [f"Only in {inline(name)}: {shown}", ""]
    rows = [
        f"| {code(str(item.address))} | {code(path_text(field.path))} | {_cell(field.first)} | "
        f"{_cell(field.second)} |"
        for item in comparison.differing
        for field in item.unintended
    ]
    if rows:
        lines += [f"| resource | field | {first} | {second} |", "|---|---|---|---|"]
        lines += rows[:_MOST_ROWS]
        if len(rows) > _MOST_ROWS:
            lines.append(f"\n… and {several(len(rows) - _MOST_ROWS, 'more row')}")
        lines.append("")
    groups = _groups(comparison)
    if groups:
        lines += ["<details><summary>Intended differences</summary>", ""]
        lines += [
            f"- {code(group.path)}: {inline(group.why)}: "
            f"{inline(first_of(group.keys, _MOST_NAMES))}"
            for group in groups[:_MOST_ROWS]
        ]
        lines += ["", "</details>"]
    return "\n".join(lines).rstrip("\n") + "\n"


def _head(comparison: EnvironmentComparison) -> str:
    where = "live state" if comparison.live else "configuration"
    return printable(f"Environments {comparison.first} and {comparison.second} · {where}")


def _resource(
    comparison: EnvironmentComparison,
    item: ResourceDifference,
    fields: Sequence[FieldDifference],
    style: Style,
) -> Iterator[str]:
    yield f"  {style.paint(Colour.YELLOW, '~')} {printable(str(item.address))} {quoted(item.name)}"
    width = max(len(path_text(field.path)) for field in fields)
    for field in fields:
        first, second = _value(field.first.value), _value(field.second.value)
        line = f"      {path_text(field.path):{width}}  "
        line += f"{first} in {comparison.first}, {second} in {comparison.second}"
        yield printable(line) + style.paint(Colour.DIM, _why(field))


def _why(field: FieldDifference) -> str:
    """Return why a difference is intended, or a place that sets the field."""
    if field.intent is not Intent.NONE:
        return printable(f"  ({_reason(field)})")
    return _at((field.second if field.first.value is MISSING else field.first).at)


def _at(mark: Mark | None) -> str:
    return f"  {place_as_text(mark)}" if mark is not None else ""


def _reason(field: FieldDifference) -> str:
    written = {side.written for side in (field.first, field.second)}
    if field.intent is Intent.REFERENCE and written:
        return ", ".join(sorted(shortened(text, _LONGEST) for text in written if text))
    return field.intent.meaning


def _only(environment: str, items: Sequence[OnlyIn], style: Style) -> Iterator[str]:
    if items:
        yield printable(f"Only in {environment}:")
    for item in items:
        name = f"{printable(str(item.address))} {quoted(item.name)}"
        yield f"  {style.paint(Colour.YELLOW, '+')} {name}{style.paint(Colour.DIM, _at(item.at))}"


def _intended(comparison: EnvironmentComparison, options: RenderOptions) -> Iterator[str]:
    if not comparison.intended:
        return
    if options.verbose:
        yield "Intended differences:"
        for item in comparison.intended:
            yield from _resource(comparison, item, item.intended, options.style)
        return
    yield "Intended differences (values: --verbose):"
    groups = _groups(comparison)
    width = max(len(group.path) for group in groups)
    for group in groups:
        names = first_of(group.keys, _MOST_NAMES)
        yield printable(f"      {group.path:{width}}  {group.why}: {names}")


def _groups(comparison: EnvironmentComparison) -> list[_Group]:
    """Return the intended differences by field and reason, with the resources that have them."""
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in comparison.intended:
        for field in item.intended:
            keys[path_text(field.path), _reason(field)].append(item.address.key)
    return [_Group(path, why, tuple(names)) for (path, why), names in keys.items()]


def _value(value: JSON) -> str:
    return _NOT_SET if value is MISSING else shortened(yaml_line(value), _LONGEST)


def _cell(side: FieldSide) -> str:
    return _NOT_SET if side.value is MISSING else code(_value(side.value))


def _counts(comparison: EnvironmentComparison) -> str:
    """Return the counts of what differs, or `no differences`."""
    fields = sum(len(item.unintended) for item in comparison.differing)
    where = several(len(comparison.differing), "resource")
    counts = [f"{several(fields, 'difference')} in {where}"] if fields else []
    for name, items in _sides(comparison):
        counts += [f"{several(len(items), 'resource')} only in {printable(name)}"] if items else []
    return ", ".join(counts) or "no differences"


def _sides(comparison: EnvironmentComparison) -> Sequence[tuple[str, Sequence[OnlyIn]]]:
    """Return both environments with what only they have."""
    return (
        (comparison.first, comparison.only_first),
        (comparison.second, comparison.only_second),
    )


def _summary(comparison: EnvironmentComparison) -> str:
    counts = _counts(comparison)
    intended = sum(len(item.intended) for item in comparison.intended)
    alike = f"{several(intended, 'intended difference')}, {comparison.equal:,} equal"
    return f"{counts[0].upper()}{counts[1:]} ({alike})."
