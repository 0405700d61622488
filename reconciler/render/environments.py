"""Plans and reports of several environments as one: a part for each, then a line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from reconciler.diagnostics import InvalidConfiguration, OfEnvironment
from reconciler.errors import ReconcilerError
from reconciler.model.plan import Plan, encode
from reconciler.model.public import Public, as_json
from reconciler.model.text import printable, several
from reconciler.render.diagnostics import PublicDiagnostic, public_diagnostic
from reconciler.render.document import Block, Cell, Document, Facts, Heading, Lines
from reconciler.render.options import DEFAULTS, Colour, RenderOptions
from reconciler.render.plan_document import top_of
from reconciler.render.plan_text import plan_as_text, top_blocks
from reconciler.render.words import counted


class PublicError(Public, frozen=True):
    """Why an environment has no result."""

    message: str
    """The error."""
    hint: str | None
    """The fix."""
    diagnostics: tuple[PublicDiagnostic, ...]
    """The problems of the files, if these are the error."""


class PublicResult(Public, frozen=True):
    """The result of an environment, or its error."""

    environment: str
    """Its name."""
    exit_code: int
    """The exit code of the command for it alone."""
    result: Any
    """As in the schema of the command; null if there is an error."""
    error: PublicError | None
    """Null if there is a result."""


class PublicResults(Public, frozen=True):
    """Results of several environments: `-e '*' --format json`."""

    version = 1
    schema = "environments"

    environments: tuple[PublicResult, ...]
    """One for each environment."""


def plans_as_text(plans: Sequence[OfEnvironment[Plan]], options: RenderOptions = DEFAULTS) -> str:
    """Return dangers and what is new of all, a part for each environment, then a line for each."""
    blocks = top_blocks(top_of(plans), options.style)
    parts = ["".join(f"{line}\n" for line in block) for block in blocks]
    parts += [_section(item, options) for item in plans]
    names = max(len(printable(item.environment)) for item in plans)
    lines = [f"{several(len(plans), 'environment')}:"]
    lines += [f"  {printable(item.environment):{names}}  {counts_of(item)}" for item in plans]
    return "\n".join([*parts, "\n".join(lines) + "\n"])


def results_as_json(results: Sequence[OfEnvironment[Any]], _: RenderOptions = DEFAULTS) -> str:
    """Return the public JSON of the results of several environments."""
    return as_json(
        PublicResults(
            tuple(
                PublicResult(
                    item.environment, int(item.exit_code), item.result, _public_error(item.error)
                )
                for item in results
            )
        )
    )


def counts_of(item: OfEnvironment[Plan]) -> str:
    """Return `2 to create, 1 to delete`, `no changes`, or that there is an error."""
    if item.result is None:
        return "error"
    refused = any(not refusal.after_merge for refusal in item.result.refusals)
    counts = ", ".join(counted(item.result).values()) or "no changes"
    return f"{counts}; refused by policy" if refused else counts


def _section(item: OfEnvironment[Plan], options: RenderOptions) -> str:
    if item.result is not None:
        return plan_as_text(item.result, replace(options, cost=item.cost), with_dangers=False)
    name = options.style.paint(Colour.DIM, "Environment ") + printable(item.environment)
    number = several(len(item.problems), "error") if len(item.problems) > 1 else "error"
    first = printable(next(iter(item.problems), ""))
    return f"{name}\n{options.style.paint(Colour.BOLD_RED, number)}: {first}\n"


def _public_error(error: ReconcilerError | None) -> PublicError | None:
    if error is None:
        return None
    diagnostics = error.diagnostics if isinstance(error, InvalidConfiguration) else ()
    return PublicError(error.message, error.hint, tuple(map(public_diagnostic, diagnostics)))


def plan_as_json(plan: Plan, _: RenderOptions = DEFAULTS) -> str:
    """Return a plan as public JSON."""
    return encode(plan).decode()


def reports_document(
    title: str, reports: Sequence[OfEnvironment[Any]], document_of: Callable[[Any], Document]
) -> Document:
    """Return the documents of all environments as one."""
    documents = {
        item.environment: document_of(item.result) for item in reports if item.result is not None
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
    return Document((Cell(f"{title} of {count}"),), (), (*parts, *end))


def _part(item: OfEnvironment[Any], document: Document | None) -> Iterator[Block]:
    if document is None:
        yield Heading((Cell(f"Environment {item.environment}"),))
        yield Lines(tuple(f"error: {problem}" for problem in item.problems), attached=True)
        return
    yield Heading(document.where)
    yield from document.blocks
    yield Lines(tuple(filter(None, (document.summary, *document.after))))
