"""Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic, Severity
from reconciler.model.wording import printable
from reconciler.render.diagnostics import counted
from reconciler.render.formats.base import Format


def diagnostics_as_github(diagnostics: Sequence[Diagnostic], *, root: str = "") -> str:
    """Return one command for each diagnostic, errors first, then a line that counts them.

    Errors come first because GitHub shows only the first few of a step. `root` is the path of
    the workspace folder in its repository, with forward slashes: annotations are placed by paths
    from there.
    """
    if not diagnostics:
        return ""
    above = f"{root}/" if root else ""
    ordered = sorted(diagnostics, key=lambda diagnostic: diagnostic.severity is not Severity.ERROR)
    commands = [_command(diagnostic, above) for diagnostic in ordered]
    return "\n".join([*commands, counted(diagnostics)]) + "\n"


def _command(diagnostic: Diagnostic, root: str) -> str:
    properties = {"title": diagnostic.code}
    if diagnostic.at is not None:
        at = diagnostic.at
        properties = {
            "file": f"{root}{at.file}",
            "line": str(at.line),
            "col": str(at.column),
            "endColumn": str(at.column + at.length),
            **properties,
        }
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = [diagnostic.message, *([diagnostic.hint] if diagnostic.hint is not None else [])]
    message += [f"{root}{mark}: {label}" for mark, label in diagnostic.related]
    return f"::{diagnostic.severity.value} {listed}::{'%0A'.join(map(_data, message))}"


def _data(text: str) -> str:
    """Return text for the message of a command. A line end in it would begin another command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


FORMAT = Format(
    "github",
    diagnostics=lambda diagnostics, options: diagnostics_as_github(diagnostics, root=options.root),
)
