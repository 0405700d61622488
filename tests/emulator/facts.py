"""Facts about the real servers as tests, with their section, dialects and rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.support.emulator import RunningEmulator

ALL = ("interface", "2025", "2026")
OLD = ("interface", "2025")
REAL = ("2025", "2026")

S3 = {"bucket_name": "b", "region": "r", "prefix": "p"}
KEYS = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "hidden"}


@dataclass(frozen=True)
class Fact:
    """A fact of service.md; `rules` are the numbers n of sections 15.n."""

    section: str
    text: str
    dialects: tuple[str, ...]
    rules: tuple[int, ...]


FACTS: dict[str, Fact] = {}
"""Facts by the name of their test."""


def fact(
    section: str, text: str, *dialects: str, rules: tuple[int, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a test as that of a fact, for all dialects by default."""

    def marked(function: Callable[..., None]) -> Callable[..., None]:
        assert function.__name__ not in FACTS
        FACTS[function.__name__] = Fact(section, text, dialects or ALL, rules)
        return function

    return marked


@dataclass
class Api:
    """Calls of the service in a dialect."""

    emulator: RunningEmulator
    dialect: str
    project: str = "/api/projects/1/batch_exports/"
    organization: str = "/api/organizations/4dc8564d-bd82-1065-2f40-97f7c50f67cf/"

    def call(self, method: str, path: str, body: Any = None, *, key: str = "phx_all") -> Any:
        return self.emulator.call(method, path, body, key=key)

    def body(self, **fields: Any) -> dict[str, Any]:
        """Return a valid body of a create in this dialect."""
        destination: dict[str, Any] = {"type": "S3", "config": {**S3, **KEYS}}
        if self.dialect == "2026":
            destination = {"type": "AwsS3", "config": dict(S3), "integration": 7}
        return {"name": "Lake", "interval": "hour", "destination": destination, **fields}

    def post(self, **fields: Any) -> Any:
        return self.call("POST", self.project, self.body(**fields))

    def create(self, **fields: Any) -> dict[str, Any]:
        answer = self.post(**fields)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def to(self, type_name: str, **config: Any) -> dict[str, Any]:
        return {"destination": {"type": type_name, "config": config}}

    def patch(self, export: dict[str, Any], **fields: Any) -> Any:
        return self.call("PATCH", f"{self.project}{export['id']}/", fields)

    def get(self, export: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("GET", f"{self.project}{export['id']}/")
        assert answer.status_code == 200, answer.text
        return answer.json()


def refused(answer: Any, status: int, code: str, attr: str | None = None) -> str:
    """Return the detail of an error, after checking its status, code and field."""
    body = answer.json()
    assert (answer.status_code, body["code"], body["attr"]) == (status, code, attr), body
    assert set(body) == {"type", "code", "detail", "attr"}
    return body["detail"]


def invalid(answer: Any, attr: str | None = None) -> str:
    """Return the detail of a 400 that is no special one."""
    return refused(answer, 400, "invalid_input", attr)
