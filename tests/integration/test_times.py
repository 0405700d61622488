"""Every time in reports of operations has its zone, or is in a column that says it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from reconciler.commands.backfill.planning import Span
from reconciler.commands.backfill.starting import backfill
from reconciler.commands.gaps import all_gaps_document, gaps, gaps_document
from reconciler.commands.logs import logs
from reconciler.commands.runs import runs
from reconciler.commands.status.report import status_document, statuses_document
from reconciler.commands.status.state import status
from reconciler.diagnostics import OfEnvironment
from reconciler.render.document import Document, Facts, Heading, Lines, Table
from reconciler.render.options import DEFAULTS
from reconciler.render.runs import backfills_document, logs_document, runs_document
from tests.support.simulated import Begin, Simulated

TIME = re.compile(r"\d\d:\d\d")
ZONED = re.compile(
    r"\d\d:\d\d(:\d\d)?(\.\d+)?( to (\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?)?(Z|[+-]\d\d:\d\d| UTC\b)"
)


def without_zone(text: str) -> bool:
    return TIME.search(ZONED.sub("", text)) is not None


def texts_of(document: Document) -> Iterator[tuple[str, str]]:
    """Yield every text of a document with the title of its column, "" outside of tables."""
    lines: list[Any] = [document.heading, document.where]
    for block in document.blocks:
        match block:
            case Table():
                for row in block.rows:
                    for column, cell in zip(block.columns, row.cells, strict=True):
                        yield column.title if block.headed else "", cell.text
                        yield from (("", bar.title) for bar in cell.strip)
                    yield from (("", text) for text in (*row.notes, *row.lines))
            case Facts():
                lines += [(cell,) for _, cell in block.pairs]
            case Lines():
                yield from (("", text) for text in block.lines)
            case Heading():
                lines.append(block.line)
    yield from (("", " ".join(cell.text for cell in line)) for line in lines)
    yield from (("", text) for text in (document.summary, *document.after))


def in_two(report: Any) -> tuple[OfEnvironment[Any], ...]:
    return OfEnvironment("a", report), OfEnvironment("b", report)


def documents(world: Simulated) -> Iterator[tuple[str, Document]]:
    states = world.run(status).report
    yield "status", status_document(states, DEFAULTS)
    yield "status -e '*'", statuses_document(in_two(states), DEFAULTS)
    every = world.run(runs).report
    yield "runs", runs_document(every, DEFAULTS)
    one = next(run for run in every.runs if run.finished_at is not None)
    detail = world.run(lambda it: runs(it, ["Lake"], run=one.id))
    yield "runs --run", runs_document(detail.report, DEFAULTS)
    yield "logs", logs_document(world.run(lambda it: logs(it, "Lake")), DEFAULTS)
    yield "logs --run", logs_document(world.run(lambda it: logs(it, "Lake", run=one.id)), DEFAULTS)
    missing = world.run(lambda it: gaps(it, first=timedelta(days=2))).report
    yield "gaps", gaps_document(missing, DEFAULTS)
    yield "gaps -e '*'", all_gaps_document(in_two(missing), DEFAULTS)
    wanted = Span("2026-10-20T12:20", "2026-10-20T14:20")
    planned = world.run(lambda it: backfill(it, ["Lake"], wanted, dry_run=True))
    yield "backfill", backfills_document(planned.plan, DEFAULTS)


def test_times_have_their_zone_in_reports(begin: Begin) -> None:
    world = begin("2026", auto_pause=False)
    lake = world.create()
    world.create("Late", start_at="2026-10-28T00:00:00Z")
    world.create("Over", end_at="2026-10-20T12:00:00Z")
    world.outcomes({"match": {"nth": 3}, "status": "Failed", "error": "Access denied."})
    world.advance(hours=6)
    world.call("POST", lake, "pause/", {})
    world.advance(hours=6)
    for command, document in documents(world):
        texts = list(texts_of(document))
        assert any(TIME.search(text) for _, text in texts), command
        wrong = [text for title, text in texts if "(UTC)" not in title and without_zone(text)]
        assert wrong == [], command
