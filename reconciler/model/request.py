"""A call as a value: what is sent, and what may be done when it ends in doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from reconciler.model.values import JSON, JSONObject
from reconciler.model.wording import printable


class Repeat(StrEnum):
    """What may be done after an ambiguous end (a time-out, a reset, a 5xx)."""

    SAFE = "safe"
    """Repeating has the same effect: GET, PATCH of fixed values, DELETE, pause, unpause."""
    AFTER_LOOKING = "after_looking"
    """A POST that creates: never repeated by the transport; the applier looks first."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP call. `path` is below the base URL; `body` may hold secret references."""

    method: str
    path: str
    repeat: Repeat
    body: JSONObject | None = None
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """What messages call it: ids that the service gave stand in the path."""
        return printable(f"{self.method} {self.path}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the status and the decoded JSON body, None where there is none."""

    status: int
    body: JSON
