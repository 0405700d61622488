"""Diagnostics as workflow commands, which the forge shows beside the lines of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.errors import Diagnostic, Severity
from reconciler.model.wording import printable
from reconciler.render.diagnostics import counted


def diagnostics_as_github(diagnostics: Sequence[Diagnostic], *, root: str = "") -> str:
    """A command each, errors first, then a line that counts them.

    Errors come first because the forge shows only the first few of a step. `root` is the path of
    the workspace folder in its repository, with forward slashes: annotations are placed by paths
    from there.
    """
    if not diagnostics:
        return ""
    above = f"{root}/" if root else ""
    ordered = sorted(diagnostics, key=lambda each: each.severity is not Severity.ERROR)
    return "\n".join([*(_command(each, above) for each in ordered), counted(diagnostics)]) + "\n"


def _command(each: Diagnostic, root: str) -> str:
    properties = {"title": each.code}
    if each.at is not None:
        at = each.at
        properties = {
            "file": f"{root}{at.file}",
            "line": str(at.line),
            "col": str(at.column),
            "endColumn": str(at.column + at.length),
            **properties,
        }
    told = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    message = [each.message, *([each.hint] if each.hint is not None else [])]
    message += [f"{root}{mark}: {word}" for mark, word in each.related]
    return f"::{each.severity.value} {told}::{'%0A'.join(map(_data, message))}"


def _data(text: str) -> str:
    """What stands after the last colons. A line end in it would begin a command of its own."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
