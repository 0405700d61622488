"""What `show` prints: a resolved resource as YAML, and the runs of an audit log.

The YAML has the origin of each line as a comment. Loading it gives the same resource, except for
literal secrets.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from reconciler.exit_codes import ExitCode
from reconciler.model.decoding import Audit, Ending, LoggedChange, LoggedRun
from reconciler.model.plan import Plan
from reconciler.model.resource import (
    PublicField,
    PublicOrigin,
    PublicParent,
    PublicReference,
    PublicResource,
)
from reconciler.model.run import BackfillPlan
from reconciler.model.text import printable, several, shortened
from reconciler.model.times import time_as_shown
from reconciler.model.values import JSON, UNSET, Path, escaped_text, map_leaves
from reconciler.render.diagnostics import place_as_text
from reconciler.render.document import Cell, Column, Document, Facts, Lines, Row, Table
from reconciler.render.options import Colour, RenderOptions
from reconciler.render.plan_document import environment_as_text
from reconciler.render.plan_entries import SIGNS, summary, title

_WIDEST = 56
_LONGEST = 60
_INDENT = "  "
_PLAIN = re.compile(r"[^\W\d](?:[\w ./+-]*[\w/+-])?")
_REFERENCE = re.compile(r"[\w./+-]*(?:\$\{[\w:./+-]*\}[\w./+-]*)+")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
_COLOURS = {
    Ending.DONE: Colour.GREEN,
    Ending.ADOPTED: Colour.GREEN,
    Ending.FAILED: Colour.RED,
    Ending.STALE: Colour.RED,
    Ending.UNKNOWN: Colour.BOLD_RED,
}
_COLUMNS = Column("ending"), Column("change", padded=False)
_UNKNOWN = "The outcome of {} is unknown. `reconciler plan` shows what is left to do."
_BACKFILLS = "Look at the backfills and runs before you start a backfill again."


def resolved_document(resource: PublicResource, _: RenderOptions) -> Document:
    """Return YAML with one line for each field and its origin as a comment."""
    lines = [*((f"# {line}", "") for line in _head(resource)), (f"{resource.collection}:", "")]
    lines.append((f"{_INDENT}{scalar(resource.address.key)}:", ""))
    previous: Path = ()
    for field in resource.fields:
        lines += _parents(field.path, previous)
        value = UNSET if field.unset else yaml_line(field.value, escape=not field.secret)
        indent = _INDENT * (len(field.path) + 1)
        lines.append((f"{indent}{scalar(str(field.path[-1]))}: {value}", _comment(field)))
        previous = field.path
    width = max((len(text) for text, origin in lines if origin and len(text) <= _WIDEST), default=0)
    shown = (f"{text:{width}}  # {origin}" if origin else text for text, origin in lines)
    heading = Cell(str(resource.address), code=True), Cell(f"in {resource.environment}")
    return Document(heading, (), (Lines(tuple(shown), language="yaml"),))


def _head(resource: PublicResource) -> Iterator[str]:
    yield printable(f"{resource.address} in environment {resource.environment}")
    yield f"defined at {place_as_text(resource.declared)}"
    yield f"environments: {', '.join(resource.environments)}"
    if resource.in_organization:
        yield "belongs to the organization"
    elif resource.parent is not None:
        yield f"belongs to {_parent(resource.parent)}"


def _parent(parent: PublicParent) -> str:
    if parent.address is not None:
        place = (
            f", defined at {place_as_text(parent.declared)}" if parent.declared is not None else ""
        )
        return printable(f'{parent.address} "{parent.name}"{place}')
    identity = f'named "{parent.name}"' if parent.id is None else f"with id {parent.id}"
    return printable(f"the live object {identity}, which is not in the configuration")


def _parents(path: Path, previous: Path) -> Iterator[tuple[str, str]]:
    """Yield a line for each key above a field that is not above the previous field."""
    for depth in range(1, len(path)):
        if path[:depth] != previous[:depth]:
            yield f"{_INDENT * (depth + 1)}{scalar(str(path[depth - 1]))}:", ""


def _comment(field: PublicField) -> str:
    parts = [_origin_text(field.origin)]
    references = [reference.reference for reference in field.references]
    if field.written is not None and field.written not in references:
        parts.append(f"written as {_short(field.written)}")
    parts += [_reference(reference) for reference in field.references]
    parts += [
        f"overrides {_short(override.written)} ({_origin_text(override.origin)})"
        for override in field.overrides
    ]
    return "; ".join(parts)


def _reference(reference: PublicReference) -> str:
    text, origin = printable(reference.reference), reference.origin
    if origin.file is not None:
        layer = "" if origin.layer == "file" else f" {origin.layer}"
        return f"{text} from {_place(origin)}{layer}"
    if origin.layer == "default":
        return f"{text} from its default (not set)"
    layer = "the environment" if origin.layer == "environment" else printable(origin.layer)
    return f"{text} from {layer}"


def _origin_text(origin: PublicOrigin) -> str:
    return f"{_place(origin)} {printable(origin.layer)}".lstrip()


def _place(origin: PublicOrigin) -> str:
    return printable(f"{origin.file}:{origin.line}") if origin.file is not None else ""


def _short(value: JSON) -> str:
    text = value if isinstance(value, str) else yaml_line(value)
    return shortened(printable(text), _LONGEST)


def scalar(text: str) -> str:
    """Return text as a scalar: plain where every YAML parser reads it as this text."""
    plain = _PLAIN.fullmatch(text) or _REFERENCE.fullmatch(text)
    safe = plain and text.lower() not in _WORDS and printable(text) == text
    return text if safe else _quoted(text)


def yaml_line(value: JSON, *, escape: bool = False) -> str:
    """Return text as a scalar, other values in flow style.

    With `escape` no text in it is read as a reference.
    """
    if escape:
        value = map_leaves(
            value, lambda leaf: escaped_text(leaf) if isinstance(leaf, str) else leaf
        )
    return scalar(value) if isinstance(value, str) else _flow(value)


def _flow(value: JSON) -> str:
    """Return a value in flow style, text quoted unless it is plain."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    if isinstance(value, Mapping):
        items = (f"{_quoted(str(name))}: {_flow(item)}" for name, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, str):
        return scalar(value) if _PLAIN.fullmatch(value) else _quoted(value)
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _number(value: float) -> str:
    """Return a number without an exponent, which YAML 1.1 and 1.2 parse differently."""
    text = repr(value)
    return f"{value:.20f}".rstrip("0") if "e" in text else text


def _quoted(text: str) -> str:
    return printable(json.dumps(text, ensure_ascii=False))


def audit_document(audit: Audit, _: RenderOptions) -> Document:
    """Return a line for each run if there are several, and one run in full."""
    shown = audit.shown
    runs = [
        f"{time_as_shown(run.started_at)}  {run.started_by.id}  {_who(run)}: {_counts(run)}; "
        f"{_end(run)}"
        for run in audit.runs
    ]
    unknown = sum(logged.ending is Ending.UNKNOWN for logged in shown.changes)
    advice = _UNKNOWN.format(several(unknown, "change")) if unknown else ""
    if isinstance(shown.plan, BackfillPlan) and shown.exit_code != ExitCode.FINE:
        advice = _BACKFILLS
    return Document(
        (Cell(f"Run {shown.started_by.id}"),),
        (),
        (
            Lines(tuple(runs) if len(runs) > 1 else ()),
            Facts(tuple(_facts(shown)), indent=0),
            Table(_COLUMNS, tuple(map(_change, shown.changes)), headed=False, noun="change"),
            Lines((advice,) if advice else ()),
        ),
    )


def _facts(run: LoggedRun) -> Iterator[tuple[str, Cell]]:
    source, plan = run.plan.source, run.plan
    if isinstance(plan, Plan):
        contents = summary(plan).removeprefix("Plan: ")
    else:
        contents = f"{several(len(plan.backfills), 'backfill')}, {several(plan.runs, 'run')}."
    facts = {
        "Run": f"{run.started_by.id}, reconciler {run.started_by.tool_version}",
        "Started by": _who(run),
        "Job": run.started_by.job_url,
        "Reason": run.started_by.reason,
        "Time": " to ".join(map(time_as_shown, (run.started_at, run.last_event_at))),
        "Environment": environment_as_text(source, full=True),
        "Commit": source.head,
        "Plan": f"{run.plan_id[:8]} · {contents}",
        "End": _end(run),
    }
    yield from ((name, Cell(text)) for name, text in facts.items() if text is not None)


def _who(run: LoggedRun) -> str:
    machine = f"{run.started_by.user or 'an unknown user'} on {run.started_by.host}"
    return f"{run.started_by.actor} ({machine})" if run.started_by.actor is not None else machine


def _end(run: LoggedRun) -> str:
    """Return how a run ended."""
    if run.exit_code is None:
        return "no end is recorded: it was killed, or it is still running"
    if isinstance(run.plan, BackfillPlan):
        return f"exit code {run.exit_code}"
    verified = {True: "verified", False: "verification failed", None: "not verified"}
    return f"exit code {run.exit_code}, {verified[run.verified]}"


def _counts(run: LoggedRun) -> str:
    if isinstance(run.plan, BackfillPlan):
        return several(len(run.plan.backfills), "backfill")
    counts = Counter(logged.ending for logged in run.changes)
    parts = [f"{counts[ending]} {ending}" for ending in Ending if counts[ending]]
    return ", ".join(parts) or "no changes"


def _change(logged: LoggedChange) -> Row:
    change = logged.change
    text = f"{change.action} {title(change)}"
    text += f" (id {logged.live_id})" if logged.live_id is not None else ""
    text += f": {logged.detail}" if logged.detail else ""
    ending = Cell(logged.ending.value, _COLOURS.get(logged.ending))
    return Row((ending, Cell(text)), SIGNS[change.action].text)
