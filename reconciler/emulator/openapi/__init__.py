"""The OpenAPI document of the imitated interface, written for people to read as well."""

from __future__ import annotations

from typing import Any

from reconciler.emulator.dialects import Dialect
from reconciler.emulator.openapi.paths import paths_of
from reconciler.emulator.openapi.schemas import schemas_of

_ABOUT = """\
Scheduled exports of events and persons to a destination, their runs and logs, and the projects of
an organization. This document describes what the embedded service answers; the switchboard under
`/_emulator/` is not part of it.

Every operation needs a personal API key: `Authorization: Bearer <key>`. Lists take `limit` and
`offset`; runs are paged by `cursor`. Errors have one shape, `{type, code, detail, attr}`, and tell
the first problem only.
"""


def document(dialect: Dialect, base_url: str) -> dict[str, Any]:
    """OpenAPI 3.1 for one dialect."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Batch exports and projects",
            "version": dialect.name,
            "description": _ABOUT,
        },
        "servers": [{"url": base_url}],
        "security": [{"key": []}],
        "tags": [
            {"name": "batch exports", "description": "Scheduled exports"},
            {"name": "runs", "description": "What they did, and what they logged"},
            {"name": "projects", "description": "Projects of an organization"},
        ],
        "paths": paths_of(dialect),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas_of(dialect),
        },
    }
