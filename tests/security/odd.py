"""A service whose answers have an odd value at one place, and odd values for every type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import httpx

from tests.support.emulator import RunningEmulator
from tests.support.loopback import Received, serving

Place: TypeAlias = tuple[str, ...]
"""The last word of the path of a request, and the names of fields; `*` is any item of a list."""
TIMES: tuple[Any, ...] = (
    *("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "9999-12-31", "9998-12-31T23:00:00Z"),
    *("0001-01-01", "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00Z", "10000-01-01T00:00:00Z"),
    *("1601-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2262-04-12T00:00:00Z", "2026-W10-1"),
    *("2026-13-45T99:00:00Z", "20260101", "2026-05-01", "2026-05-01T00:00:00.123456789Z"),
)
TYPES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**12, 10**30, 1e308, [], {}, [1], {"a": 1}, [None], [{}]),
    *("", "x", "0", "\x00", "9" * 5_000, [["a"]], {"": None}, {"id": []}),
)
REMOVED = object()
"""Removes what is at the place."""
ODD = (*TIMES, *TYPES, REMOVED)
_KEPT = frozenset({"authorization", "content-type"})


class OddService:
    """Passes requests on. Answers get `value` at `place`; `seen` are the places of all answers."""

    def __init__(self, service: RunningEmulator) -> None:
        self.http = httpx.Client(base_url=service.base_url, timeout=60)
        self.place: Place | None = None
        self.value: Any = None
        self.seen: dict[Place, None] = {}
        self.hits = 0
        self.base_url = ""

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Any:
        """Return the response of the service with the odd value in it."""
        answer = self.http.request(method, path, headers=headers, content=body)
        try:
            content = json.loads(answer.content)
        except ValueError:
            return answer.status_code, answer.content
        words = [word for word in path.partition("?")[0].split("/") if word]
        names = [word for word in words if word.replace("_", "").isalpha()]
        root = (names[-1] + "/ID" * (words[-1] != names[-1]),)
        holder = {"": content}
        self._visit(holder, "", root)
        return answer.status_code, json.dumps(holder[""]).encode()

    def _visit(self, holder: Any, key: Any, place: Place) -> None:
        self.seen[place] = None
        value = holder[key]
        if place == self.place:
            self.hits += 1
            holder[key] = self.value
            if self.value is REMOVED:
                del holder[key]
        elif isinstance(value, dict):
            for name in list(value):
                self._visit(value, name, (*place, name))
        elif isinstance(value, list):
            for position in reversed(range(len(value))):
                self._visit(value, position, (*place, "*"))


@contextmanager
def odd_service(service: RunningEmulator) -> Iterator[OddService]:
    """Run a server in front of a service."""
    odd = OddService(service)

    def answer(received: Received) -> None:
        kept = {k: v for k, v in received.headers.items() if k.lower() in _KEPT}
        status, body = odd.answer(received.command, received.path, kept, received.body)
        received.send(status, body, **{"Content-Type": "application/json"})

    with serving(answer) as port:
        odd.base_url = f"http://127.0.0.1:{port}"
        yield odd
