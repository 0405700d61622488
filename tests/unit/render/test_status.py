"""States of exports as text, Markdown, JSON and HTML."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from reconciler.commands.status.report import (
    ExportStatus,
    State,
    StatusNote,
    StatusReport,
    sparkline,
)
from reconciler.model.public import as_json
from reconciler.model.run import Run
from reconciler.model.values import Address
from reconciler.render.options import RenderOptions, Style
from tests.support.reports import written
from tests.unit.render.test_html import Page, assert_closed

NOW = datetime(2026, 6, 10, 12, 40, tzinfo=UTC)
HOSTILE = "</script><script>alert(1)</script>\"'&<img src=x onerror=alert(1)>\x1b[31m\u202e|`@all`"


def run(hour: int, status: str = "Completed", records: int | None = 10) -> Run:
    end = NOW.replace(hour=hour, minute=0)
    finished = end + timedelta(minutes=1) if status != "Running" else None
    records = records if status == "Completed" else None
    return Run("r", status, end - timedelta(hours=1), end, end, finished, records=records)


def export(key: str, state: State = State.OK, **fields: object) -> ExportStatus:
    address = Address("batch_export", key)
    facts: dict[str, object] = {"parent_name": "Shop", "managed": True, "interval": "hour"}
    return ExportStatus(address=address, name=key.title(), state=state, **{**facts, **fields})  # type: ignore[arg-type]


ORDERS = export(
    "orders",
    State.FAILING,
    failures=6,
    lag=timedelta(hours=6),
    rows_a_day=28_100_000.0,
    runs=(run(12, "Failed"), run(11, "Running"), run(10)),
    notes=(StatusNote("failing", "access denied to bucket acme-orders"),),
    page="https://eu.posthog.com/project/1/pipeline/batch-exports/e1",
)
SESSIONS = export(
    "sessions",
    State.PAUSED,
    lag=timedelta(days=3),
    paused_since=NOW - timedelta(days=3),
    notes=(StatusNote("missed-runs", "72 runs missed"),),
)


def report(*exports: ExportStatus) -> StatusReport:
    return StatusReport("production", "https://eu.posthog.com", "0188461e", NOW, exports)


def lines(*exports: ExportStatus, width: int = 140, **options: bool) -> list[str]:
    text = written("status", "text", report(*exports), RenderOptions(Style(width=width), **options))
    return text.splitlines()


def failing(key: str, error: str, **fields: object) -> ExportStatus:
    text = f"paused by the service after 3 failures: {error}"
    failed = export(key, State.FAILING, notes=(StatusNote("failing", text),), cause=error)
    return replace(failed, **fields)


def test_m7_exports_that_fail_with_one_error_show_it_once() -> None:
    refused = [failing(f"e{n}", f"no connection to dwh (attempt {n})") for n in range(3)]
    twins = [
        failing(f"id:{n}", "gone", name="Lake", managed=False, parent_name=f"P{n}") for n in "ab"
    ]
    shown = lines(*refused, failing("other", "bad key"), *twins)
    notes = [re.split(r" {3,}", line)[-1] for line in shown[3:9]]
    brief = "paused by the service after 3 failures"
    assert notes == [brief, brief, brief, f"{brief}: bad key", brief, brief]
    names = ", ".join(f"batch_export.e{n}" for n in range(3))
    assert shown[10:12] == [
        f"  3 exports  no connection to dwh (attempt 0) ({names})",
        '  2 exports  gone ("Lake" in Pa, "Lake" in Pb)',
    ]
    [first, *_] = json.loads(as_json(report(*refused)))["exports"]
    assert first["notes"][0]["message"] == f"{brief}: no connection to dwh (attempt 0)"
    assert "cause" not in first


def test_the_bars_show_rows_and_failures_the_oldest_first() -> None:
    newest = (run(12, records=8), run(11, "Failed"), run(10, "Running"))
    assert sparkline((*newest, run(9, records=4), run(8, records=7))) == "▇▅·×█"
    assert sparkline((run(12, records=0),)) == "▁"


def test_live_text_cannot_forge_lines_or_markup() -> None:
    hostile = replace(
        ORDERS,
        name=HOSTILE,
        parent_name=HOSTILE,
        managed=False,
        interval=HOSTILE,
        runs=(replace(ORDERS.runs[0], error=HOSTILE, status=HOSTILE),),
        notes=(StatusNote("failing", HOSTILE),),
        page="javascript:alert(1)",
    )
    text = "\n".join(lines(hostile, verbose=True))
    markdown = written("status", "markdown", report(hostile))
    page = written("status", "html", replace(report(hostile, SESSIONS), environment=HOSTILE))
    assert "<img" not in markdown
    assert len(markdown.splitlines()) == 13
    assert_closed(page)
    assert not Page(page).of("img")
    assert not Page(page).of("a")
    for shown in (text, markdown, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_markdown_links_to_pages_and_counts_what_does_not_fit() -> None:
    page = written("status", "markdown", report(ORDERS), RenderOptions(links=True))
    assert f"[`batch_export.orders`]({ORDERS.page})" in page
    many = written("status", "markdown", report(*(ORDERS for _ in range(1_000))))
    assert len(many) < 65_536
    assert re.search(r"\n… and [\d,]+ more exports\n\nhint:", many)


def test_the_page_has_every_export_with_a_strip_of_its_runs() -> None:
    html = written("status", "html", report(ORDERS, SESSIONS, export("fine", runs=(run(12),))))
    page = Page(html)
    assert [item["data-state"] for item in page.entries()] == ["failing", "paused", "ok"]
    labels = [item["aria-label"] for item in page.of("svg")]
    assert labels == ["3 latest runs, 1 failed", "1 latest runs, 0 failed"]
    assert_closed(html, links=(str(ORDERS.page),))
