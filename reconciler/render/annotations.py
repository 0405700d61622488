"""Workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.model.backfill_plan import BackfillPlan
from reconciler.model.plan import Plan, Severity
from reconciler.model.text import Annotations, Command, several, shortened
from reconciler.render.backfills import counts
from reconciler.render.diagnostics import counted, first_of, message_of
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan.alerts import HEADING, violations_of, within_budget
from reconciler.render.plan.document import document_of
from reconciler.render.plan.entries import Entry
from reconciler.render.plan.words import SEVERITIES

_KINDS = ("error", "warning", "notice")
_MOST = 10
"""Annotations of each kind that GitHub shows for a step."""
_MOST_LINES = 8
_MOST_NEW = 20
_LONGEST_LINE = 300


def diagnostics_as_github(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> Annotations:
    """Return a command for every diagnostic, up to a limit, and a line with the counts.

    Errors come first because GitHub shows only the first few annotations of a step.
    """
    shown, rest = first_of(diagnostics)
    ordered = sorted(shown, key=lambda diagnostic: diagnostic.level is not Level.ERROR)
    commands = [_of_diagnostic(diagnostic, options) for diagnostic in ordered]
    return Annotations.of([*commands, *rest, counted(diagnostics)] if commands else [])


def plan_as_github(plan: Plan, options: RenderOptions = DEFAULTS) -> Annotations:
    """Return annotations of violations and entries, as many as GitHub shows, then the counts.

    Violations are errors. Entries with dangers come first and are warnings, as are those with
    warnings; others are notices.
    """
    document = document_of(plan)
    commands: dict[str, list[Command]] = defaultdict(list)
    if plan.source.base_ref == "HEAD":
        words = (f"base {document.base}", *document.remarks)
        commands["warning"].append(Command("warning", {"title": "git base"}, words))
    for violation in violations_of(plan):
        command = _of_diagnostic(violation, options)
        commands[command.name].append(command)
    if document.loosened:
        texts = tuple(shortened(text, _LONGEST_LINE) for text in document.loosened)
        commands["warning"].append(Command("warning", {"title": "loosened since the base"}, texts))
    for entry in document.worst_first:
        command = _of_entry(entry, options)
        commands[command.name].append(command)
    lines, others = within_budget(document.new, _MOST_NEW)
    words = (*(f"{line.text}  {line.users}" for line in lines), *filter(None, [others]))
    new = [Command("warning", {"title": HEADING.lower()}, words)] if words else []
    shown = [command for kind in _KINDS for command in commands[kind][:_MOST]]
    rest = [
        several(len(commands[kind]) - _MOST, f"more {kind}")
        for kind in _KINDS
        if len(commands[kind]) > _MOST
    ]
    return Annotations.of([*new, *shown, *document.notes, *rest, document.summary])


def backfills_as_github(plan: BackfillPlan, _: RenderOptions = DEFAULTS) -> Annotations:
    """Return an annotation of each consequence, which has no place in a file, then the counts."""
    commands = [
        Command(
            "notice" if item.severity is Severity.INFO else "warning",
            {"title": item.rule},
            (f"backfill {of.address}", shortened(item.message, _LONGEST_LINE)),
        )
        for of in plan.objects
        for item in of.consequences
    ]
    return Annotations.of([*commands[:_MOST], f"{plan.source.environment}: {counts(plan)}"])


def _of_diagnostic(diagnostic: Diagnostic, options: RenderOptions) -> Command:
    message = [message_of(diagnostic)]
    message += [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    message += [
        f"{options.repository_path(str(mark))}: {label}" for mark, label in diagnostic.related
    ]
    name = "notice" if diagnostic.level is Level.NOTE else diagnostic.level.value
    properties = _properties(diagnostic.at, diagnostic.code, options)
    return Command(name, properties, tuple(message))


def _of_entry(entry: Entry, options: RenderOptions) -> Command:
    """Return an annotation at the line of an entry, for a group at that of its first change."""
    change = entry.change
    lines = [*_message(entry)]
    more = len(lines) - _MOST_LINES
    lines = lines[:_MOST_LINES] + ([f"… {more} more"] if more > 0 else [])
    name = "warning" if entry.rank[0] <= Severity.WARNING.rank else "notice"
    return Command(name, _properties(change.at, change.action.value, options), tuple(lines))


def _message(entry: Entry) -> Iterator[str]:
    yield f"{entry.change.action.value} {entry.title}"
    if entry.members:
        yield shortened(entry.members, _LONGEST_LINE)
    for remark in entry.remarks:
        sign = SEVERITIES[remark.severity].text
        yield shortened(f"{sign} {remark.rule}: {remark.full}", _LONGEST_LINE)
    yield from (shortened(note, _LONGEST_LINE) for note in entry.notes)
    for line in entry.lines:
        sides = " → ".join(filter(None, (line.before, line.after)))
        yield shortened(f"{line.name}: {'' if line.hunk else sides}".rstrip(), _LONGEST_LINE)


def _properties(at: Mark | None, title: str, options: RenderOptions) -> Mapping[str, str]:
    if at is None:
        return {"title": title}
    return {
        "file": options.repository_path(at.file),
        "line": str(at.line),
        "col": str(at.column),
        "endColumn": str(at.column + at.length),
        "title": title,
    }
