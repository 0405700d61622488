"""The table of output formats. A module of this folder with `WRITERS` adds a format of its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, TypeAlias

from reconciler.errors import BadUsage

if TYPE_CHECKING:
    from reconciler.render.options import RenderOptions

Writer: TypeAlias = "Callable[[Any, RenderOptions], str]"
"""Returns text that is empty or ends with a line end."""

DEFAULT = "text"
_PUBLIC = ""
"""The JSON of a value of `model/public.py`."""
_WRITERS: Mapping[str, Mapping[str, str]] = {
    "plan": {
        "text": "plan.text:plan_as_text",
        "github": "annotations:plan_as_github",
        "gitlab": "code_quality:plan_as_gitlab",
        "html": "plan_html:plan_as_html",
        "json": "plans:plan_as_json",
        "markdown": "plan_markdown:plan_as_markdown",
        "sarif": "sarif:plan_as_sarif",
    },
    "plans": {
        "text": "plans:plans_as_text",
        "json": "plans:plans_as_json",
        "markdown": "plan_markdown:plans_as_markdown",
    },
    "diagnostics": {
        "text": "diagnostics:diagnostics_for_people",
        "github": "annotations:diagnostics_as_github",
        "gitlab": "code_quality:diagnostics_as_gitlab",
        "json": "diagnostics:diagnostics_as_json",
        "sarif": "sarif:diagnostics_as_sarif",
    },
    "backfills": {
        "text": "backfills:backfills_as_text",
        "github": "annotations:backfills_as_github",
        "html": "backfills_html:backfills_as_html",
        "json": "backfills:backfills_as_json",
        "markdown": "backfills_markdown:backfills_as_markdown",
    },
    "resolved": {"text": "resolved:resolved_as_text", "json": "resolved:resolved_as_json"},
    "imported": {"text": "imports:imported_as_text", "json": _PUBLIC},
    "audit": {"text": "audit:audit_as_text", "json": "audit:audit_as_json"},
    "drift": {
        "text": "drift:drift_as_text",
        "json": _PUBLIC,
        "markdown": "drift:drift_as_markdown",
    },
    "compared": {
        "text": "compared:compared_as_text",
        "json": _PUBLIC,
        "markdown": "compared:compared_as_markdown",
    },
    "gaps": {"text": "gaps:gaps_as_text", "json": _PUBLIC, "markdown": "gaps:gaps_as_markdown"},
    "runs": {"text": "runs:runs_as_text", "json": _PUBLIC, "markdown": "runs:runs_as_markdown"},
    "logs": {"text": "logs:logs_as_text", "json": _PUBLIC, "markdown": "logs:logs_as_markdown"},
    "status": {
        "text": "status:status_as_text",
        "html": "status_html:status_as_html",
        "json": _PUBLIC,
        "markdown": "status_markdown:status_as_markdown",
    },
    "health": {"text": "health:health_as_text", "json": _PUBLIC},
    "preflight": {"text": "preflight:preflight_as_text", "json": _PUBLIC},
    "projects": {"text": "projects:projects_as_text", "json": _PUBLIC},
    "project_details": {"text": "projects:project_as_text", "json": _PUBLIC},
}
"""By result and format: `module:function` below `render`, imported when it writes."""

RESULTS = tuple(_WRITERS)


@cache
def _added() -> Mapping[str, Mapping[str, Writer]]:
    """Return the writers of the modules of this folder, by format and result."""
    return {
        module.name: import_module(f"{__name__}.{module.name}").WRITERS
        for module in iter_modules(__path__)
    }


def formats_of(result: str) -> tuple[str, ...]:
    """Return the names of the formats that have a writer for a result, the default first."""
    added = {name for name, writers in _added().items() if result in writers}
    return tuple(sorted({*_WRITERS[result], *added}, key=lambda name: (name != DEFAULT, name)))


def writer_of(name: str, result: str) -> Writer:
    """Return the writer of a format for a result. Raises BadUsage if it has none.

    Known secrets are masked in the values that it gets, since shortening and escapes break them.
    """
    writer = _writer(name, result)

    def write(value: Any, options: RenderOptions) -> str:
        if options.mask is not None:
            from reconciler.model.redaction import masked_in

            value = masked_in(value, options.mask)
        return writer(value, options)

    return write


def _writer(name: str, result: str) -> Writer:
    if (place := _WRITERS[result].get(name)) == _PUBLIC:
        from reconciler.model.public import as_json

        return lambda report, _: as_json(report)
    if place is not None:
        module, _, function = place.partition(":")
        writer: Writer = getattr(import_module(f"reconciler.render.{module}"), function)
        return writer
    if result in (writers := _added().get(name, {})):
        return writers[result]
    raise BadUsage(
        f"--format {name} is not supported here",
        hint=f"use one of: {', '.join(formats_of(result))}",
    )
