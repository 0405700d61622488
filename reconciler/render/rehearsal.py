"""A rehearsal as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.rehearsal import Outcome, Problem, Rehearsal
from reconciler.model.wording import listed, printable, quoted, several
from reconciler.render.durations import estimate_as_text
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_MOST_LISTED = 5
_ENDS = {
    Outcome.REFUSED: "would be refused",
    Outcome.UNKNOWN: "would have an unknown outcome",
    Outcome.SKIPPED: "would be skipped",
    Outcome.INEXACT: "is not predicted: the copy does not represent this object",
}
_LIMITS = (
    "The copy does not know credentials, permissions and feature flags, and does not connect to "
    "destinations."
)


def rehearsal_as_text(rehearsal: Rehearsal, options: RenderOptions = DEFAULTS) -> str:
    """Return the problems, the end state, the calls and the result."""
    style = options.style
    place = (rehearsal.environment, rehearsal.base_url, f"organization {rehearsal.organization}")
    lines = [f"Environment {' · '.join(map(printable, place))}"]
    if rehearsal.refusals:
        lines += ["", *_violations(rehearsal, style)]
    elif not rehearsal.changes:
        lines.append("No changes. Live state matches the configuration; nothing to rehearse.")
    else:
        lines += [_copy(rehearsal), "", *_problems(rehearsal, style), *_summary(rehearsal, style)]
    return "\n".join(lines) + "\n"


def rehearsal_as_json(rehearsal: Rehearsal, _: RenderOptions = DEFAULTS) -> str:
    """Return the JSON of a rehearsal."""
    # The forms take 30 ms to import, which other results do not need.
    from reconciler.model.codec.rehearsal import rehearsal_as_json as encoded

    return encoded(rehearsal)


def _copy(rehearsal: Rehearsal) -> str:
    known = "" if rehearsal.dialect_known else " (assumed: the service does not show its own)"
    return f"Copy        embedded service, dialect {rehearsal.dialect}{known}"


def _violations(rehearsal: Rehearsal, style: Style) -> Iterator[str]:
    for refusal in rehearsal.refusals:
        place = f"{refusal.at}: " if refusal.at is not None else ""
        headline = f"{place}error: {printable(refusal.message)} [{refusal.rule}]"
        yield style.paint(Colour.BOLD_RED, headline)
        if refusal.allow is not None:
            yield f"  hint: {printable(refusal.allow)}"
    yield "Refused by policy; nothing was rehearsed."


def _problems(rehearsal: Rehearsal, style: Style) -> Iterator[str]:
    for problem in rehearsal.problems:
        yield from _problem(problem, style)
        yield ""


def _problem(problem: Problem, style: Style) -> Iterator[str]:
    place = f"{problem.at}: " if problem.at is not None else ""
    skipped = problem.outcome is Outcome.SKIPPED
    sign, colour = ("○", Colour.DIM) if skipped else ("✗", Colour.RED)
    title = f"{problem.action} of {problem.address} {quoted(problem.name)}"
    yield f"{style.paint(colour, sign)} {place}{title} {_ENDS[problem.outcome]}"
    yield from (f"    {printable(line)}" for line in problem.message.split("\n"))
    if problem.hint is not None:
        yield from (f"    hint: {printable(line)}" for line in problem.hint.split("\n"))


def _summary(rehearsal: Rehearsal, style: Style) -> Iterator[str]:
    if rehearsal.assumed:
        yield f"Assumed     {listed(rehearsal.assumed, _MOST_LISTED)} (not shown by live state)"
    yield f"End state   {_end_state(rehearsal)}"
    cost = estimate_as_text(
        rehearsal.calls,
        rehearsal.seconds,
        limit=rehearsal.limit,
        beyond_hour=rehearsal.beyond_hour,
    )
    yield f"Calls       {cost} ({several(rehearsal.writes, 'write')})"
    if rehearsal.kills is not None:
        yield from _kills(rehearsal, style)
    done = rehearsal.changes - len(rehearsal.problems)
    result = f"Rehearsal: {done} of {several(rehearsal.changes, 'change')} would be applied."
    yield style.paint(Colour.BOLD, result)
    yield style.paint(Colour.DIM, _LIMITS)


def _end_state(rehearsal: Rehearsal) -> str:
    if not rehearsal.left:
        return "matches the configuration; a second plan is empty"
    names = [f"{action} {address}" for address, action in rehearsal.left]
    count = several(len(names), "change")
    return f"{count} left in a second plan: {listed(names, _MOST_LISTED)}"


def _kills(rehearsal: Rehearsal, style: Style) -> Iterator[str]:
    kills = rehearsal.kills or ()
    wrong = [kill for kill in kills if kill.problem]
    result = f"{len(kills) - len(wrong)} with the same end state after a second run"
    yield f"Kills       {len(kills)} after {several(rehearsal.writes, 'write')}: {result}"
    for kill in wrong:
        where = f"after write {kill.number} ({printable(kill.write)})"
        yield f"  {style.paint(Colour.RED, '✗')} {where}: {printable(kill.problem)}"
