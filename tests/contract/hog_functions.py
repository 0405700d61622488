"""A kind that the program does not have, and a small service with projects and its objects.

Hog functions as the real service has them: lists are short and do not name the project, and an
object is removed by PATCH with `deleted: true`, after which it is read as 404.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.loopback import Received, serving

Body = dict[str, Any]

SCHEMA: Body = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "hog_function.schema.json",
    "title": "Hog function",
    "description": "A kind that a test adds.",
    "x-kind": {
        "collection": "hog_functions",
        "parent": "project",
        "parent_key": "project",
        "paths": {"collection": "/api/projects/{parent}/hog_functions/"},
        "detail": True,
        "stamp": "created_at",
        "deleted_by": {"deleted": True},
    },
    "x-parts": ["resource"],
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "hog"],
    "properties": {
        "project": {"type": ["string", "object"], "description": "Its project."},
        "name": {"type": "string", "description": "Its name.", "minLength": 1},
        "description": {"type": "string", "description": "What it is for.", "default": ""},
        "type": {"type": "string", "description": "Its type.", "default": "destination"},
        "enabled": {"type": "boolean", "description": "Whether it runs.", "default": False},
        "hog": {"type": "string", "description": "Its program."},
    },
}
_SHORT = ("id", "name", "description", "type", "enabled", "created_at")
_PATH = re.compile(
    r"/api/(?:organizations/o/projects|projects/(?P<parent>\d+)/hog_functions)/(?:(?P<id>\w+)/)?"
)


@dataclass
class Service:
    """What exists, by id. `project_of` is the project of a function, which its body lacks."""

    base_url: str = ""
    projects: dict[str, Body] = field(default_factory=dict)
    functions: dict[str, Body] = field(default_factory=dict)
    project_of: dict[str, str] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    made: int = 0

    def alive(self) -> list[Body]:
        """Return the functions that are not deleted."""
        return [body for body in self.functions.values() if not body["deleted"]]

    def places(self) -> list[tuple[str, str, str]]:
        """Return the name, project and id of each function that is not deleted."""
        return [
            (body["name"], self.projects[self.project_of[body["id"]]]["name"], body["id"])
            for body in self.alive()
        ]

    def answer(self, method: str, path: str, sent: Body) -> tuple[int, Any]:
        """Return the status and body of an answer."""
        if method != "GET":
            self.writes.append(f"{method} {path}")
        if path == "/api/organizations/o/batch_exports/":
            return 200, _page([])
        match = _PATH.fullmatch(path)
        if match is None:
            return 404, {"detail": "Not found."}
        parent, live_id = match["parent"], match["id"]
        inside = self.projects
        if parent is not None:
            inside = {
                body["id"]: body for body in self.alive() if self.project_of[body["id"]] == parent
            }
        if live_id is None:
            names = _SHORT if parent is not None else ("id", "name", "created_at")
            shown = [{name: body[name] for name in names} for body in inside.values()]
            return (201, self._made(parent, sent)) if method == "POST" else (200, _page(shown))
        if live_id not in inside:
            return 404, {"detail": "Not found."}
        if method == "DELETE":
            return 405, {"detail": 'Method "DELETE" not allowed.'}
        inside[live_id].update(sent)
        return 200, inside[live_id]

    def _made(self, parent: str | None, sent: Body) -> Body:
        self.made += 1
        live_id = str(self.made)
        body = {**sent, "id": self.made, "created_at": f"2026-01-01T00:00:{self.made:02}Z"}
        if parent is None:
            self.projects[live_id] = body
            return body
        properties = SCHEMA["properties"]
        defaults = {name: node["default"] for name, node in properties.items() if "default" in node}
        self.project_of[live_id] = parent
        self.functions[live_id] = {**defaults, **body, "id": live_id, "deleted": False}
        return self.functions[live_id]


def _page(items: list[Body]) -> Body:
    return {"count": len(items), "next": None, "previous": None, "results": items}


@contextmanager
def hog_service() -> Iterator[Service]:
    """Yield a running service."""
    service = Service()

    def answer(received: Received) -> None:
        path, sent = received.path.partition("?")[0], json.loads(received.body or b"{}")
        received.send_json(*service.answer(received.command, path, sent))

    with serving(answer) as port:
        service.base_url = f"http://127.0.0.1:{port}"
        yield service
