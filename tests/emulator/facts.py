"""Facts about the real servers as tests, with their section, dialects and rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.emulator import RunningEmulator

ALL = ("interface", "2025", "2026")
OLD = ("interface", "2025")
REAL = ("2025", "2026")
YEAR, NEWEST = ("2025",), ("2026",)

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

Row = tuple[dict[str, Any] | None, dict[str, Any], str | dict[str, Any]]
"""What there is (None: POST), what is sent, and the answer.

An answer is the fields that a success shows, or a status with the code, the field and the detail of
an error: `400 blank name: This field may not be blank.`
"""
POST: None = None
Table = Mapping[tuple[str, ...], Mapping[str, Any]]
"""Rows of facts, or one row, by dialects and by what the facts say."""
TABLES: dict[str, Table] = {}
"""Tables by the name of their test."""


def fact(
    section: str, text: str, *dialects: str, rules: tuple[int, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers a test as that of a fact, for all dialects by default."""

    def marked(function: Callable[..., None]) -> Callable[..., None]:
        assert function.__name__ not in FACTS
        FACTS[function.__name__] = Fact(section, text, dialects or ALL, rules)
        return function

    return marked


def facts(
    section: str, table: Table, *, rules: tuple[int, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that runs a test for each request of a table."""

    def marked(function: Callable[..., None]) -> Callable[..., None]:
        TABLES[function.__name__] = table
        return fact(section, function.__name__, rules=rules)(function)

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

    def answer(self, row: Row) -> None:
        """Send the request of a row and check the answer."""
        existing, sent, expected = row
        answers(
            self.post(**sent) if existing is None else self.patch(self.create(**existing), **sent),
            expected,
        )

    def patch(self, export: dict[str, Any], **fields: Any) -> Any:
        return self.call("PATCH", f"{self.project}{export['id']}/", fields)

    def get(self, export: dict[str, Any]) -> dict[str, Any]:
        answer = self.call("GET", f"{self.project}{export['id']}/")
        assert answer.status_code == 200, answer.text
        return answer.json()


def to(type_name: str, integration: Any = None, /, **config: Any) -> dict[str, Any]:
    """Return the fields of a destination in this type, with an integration if there is one."""
    named = {} if integration is None else {"integration": integration}
    return {"destination": {"type": type_name, "config": config, **named}}


def answers(answer: Any, expected: str | dict[str, Any]) -> None:
    """Check an answer against that of a row."""
    if isinstance(expected, dict):
        assert answer.status_code in (200, 201), answer.text
        body = answer.json()
        destination = body.get("destination") or {"config": {}}
        shown = {**body, **destination, **destination["config"]}
        assert {name: shown[name] for name in expected} == expected
        return
    head, _, detail = expected.partition(": ")
    status, *words = head.split()
    if not words:
        assert str(answer.status_code) == status, answer.text
        return
    found = refused(answer, int(status), words[0], words[1] if len(words) > 1 else None)
    begin = detail.removesuffix("...")
    assert found.startswith(begin) if begin != detail else detail in ("", found), found


def refused(answer: Any, status: int, code: str, attr: str | None = None) -> str:
    """Return the detail of an error, after checking its status, code and field."""
    body = answer.json()
    assert (answer.status_code, body["code"], body["attr"]) == (status, code, attr), body
    assert set(body) == {"type", "code", "detail", "attr"}
    return body["detail"]


def invalid(answer: Any, attr: str | None = None) -> str:
    """Return the detail of a 400 that is no special one."""
    return refused(answer, 400, "invalid_input", attr)
