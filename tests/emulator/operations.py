"""Short ways to runs, backfills, logs, outcome rules and settings of one export."""

from __future__ import annotations

from typing import Any

from tests.emulator.facts import Api

Export = dict[str, Any]

START, END = "2026-10-01T00:00:00Z", "2026-10-01T03:00:00Z"
"""A range of three intervals of an hour."""


def of(api: Api, export: Export, rest: str = "") -> str:
    """The path of something inside an export."""
    return f"{api.project}{export['id']}/{rest}"


def get(api: Api, path: str) -> Any:
    answer = api.call("GET", path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def runs(api: Api, export: Export, query: str = "") -> list[dict[str, Any]]:
    """One page of runs."""
    page = get(api, of(api, export, f"runs/{query}"))
    assert set(page) == {"next", "previous", "results"}
    return page["results"]


def statuses(api: Api, export: Export, query: str = "") -> list[str]:
    """Statuses of runs by interval, the oldest first."""
    ordered = runs(api, export, f"?ordering=data_interval_start&start=-90d{query}")
    return [run["status"] for run in ordered]


def intervals(api: Api, export: Export, query: str = "?after=-90d") -> list[tuple[str, str]]:
    """Bounds of runs, the oldest first."""
    page = runs(api, export, query)
    return sorted((run["data_interval_start"], run["data_interval_end"]) for run in page)


def backfill_path(api: Api, export: Export) -> str:
    return of(api, export, "backfills/" if api.dialect == "2026" else "backfill/")


def backfill(api: Api, export: Export, start: str | None, end: str | None) -> Any:
    """Begin a backfill; the answer with its status."""
    sent = {"start_at": start, "end_at": end}
    return api.call("POST", backfill_path(api, export), sent)


def begun(api: Api, export: Export, start: str | None = START, end: str | None = END) -> Any:
    """Begin a backfill that is not refused; its answer."""
    answer = backfill(api, export, start, end)
    assert answer.status_code == (201 if api.dialect == "2026" else 200), answer.text
    return answer.json()


def backfills(api: Api, export: Export) -> list[dict[str, Any]]:
    return get(api, of(api, export, "backfills/"))["results"]


def messages(api: Api, export: Export, query: str = "") -> list[str]:
    """Messages of the export's logs, newest first."""
    lines = get(api, of(api, export, f"logs/{query}"))["results"]
    return [line["message"] for line in lines]


def settings(api: Api, **values: Any) -> dict[str, Any]:
    return api.emulator.admin("PUT", "settings", values)


def outcomes(api: Api, *rules: dict[str, Any]) -> None:
    api.emulator.admin("PUT", "outcomes", list(rules))


def set_clock(api: Api, moment: str) -> None:
    api.emulator.admin("POST", "clock", {"set": moment})


def no_op(**fields: Any) -> dict[str, Any]:
    """Fields of an export without a destination."""
    return {"destination": {"type": "NoOp", "config": {}}, **fields}
