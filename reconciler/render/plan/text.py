"""A plan for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.model.action import Action
from reconciler.model.change import Severity
from reconciler.model.plan import Plan
from reconciler.model.text import printable, several, shortened
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.document import Document, document_of, unmanaged_count
from reconciler.render.plan.entry_text import entry_lines, wrapped
from reconciler.render.plan.new_places import HEADING, within_budget
from reconciler.render.plan.projects import ProjectRow
from reconciler.render.plan.violations import unnamed_in
from reconciler.render.plan.words import SEVERITIES, resources
from reconciler.render.style import Colour, Style, padded, width_of

_MOST_PROJECTS = 12
_MOST_NEW = 20
_LONGEST_PROJECT = 30
_DRIFT = (
    "Drift (live state differs from the base). This plan sets it back; to keep a live value, "
    "write it into the file."
)


def plan_as_text(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return the plan, ending with the summary."""
    document = document_of(plan, verbose=options.verbose, brief=options.summary)
    style = options.style
    blocks: list[Iterator[str] | Sequence[str]] = [[*_header(document, style)]]
    blocks.append(_new(document, style))
    if not options.summary:
        blocks += [entry_lines(entry, options) for entry in document.entries]
        blocks += _drift(document, options)
        blocks.append(_notes(document, style))
        blocks.append(_unmanaged(document, options))
    else:
        blocks.append(_dangers(document, options))
    blocks.append(_projects(document, options))
    blocks.append(_violations(document, style))
    blocks.append(_end(document, options))
    texts = [*filter(None, map("\n".join, blocks))]
    # Nothing to read between the header and the result.
    return ("\n" if len(texts) == 2 and plan.empty else "\n\n").join(texts) + "\n"


def unverified_as_text(left: Plan | None) -> str:
    """Return the error for a second plan that is not empty; `left` is None without one."""
    if left is None or left.empty:
        return ""
    return f"error: the plan after apply is not empty:\n{plan_as_text(left)}"


def _header(document: Document, style: Style) -> Iterator[str]:
    yield from wrapped(document.environment, "Environment ", style, Colour.DIM, indent=12)
    plan = document.plan
    base = document.base if plan.empty else f"{document.base} · {document.id}"
    yield from wrapped(base, "Base        ", style, Colour.DIM, indent=12)
    head = document.versions.removeprefix(document.base).strip()
    for remark in ((head,) if plan.source.uncommitted else ()) + document.remarks:
        yield from wrapped(remark, " " * 12, style, Colour.DIM, indent=12)
    if document.undoes and not plan.empty:
        yield from wrapped(document.undoes, "Undoes      ", style, Colour.DIM, indent=12)


def _new(document: Document, style: Style) -> Iterator[str]:
    """Yield what is new: texts, and in a second column who reaches it, if both fit."""
    lines, rest = within_budget(document.new, _MOST_NEW)
    if lines:
        yield style.paint(Colour.BOLD, HEADING)
    texts = [width_of(line.text) for line in lines]
    size = max((width for width in texts if width <= style.width // 2), default=0)
    for line in lines:
        label = SEVERITIES[Severity.DANGER if line.is_danger else Severity.WARNING]
        text = f"{padded(line.text, size)}  {line.users}"
        yield from wrapped(text, f"{label.text:>4} ", style, label.colour, indent=7)
    yield from wrapped(rest, "     ", style, Colour.DIM)


def _drift(document: Document, options: RenderOptions) -> Iterator[Iterator[str]]:
    if document.drift:
        yield wrapped(_DRIFT, "", options.style, Colour.BOLD)
        yield from (entry_lines(entry, options) for entry in document.drift)


def _notes(document: Document, style: Style) -> Iterator[str]:
    for note in document.notes:
        yield from wrapped(note, "note: ", style, Colour.DIM)


def _unmanaged(document: Document, options: RenderOptions) -> Iterator[str]:
    if document.unmanaged and options.show_unmanaged:
        yield f"{unmanaged_count(document)}:"
        yield from (f"    {line}" for line in document.unmanaged_objects)


def _dangers(document: Document, options: RenderOptions) -> Iterator[str]:
    """Yield the entries with dangers without their fields, and the number of notes."""
    for entry in (*document.entries, *document.drift):
        yield from entry_lines(entry, options, dangers_only=True)
    if document.notes:
        yield f"{several(len(document.notes), 'note')}: omit --summary to read"


def _projects(document: Document, options: RenderOptions) -> Iterator[str]:
    rows = document.projects
    if not rows:
        return
    shown = rows if options.verbose else rows[:_MOST_PROJECTS]
    actions = [action for action in Action if any(row.counts[action] for row in rows)]
    size = max(len("By project"), *(width_of(_name(row)) for row in shown))
    head = "".join(f"  {action.value:>7}" for action in actions)
    yield options.style.paint(Colour.DIM, f"{'By project':<{size}}{head}")
    for row in shown:
        counts = "".join(
            f"  {row.counts[action] or '-':>{max(7, len(action.value))}}" for action in actions
        )
        yield f"{padded(_name(row), size)}{counts}"
    if len(rows) > len(shown):
        yield f"{len(rows) - len(shown):,} more projects (list: --verbose)"


def _name(row: ProjectRow) -> str:
    return shortened(row.name, _LONGEST_PROJECT)


def _violations(document: Document, style: Style) -> Iterator[str]:
    for text in document.loosened:
        yield from wrapped(text, "loosened: ", style, Colour.YELLOW)
    for violation in document.violations:
        place = f"{violation.at}: " if violation.at is not None else ""
        level = "danger, takes effect after the merge" if violation.after_merge else "error"
        headline = f"{place}{level}: {violation.message} [{violation.rule}]"
        yield from wrapped(headline, "", style, Colour.BOLD_RED, indent=4)
        if violation.allow is not None:
            yield from wrapped(violation.allow, "  hint: ", style)
        if names := unnamed_in(violation):
            yield from wrapped(names, "  resources: ", style, indent=4)


def _end(document: Document, options: RenderOptions) -> Iterator[str]:
    style, hint = options.style, ""
    if document.unmanaged and options.show_unmanaged:
        hint = f"; {document.unmanaged:,} unmanaged"
    elif document.unmanaged:
        hint = f"; {document.unmanaged:,} unmanaged, list with --show-unmanaged"
    if document.plan.empty:
        count = resources(document.plan)
        text = f"No changes. Live state matches the configuration ({count}{hint})."
        yield from wrapped(text, "", style, Colour.BOLD)
        return
    summary = f"{document.summary.removesuffix(').')}{hint})."
    yield from wrapped(summary, "", style, Colour.BOLD, indent=6)
    if document.dangers:
        dangers = f"{several(document.dangers, 'danger')}: {document.plan.named_dangers}"
        yield from wrapped(dangers, "      ", style, Colour.BOLD_RED, indent=8)
    if options.cost:
        yield from wrapped(f"{printable(options.cost)}.", "      ", style, Colour.DIM, indent=6)
