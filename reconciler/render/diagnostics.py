"""Diagnostics as text and JSON, and the JSON of several environments.

In text, the source line is cropped around the marked place.

Columns of files count characters, terminals count cells: two for a wide character, none for a
combining one, several for a control character, which is shown as an escape.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from reconciler.diagnostics import Diagnostic, InvalidConfiguration, Level, Mark, OfEnvironment
from reconciler.errors import ReconcilerError
from reconciler.model.public import Public, as_json
from reconciler.model.text import listed, plain_json, printable, several, shown_characters
from reconciler.render.options import (
    DEFAULTS,
    NARROWEST,
    PLAIN,
    Colour,
    RenderOptions,
    Style,
    width_of,
)

_TAB = 4
_CUT = "…"
_FAR = 4
_MOST_SHOWN = 100
_LONGEST_MESSAGE = 2_000
_MOST_ENVIRONMENTS = 5
_MANY = 4
"""From how many on, diagnostics that are alike are one."""
_MOST_PLACES = 3
_COLOURS = {Level.ERROR: Colour.BOLD_RED, Level.WARNING: Colour.YELLOW, Level.NOTE: Colour.CYAN}


class Cropped(Struct, frozen=True):
    """The visible part of a line. `start` and `length` of the marked place count cells, from 0."""

    text: str
    start: int
    length: int


def crop(line: str, start: int, length: int, *, width: int) -> Cropped:
    """Return at most `width` cells of a line around `length` characters from `start` (from 0).

    A place after the end of the line is marked at the end.
    """
    start = max(0, min(start, len(line)))
    # A line may have megabytes and a thousand diagnostics: read only what can be visible.
    skipped = max(0, start - _FAR * width)
    beyond = len(line) > start + _FAR * width
    cells = _cells(line[skipped : start + _FAR * width])
    widths = [width_of(cell) for cell in cells]
    start -= skipped
    end = min(start + length, len(cells))
    first, last = 0, len(cells)
    if skipped or beyond or sum(widths) + (start == len(cells)) > width:
        first, last = _window(widths, start, end, space=width - 2 * len(_CUT))
    before = _CUT if skipped or first else ""
    after = _CUT if beyond or last < len(cells) else ""
    return Cropped(
        f"{before}{''.join(cells[first:last])}{after}",
        len(before) + sum(widths[first:start]),
        max(1, sum(widths[start : min(end, last)])),
    )


def _cells(line: str) -> list[str]:
    """Return each character as it is shown: tabs as spaces, control characters as escapes."""
    shown: list[str] = []
    column = 0
    for cell in shown_characters(line):
        shown.append(" " * (_TAB - column % _TAB) if cell == r"\t" else cell)
        column += width_of(shown[-1])
    return shown


def _window(widths: list[int], start: int, end: int, *, space: int) -> tuple[int, int]:
    """Return the range of the characters that fit: the marked ones first, then both sides."""
    first = last = start
    while last < end and space >= widths[last]:
        space -= widths[last]
        last += 1
    grown = True
    while grown:
        grown = False
        if first > 0 and space >= widths[first - 1]:
            first, space, grown = first - 1, space - widths[first - 1], True
        if last < len(widths) and space >= widths[last]:
            last, space, grown = last + 1, space - widths[last], True
    while first < start and not widths[first]:
        # A combining character whose base is cropped would combine with the ellipsis.
        first += 1
    return first, last


def diagnostics_as_text(diagnostics: Sequence[Diagnostic], style: Style = PLAIN) -> str:
    """Return `file:line:column: error: message [code]`, the line, a caret, the hint; a count.

    Source lines are cropped to the width. The first line of a diagnostic is wrapped only on a
    terminal, since editors and `grep` read it. Of many diagnostics the first are shown, and those
    that differ only in the resource are one. Errors come last: there they are seen.
    """
    if not diagnostics:
        return ""
    groups = {group[0]: group for group in _alike(diagnostics)}
    shown, rest = first_of(tuple(groups))
    ordered = sorted(shown, key=lambda diagnostic: diagnostic.level is Level.ERROR)
    blocks = [_block(diagnostic, style, groups[diagnostic][1:]) for diagnostic in ordered]
    wrapped = [line for text in rest for line in style.wrapped(text, "", "  ")]
    return "\n".join([*blocks, *wrapped, counted(diagnostics)]) + "\n"


def _alike(diagnostics: Sequence[Diagnostic]) -> Iterator[list[Diagnostic]]:
    """Yield the diagnostics in groups: many that differ only in the resource, or a single one.

    The groups are in the order of their first ones.
    """
    from reconciler.kinds import kinds_by_name  # `--help` needs no kinds.

    address = re.compile(rf"\b({'|'.join(kinds_by_name())})\.[\w.-]*\w")
    groups: dict[object, list[Diagnostic]] = {}
    keys: list[object] = []
    for diagnostic in diagnostics:
        words = (address.sub("", message_of(diagnostic)), address.sub("", diagnostic.hint or ""))
        keys.append((diagnostic.code, diagnostic.level, words))
        groups.setdefault(keys[-1], []).append(diagnostic)
    for key, diagnostic in zip(keys, diagnostics, strict=True):
        group = groups[key]
        if len(group) < _MANY:
            yield [diagnostic]
        elif group[0] is diagnostic:
            yield group


def diagnostics_for_people(diagnostics: Sequence[Diagnostic], options: RenderOptions) -> str:
    """Return diagnostics as text, or that there are none."""
    return diagnostics_as_text(diagnostics, options.style) or f"{options.passed}.\n"


def message_of(diagnostic: Diagnostic) -> str:
    """Return the message, with the environments that have the problem if not all of them do."""
    names = diagnostic.environments
    if not names:
        return diagnostic.message
    if len(names) == 1:
        return f"{diagnostic.message} (in {names[0]})"
    shown = listed(names, _MOST_ENVIRONMENTS)
    return f"{diagnostic.message} (in {len(names)} environments: {shown})"


def first_of(diagnostics: Sequence[Diagnostic]) -> tuple[Sequence[Diagnostic], Sequence[str]]:
    """Return the first diagnostics in their order, errors before warnings, and a line on the rest.

    The first messages would be hard to see in the log of a job otherwise.
    """
    if len(diagnostics) <= _MOST_SHOWN:
        return diagnostics, ()
    ranked = sorted(diagnostics, key=lambda diagnostic: diagnostic.level is not Level.ERROR)
    codes = Counter(diagnostic.code for diagnostic in ranked[_MOST_SHOWN:])
    counts = ", ".join(f"{count:,} {code}" for code, count in codes.most_common())
    more = f"{len(diagnostics) - _MOST_SHOWN:,} more: {counts}"
    return ranked[:_MOST_SHOWN], (more, "hint: `reconciler validate --format json` shows all")


def counted(diagnostics: Sequence[Diagnostic]) -> str:
    """Return `2 errors, 1 warning in 3 files`."""
    levels = Counter(diagnostic.level for diagnostic in diagnostics)
    counts = [several(levels[level], level.value) for level in Level if levels[level]]
    files = len({diagnostic.at.file for diagnostic in diagnostics if diagnostic.at is not None})
    return ", ".join(counts) + (f" in {files} files" if files > 1 else "")


def _block(diagnostic: Diagnostic, style: Style, others: Sequence[Diagnostic]) -> str:
    place = f"{printable(str(diagnostic.at))}: " if diagnostic.at is not None else ""
    level = diagnostic.level.value
    whole = message_of(diagnostic)
    message = whole[:_LONGEST_MESSAGE]
    cut = "…" if message != whole else ""
    head = f"{place}{level}: {printable(message)}{cut} [{diagnostic.code}]"
    lines = style.on_terminal(head, "", " " * 4)
    painted = style.paint(_COLOURS[diagnostic.level], level)
    lines[0] = lines[0].replace(f"{place}{level}:", f"{place}{painted}:", 1)
    if diagnostic.at is not None and diagnostic.line is not None:
        lines += _snippet(diagnostic, diagnostic.at, diagnostic.line, style)
    if diagnostic.hint is not None:
        lines += style.wrapped(printable(diagnostic.hint), "  hint: ", " " * 8)
    for mark, label in diagnostic.related:
        lines += style.on_terminal(printable(f"{mark}: {label}"), "  ", " " * 4)
    if others:
        places = listed((item.at for item in others if item.at is not None), _MOST_PLACES)
        text = printable(f"{len(others):,} more like this: {places}".removesuffix(": "))
        lines += style.on_terminal(text, "  ", " " * 4)
    return "\n".join(lines)


def _snippet(diagnostic: Diagnostic, at: Mark, line: str, style: Style) -> list[str]:
    gutter = f"{at.line:>5} | "
    width = max(NARROWEST, style.width) - len(gutter)
    shown = crop(line, at.column - 1, at.length, width=width)
    carets = style.paint(_COLOURS[diagnostic.level], "^" * shown.length)
    return [f"{gutter}{shown.text}", f"{' ' * (len(gutter) + shown.start)}{carets}"]


class RelatedPlace(Public, frozen=True):
    """A further place of a diagnostic."""

    file: str
    """Path, relative to the workspace."""
    line: int
    """Line, from 1."""
    column: int
    """Column in characters, from 1."""
    message: str
    """What is there."""


class PublicDiagnostic(Public, frozen=True):
    """A problem of the files."""

    code: str
    """Stable name of the problem, as in the list of diagnostics."""
    severity: Level
    """Errors stop a run."""
    message: str
    """The problem."""
    environments: tuple[str, ...]
    """The environments that have it; empty for all."""
    hint: str | None
    """The fix."""
    file: str | None
    """Path, relative to the workspace; null without a place."""
    line: int | None
    """Line, from 1."""
    column: int | None
    """Column in characters, from 1."""
    related: tuple[RelatedPlace, ...]
    """Further places."""


class PublicDiagnostics(Public, frozen=True):
    """Problems of the files, as `reconciler validate --format json` prints them."""

    version = 1
    schema = "diagnostics"

    diagnostics: tuple[PublicDiagnostic, ...]
    """All of them, in the order of the files."""


def diagnostics_as_json(diagnostics: Sequence[Diagnostic], _: RenderOptions = DEFAULTS) -> str:
    """Return the public JSON of diagnostics."""
    return as_json(PublicDiagnostics(tuple(map(public_diagnostic, diagnostics))))


def public_diagnostic(diagnostic: Diagnostic) -> PublicDiagnostic:
    """Return a diagnostic as public JSON has it."""
    at = diagnostic.at
    return PublicDiagnostic(
        code=diagnostic.code,
        severity=diagnostic.level,
        message=diagnostic.message,
        environments=diagnostic.environments,
        hint=diagnostic.hint,
        file=None if at is None else at.file,
        line=None if at is None else at.line,
        column=None if at is None else at.column,
        related=tuple(
            RelatedPlace(mark.file, mark.line, mark.column, label)
            for mark, label in diagnostic.related
        ),
    )


class PublicError(Public, frozen=True):
    """Why an environment has no result."""

    message: str
    """The error."""
    hint: str | None
    """The fix."""
    diagnostics: tuple[PublicDiagnostic, ...]
    """The problems of the files, if these are the error."""


class PublicResult(Public, frozen=True):
    """The result of an environment, or its error."""

    environment: str
    """Its name."""
    exit_code: int
    """The exit code of the command for it alone."""
    result: Any
    """As in the schema of the command; null if there is an error."""
    error: PublicError | None
    """Null if there is a result."""


class PublicResults(Public, frozen=True):
    """Results of several environments: `-e '*' --format json`."""

    version = 1
    schema = "environments"

    environments: tuple[PublicResult, ...]
    """One for each environment."""


def results_as_json(results: Sequence[OfEnvironment[Any]], _: RenderOptions = DEFAULTS) -> str:
    """Return the public JSON of the results of several environments."""
    return as_json(
        PublicResults(
            tuple(
                PublicResult(
                    item.environment, int(item.exit_code), item.result, _public_error(item.error)
                )
                for item in results
            )
        )
    )


def _public_error(error: ReconcilerError | None) -> PublicError | None:
    if error is None:
        return None
    diagnostics = error.diagnostics if isinstance(error, InvalidConfiguration) else ()
    return PublicError(error.message, error.hint, tuple(map(public_diagnostic, diagnostics)))


def place_as_text(at: Mark) -> str:
    """Return `exports/events.yaml:14`."""
    return printable(f"{at.file}:{at.line}")


def safe_json(value: Any) -> str:
    """Return indented JSON in which control characters of text are escapes."""
    return plain_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"
