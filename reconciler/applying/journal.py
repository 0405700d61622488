"""The audit log: JSON lines, one for each request and each change, enough to tell what was done.

The first line holds the plan, so that the way back can be planned from the file alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from reconciler.model.change import Change
from reconciler.model.event import (
    Done,
    Event,
    Failed,
    Interrupting,
    Planned,
    Sent,
    Skipped,
    Started,
)
from reconciler.model.wording import plain_json
from reconciler.planning.planfile import encoded

FORMAT_VERSION = 1


class Journal:
    """A listener that appends to a file which only its owner can read. Raises OSError."""

    def __init__(
        self, path: Path, *, mask: Callable[[str], str], now: Callable[[], datetime]
    ) -> None:
        self._mask = mask
        self._now = now
        self._file = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8"
        )

    def __call__(self, event: Event) -> None:
        """Write one line, at once: a run that is killed leaves what it did."""
        line = {"time": self._now().isoformat(), "format_version": FORMAT_VERSION, **_told(event)}
        self._file.write(plain_json(self._mask(orjson.dumps(line).decode())) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _told(event: Event) -> Mapping[str, Any]:  # noqa: PLR0911 - one for each class of event
    match event:
        case Planned(plan):
            return {"event": "planned", "plan": encoded(plan)}
        case Started(change):
            return {"event": "started", **_named(change)}
        case Sent(method, path, status):
            return {"event": "sent", "method": method, "path": path, "status": status}
        case Done(change, live_id, notices):
            return {"event": "done", **_named(change), "id": live_id, "notices": list(notices)}
        case Failed(change, error, _, ambiguous):
            return {"event": "failed", **_named(change), "error": error, "ambiguous": ambiguous}
        case Skipped(change, because):
            return {"event": "skipped", **_named(change), "because": because}
        case Interrupting():
            return {"event": "interrupting"}


def _named(change: Change) -> Mapping[str, Any]:
    return {"address": str(change.address), "action": change.action.value}
