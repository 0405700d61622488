"""Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic, Level
from reconciler.model.workflow import Annotations, Command
from reconciler.render.diagnostics import counted, first_of, message_of
from reconciler.render.formats.base import Format
from reconciler.render.options import DEFAULTS, RenderOptions


def diagnostics_as_github(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> Annotations:
    """Return a command for every diagnostic, up to a limit, and a line with the counts.

    Errors come first because GitHub shows only the first few annotations of a step.
    """
    shown, rest = first_of(diagnostics)
    ordered = sorted(shown, key=lambda diagnostic: diagnostic.level is not Level.ERROR)
    commands = [_command(diagnostic, options) for diagnostic in ordered]
    return Annotations.of([*commands, *rest, counted(diagnostics)] if commands else [])


def _command(diagnostic: Diagnostic, options: RenderOptions) -> Command:
    properties = {"title": diagnostic.code}
    if (at := diagnostic.at) is not None:
        properties = {
            "file": options.repository_path(at.file),
            "line": str(at.line),
            "col": str(at.column),
            "endColumn": str(at.column + at.length),
            **properties,
        }
    message = [message_of(diagnostic)]
    message += [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    message += [
        f"{options.repository_path(str(mark))}: {label}" for mark, label in diagnostic.related
    ]
    name = "notice" if diagnostic.level is Level.NOTE else diagnostic.level.value
    return Command(name, properties, tuple(message))


FORMAT = Format("github", diagnostics=diagnostics_as_github)
