"""The OpenAPI document of the imitated interface, for tools and readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.emulator.access import Operation
from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.paths import paths_of
from reconciler.emulator.openapi.schemas import schemas_of

_ABOUT = """\
Scheduled exports of events and persons to a destination, their runs and logs, and the projects of
an organization. This document describes what the embedded service answers; the switchboard under
`/_emulator/` is not part of it.

Every operation needs a personal API key: `Authorization: Bearer <key>`. Lists take `limit` and
`offset`; runs, backfills and activity have cursors. An error has one shape, `{type, code, detail,
attr}`, and reports the first problem only. Where this server crashes, 500 is declared.
"""

_TAGS = {
    "batch exports": "Scheduled exports",
    "runs": "What exports did, and what they logged",
    "backfills": "Exports of past ranges",
    "destination test steps": "Checks of a destination without an export",
    "projects": "Projects of an organization",
    "keys": "The key, its user and organizations",
    "activity": "Who changed what",
}


def document(
    served: Mapping[str, Mapping[str, Operation]], dialect: Dialect, base_url: str
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of the paths that a dialect serves."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Batch exports and projects",
            "version": dialect.name,
            "description": _ABOUT,
        },
        "servers": [{"url": base_url}],
        "security": [{"key": []}],
        "tags": [{"name": name, "description": about} for name, about in _TAGS.items()],
        "paths": paths_of(served, dialect),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas_of(dialect),
        },
    }
