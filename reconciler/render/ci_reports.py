"""Diagnostics and plans for CI: annotations of GitHub, SARIF 2.1.0, and reports of GitLab."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.errors import Meaning, meaning
from reconciler.kinds import all_kinds, behaviour_of
from reconciler.model.plan import Plan, Severity
from reconciler.model.text import (
    Annotations,
    Command,
    cut_inside,
    plain_json,
    printable,
    several,
    shortened,
)
from reconciler.render.diagnostics import counted, first_of, message_of, safe_json
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.plan_document import TOP, Part, document_of
from reconciler.render.plan_entries import SEVERITIES, Entry, totals_of
from reconciler.version import __version__

_KINDS = ("error", "warning", "notice")
_MOST = 10
"""Annotations of each kind that GitHub shows for a step."""
_MOST_LINES = 8
_LONGEST_LINE = 300
_LONGEST_ITEM = 2_000
_SEVERITIES = {Level.ERROR: "major", Level.WARNING: "minor", Level.NOTE: "info"}
_WITHOUT_PLACE = "reconciler.yaml"
"""The file of a diagnostic without a place: GitLab requires one."""
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "%SRCROOT%"


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
    joined: list[Command] = []
    commands: list[Command] = []
    for section in document.sections:
        if section.part in TOP:
            words = (
                shortened(": ".join(filter(None, (item.subject, item.text))), _LONGEST_ITEM)
                for item in section.within_budget()
            )
            joined.append(Command("warning", {"title": section.heading.lower()}, tuple(words)))
        elif section.part in (Part.REFUSED, Part.LATER):
            commands += (_of_diagnostic(item, options) for item in section.diagnostics())
    commands += (_of_entry(entry, options) for entry in document.entries)
    by_kind = {kind: [item for item in commands if item.name == kind] for kind in _KINDS}
    notes = [item.text for item in document.section(Part.NOTES).items]
    shown = [command for kind in _KINDS for command in by_kind[kind][:_MOST]]
    rest = [
        several(len(every) - _MOST, f"more {kind}")
        for kind, every in by_kind.items()
        if len(every) > _MOST
    ]
    return Annotations.of([*joined, *shown, *notes, *rest, document.summary])


def _of_diagnostic(diagnostic: Diagnostic, options: RenderOptions) -> Command:
    message = [message_of(diagnostic)]
    message += [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    message += [
        f"{options.repository_path(str(mark))}: {label}" for mark, label in diagnostic.related
    ]
    name = "notice" if diagnostic.level is Level.NOTE else diagnostic.level.value
    return Command(name, _properties(diagnostic.at, diagnostic.code, options), tuple(message))


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
        yield cut_inside(f"{line.name}: {'' if line.hunk else sides}".rstrip(), _LONGEST_LINE)


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


def plan_as_gitlab(plan: Plan, _: RenderOptions = DEFAULTS) -> str:
    """Return the counts for `artifacts:reports:terraform`, on one line."""
    counts = dict(zip(("create", "update", "delete"), totals_of(plan), strict=True))
    return plain_json(json.dumps(counts)) + "\n"


def diagnostics_as_gitlab(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a list for `artifacts:reports:codequality`."""
    same: Counter[str] = Counter()
    return safe_json([_issue(diagnostic, options, same) for diagnostic in diagnostics])


def _issue(diagnostic: Diagnostic, options: RenderOptions, same: Counter[str]) -> dict[str, Any]:
    at = diagnostic.at
    path = options.repository_path(at.file if at is not None else _WITHOUT_PLACE)
    message = message_of(diagnostic)
    # Without the line: a problem that moves within its file is the same problem.
    identity = f"{diagnostic.code}\0{path}\0{message}"
    same[identity] += 1
    content = f"{identity}\0{same[identity]}".encode(errors="surrogatepass")
    return {
        "description": _with_hint(diagnostic),
        "check_name": diagnostic.code,
        "fingerprint": sha256(content).hexdigest(),
        "severity": _SEVERITIES[diagnostic.level],
        "location": {"path": path, "lines": {"begin": at.line if at is not None else 1}},
    }


def diagnostics_as_sarif(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a log of one run, with a rule for every code."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    levels = {diagnostic.code: diagnostic.level for diagnostic in reversed(diagnostics)}
    levels |= {item.code: item.level for item in diagnostics if item.level is Level.ERROR}
    driver = {
        "name": "reconciler",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [_rule(code, levels[code].value) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the repository."}}},
        "results": [_result(diagnostic, codes, options) for diagnostic in diagnostics],
    }
    return safe_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def plan_as_sarif(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return the dangers of a plan, what is new in it, then its violations."""
    document = document_of(plan)
    parts = (*TOP, Part.REFUSED, Part.LATER)
    items = [item for part in parts for item in document.section(part).diagnostics()]
    return diagnostics_as_sarif(items, options)


def _rule(code: str, level: str) -> Mapping[str, Any]:
    explained = _consequences().get(code) or meaning(code)
    return {
        "id": code,
        "name": code.title().replace("-", ""),
        "shortDescription": {"text": f"{explained.title}."},
        "fullDescription": {"text": f"{explained.title}. {explained.help}"},
        "help": {"text": explained.help, "markdown": explained.help},
        "defaultConfiguration": {"level": level},
    }


def _consequences() -> Mapping[str, Meaning]:
    """Return what each consequence means: the first sentence, and advice."""
    rules = (rule for kind in all_kinds() for rule in behaviour_of(kind).rules)
    parts = ((rule.id, rule.meaning.partition(".\n\n")) for rule in rules)
    return {code: Meaning(first, " ".join(more.split())) for code, (first, _, more) in parts}


def _result(diagnostic: Diagnostic, codes: list[str], options: RenderOptions) -> Mapping[str, Any]:
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": diagnostic.level.value,
        # Braces stay single: the standard doubles them only in messages with arguments.
        "message": {"text": _with_hint(diagnostic)},
    }
    if diagnostic.environments:
        result["properties"] = {"environments": list(diagnostic.environments)}
    if diagnostic.at is not None:
        result["locations"] = [_location(diagnostic.at, options)]
    if diagnostic.related:
        result["relatedLocations"] = [
            {"id": number, "message": {"text": printable(label)}, **_location(mark, options)}
            for number, (mark, label) in enumerate(diagnostic.related, start=1)
        ]
    return result


def _location(at: Mark, options: RenderOptions) -> Mapping[str, Any]:
    region = {
        "startLine": at.line,
        "startColumn": at.column,
        "endLine": at.line,
        "endColumn": at.column + at.length,
    }
    # A file name that is not UTF-8 keeps its bytes.
    path = options.repository_path(at.file).encode(errors="surrogateescape")
    artifact = {"uri": quote(path, safe="/"), "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _with_hint(diagnostic: Diagnostic) -> str:
    hint = f"\nhint: {printable(diagnostic.hint)}" if diagnostic.hint else ""
    return f"{printable(message_of(diagnostic))}{hint}"
