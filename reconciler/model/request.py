"""A call as a value: what is sent, and whether it may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.values import JSON, JSONObject
from reconciler.model.wording import printable

Query: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""Parameters. One with several values is repeated."""


class Repeat(StrEnum):
    """Whether a request may be repeated if its outcome is unknown (a timeout, a reset, a 5xx)."""

    SAFE = "safe"
    """Repeating has the same effect: GET, PATCH of fixed values, DELETE, pause, unpause."""
    AFTER_LOOKING = "after_looking"
    """A POST that creates: the transport never repeats it; the applier searches first."""


class Request(Struct, frozen=True):
    """One HTTP call. `path` is below the base URL; `body` may hold secret references."""

    method: str
    path: str
    repeat: Repeat
    body: JSONObject | None = None
    query: Query = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Method and path for messages, printable: the path contains ids of the service."""
        return printable(f"{self.method} {self.path}")


class Answer(Struct, frozen=True):
    """The response: its status and decoded JSON body, None without one.

    `attempts` counts how often the request was sent; `unclear` is whether an attempt before the
    last may have taken effect.
    """

    status: int
    body: JSON
    attempts: int = 1
    unclear: bool = False
