"""Read `client:` of `reconciler.yaml`: how requests are made."""

from __future__ import annotations

from typing import Any

from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.connection import DURATIONS, ClientOptions, duration, how_to_write, rate
from reconciler.model.values import JSON
from reconciler.workspace.hints import shown
from reconciler.workspace.workspace_file import Workspace


def client_options_of(
    workspace: Workspace, environment: str, problems: DiagnosticCollector
) -> ClientOptions:
    """Return the options of an environment over those of the workspace, key by key.

    Values of a wrong type were reported by the schema.
    """
    paths = (("environments", environment, "client"), ("client",))
    own, common = (_options_at(workspace, path, problems) for path in paths)
    return own.over(common)


def _options_at(
    workspace: Workspace, path: tuple[str, ...], problems: DiagnosticCollector
) -> ClientOptions:
    values: dict[str, Any] = {}
    for name, written in workspace.section(*path).items():
        values |= _read(name, written)
        if values.get(name, ...) is None:
            hint = how_to_write(name) + (", or false for no limit" if name == "rate" else "")
            problems.error(
                "bad-client-setting",
                f"invalid {name} {shown(written)}",
                at=workspace.mark((*path, name)),
                hint=hint,
            )
    return ClientOptions(**values)


def _read(name: str, written: JSON) -> dict[str, Any]:
    """Return the value of a key, None for an invalid one; nothing if its type is wrong."""
    if name == "parallelism":
        valid = isinstance(written, int) and not isinstance(written, bool) and written > 0
        return {name: written} if valid else {}
    if name == "rate" and isinstance(written, str | bool):
        return {name: () if written is False else rate(str(written))}
    if (
        name in DURATIONS
        and isinstance(written, str | int | float)
        and not isinstance(written, bool)
    ):
        return {name: duration(name, str(written))}
    return {}
