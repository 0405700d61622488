"""The reports of several environments as one: a part for each, then a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from reconciler.model.planned import EnvironmentReport
from reconciler.model.public import as_json
from reconciler.model.text import plain_json, several
from reconciler.render.document import Block, Cell, Document, Facts, Heading, Lines
from reconciler.render.gaps import gaps_document
from reconciler.render.options import RenderOptions
from reconciler.render.plans import error_as_json
from reconciler.render.status import status_document
from reconciler.render.style import Colour


def statuses_document(reports: Sequence[EnvironmentReport], options: RenderOptions) -> Document:
    """Return the states of the exports of every environment."""
    return _document("Exports", reports, lambda report: status_document(report, options))


def all_gaps_document(reports: Sequence[EnvironmentReport], options: RenderOptions) -> Document:
    """Return the gaps of every environment."""
    return _document("Gaps", reports, lambda report: gaps_document(report, options))


def reports_as_json(reports: Sequence[EnvironmentReport], _: RenderOptions) -> str:
    """Return a list with an object for each environment: `report` or `error` is null."""
    content = [
        {
            "environment": item.environment,
            "exit_code": int(item.exit_code),
            "report": None if item.report is None else orjson.loads(as_json(item.report)),
            "error": error_as_json(item.error),
        }
        for item in reports
    ]
    return plain_json(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()) + "\n"


def _document(
    title: str, reports: Sequence[EnvironmentReport], document_of: Callable[[Any], Document]
) -> Document:
    documents = {
        item.environment: document_of(item.report) for item in reports if item.report is not None
    }
    parts = [block for item in reports for block in _part(item, documents.get(item.environment))]
    failed = Cell("error", Colour.RED)
    totals = tuple(
        (name, Cell(documents[name].summary) if name in documents else failed)
        for name in (item.environment for item in reports)
    )
    count = several(len(reports), "environment")
    failures = len(reports) - len(documents)
    heading = Heading((Cell(f"{count}, {failures} with an error" if failures else count),))
    end = heading, Facts(totals, attached=True)
    hint = ("hint: for a command above, select its environment: -e NAME",) * bool(documents)
    return Document((Cell(f"{title} of {count}"),), (), (*parts, *end), after=hint)


def _part(item: EnvironmentReport, document: Document | None) -> Iterator[Block]:
    if document is None:
        yield Heading((Cell(f"Environment {item.environment}"),))
        yield Lines(tuple(f"error: {problem}" for problem in item.problems), attached=True)
        return
    yield Heading(document.where)
    yield from document.blocks
    yield Lines(tuple(filter(None, (document.summary, *document.after))))
