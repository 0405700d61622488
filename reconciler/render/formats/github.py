"""Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic, Level
from reconciler.model.wording import printable
from reconciler.render.diagnostics import counted
from reconciler.render.formats.base import Format
from reconciler.render.options import DEFAULTS, RenderOptions


def diagnostics_as_github(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a command for every diagnostic and a line with the counts.

    Errors come first because GitHub shows only the first few annotations of a step.
    """
    if not diagnostics:
        return ""
    ordered = sorted(diagnostics, key=lambda diagnostic: diagnostic.level is not Level.ERROR)
    commands = [_command(diagnostic, options) for diagnostic in ordered]
    return "\n".join([*commands, counted(diagnostics)]) + "\n"


def _command(diagnostic: Diagnostic, options: RenderOptions) -> str:
    properties = {"title": diagnostic.code}
    if (at := diagnostic.at) is not None:
        properties = {
            "file": options.repository_path(at.file),
            "line": str(at.line),
            "col": str(at.column),
            "endColumn": str(at.column + at.length),
            **properties,
        }
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = [diagnostic.message]
    message += [f"hint: {diagnostic.hint}"] if diagnostic.hint else []
    message += [
        f"{options.repository_path(str(mark))}: {label}" for mark, label in diagnostic.related
    ]
    return f"::{diagnostic.level.value} {listed}::{'%0A'.join(map(_data, message))}"


def _data(text: str) -> str:
    """Return text for the message of a command, without line ends, which begin a new command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMAT = Format("github", diagnostics=diagnostics_as_github)
