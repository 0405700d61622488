"""The audit log: JSON lines with the plan, every request and the result of every change."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from reconciler.model.event import Event
from reconciler.model.plan_redaction import redact_event
from reconciler.model.redaction import Mask


class AuditLog:
    """A listener that appends to a file which only its owner can read. Raises OSError."""

    def __init__(self, path: Path, *, mask: Mask, now: Callable[[], datetime]) -> None:
        self._mask = mask
        self._now = now
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb")

    def __call__(self, event: Event) -> None:
        """Write one line and flush it, so that the log of a killed run is complete."""
        # Every command imports this package, and few need the codec.
        from reconciler.model.codec.event import encode_line

        line = encode_line(redact_event(event, self._mask), time=self._now().isoformat())
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
