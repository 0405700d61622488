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
_PROJECTS = re.compile(r"/api/organizations/o/projects/(?:(?P<id>\w+)/)?")
_FUNCTIONS = re.compile(r"/api/projects/(?P<parent>\d+)/hog_functions/(?:(?P<id>\w+)/)?")


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
        if match := _PROJECTS.fullmatch(path):
            return self._project(method, match["id"], sent)
        if match := _FUNCTIONS.fullmatch(path):
            return self._function(method, match["parent"], match["id"], sent)
        if path == "/api/organizations/o/batch_exports/":
            return 200, _page([])
        return 404, {"detail": "Not found."}

    def _project(self, method: str, live_id: str | None, sent: Body) -> tuple[int, Any]:
        if live_id is None:
            return self._collection(method, self.projects, list(self.projects.values()), sent)
        if live_id not in self.projects:
            return 404, {"detail": "Not found."}
        if method == "PATCH":
            self.projects[live_id].update(sent)
        return 200, self.projects[live_id]

    def _function(
        self, method: str, parent: str, live_id: str | None, sent: Body
    ) -> tuple[int, Any]:
        inside = {
            body["id"]: body for body in self.alive() if self.project_of[body["id"]] == parent
        }
        if live_id is None:
            short = [{name: body[name] for name in _SHORT} for body in inside.values()]
            status, body = self._collection(method, self.functions, short, sent)
            if status == 201:
                self.project_of[body["id"]] = parent
                body.update({**_defaults(), **sent, "deleted": False})
            return status, body
        if live_id not in inside:
            return 404, {"detail": "Not found."}
        if method == "DELETE":
            return 405, {"detail": 'Method "DELETE" not allowed.'}
        if method == "PATCH":
            inside[live_id].update(sent)
        return 200, inside[live_id]

    def _collection(
        self, method: str, objects: dict[str, Body], shown: list[Body], sent: Body
    ) -> tuple[int, Any]:
        if method == "GET":
            return 200, _page(shown)
        self.made += 1
        live_id = str(self.made)
        objects[live_id] = {
            **sent,
            "id": live_id if objects is self.functions else self.made,
            "created_at": f"2026-01-01T00:00:{self.made:02}Z",
            "uuid": f"0190a1b2-0000-7000-8000-{self.made:012}",
        }
        return 201, objects[live_id]


def _defaults() -> Body:
    properties = SCHEMA["properties"]
    return {name: node["default"] for name, node in properties.items() if "default" in node}


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
