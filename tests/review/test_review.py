"""A reviewer sees one dangerous change among many harmless ones, in every format."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from reconciler.diagnostics import OfEnvironment
from reconciler.files.loading import LoadOptions, load
from reconciler.model.kind import Dialect
from reconciler.model.plan import Plan, Severity
from reconciler.planning.make import make_plan
from reconciler.planning.select import select
from reconciler.render import writer_of
from reconciler.render.options import DEFAULTS, RenderOptions, Style
from reconciler.render.plan_markdown import plan_as_markdown, plans_as_markdown
from reconciler.render.plan_text import plan_as_text, plans_as_text
from tests.review.dangers import DANGERS, NEW_PLACES
from tests.review.pull_requests import HARMLESS, NUMBERS, SECRETS, Danger, PullRequest, pull_request
from tests.review.seen import (
    CHROMIUM,
    SEEN,
    missing,
    of_annotations,
    of_markdown,
    of_page,
    of_text,
    seen,
    viewports,
)
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.limits import LONG
from tests.support.worlds import ENVIRON, KINDS, plan_context

_SEED = {"organizations": [{"id": "org", "name": "Acme"}], "keys": [{"value": "phx_key"}]}
_TURNS = (300, 60, 1, 60, 1)
_BY_COMMAND = ("host changed", "protection removed")


def _cases() -> Iterator[object]:
    """Yield the dangers with every number, in the short run those around 20 and one by turns."""
    for danger, turn in zip(DANGERS, cycle(_TURNS), strict=False):
        for number in NUMBERS if LONG else (20, 21, turn):
            yield pytest.param(danger, number, id=f"{danger.name}-{number} {danger.among}")


def _plan(change: PullRequest, folder: Path) -> Plan:
    before, after = (
        load(folder, environment=None, environ=ENVIRON, options=LoadOptions(drafts=files))
        for files in (change.before, change.after)
    )
    context = plan_context(None, before.desired, change.live, after.desired)
    return make_plan(select(after.desired, change.live, after.policy, KINDS, context=context))


def _unseen(danger: Danger, shown: dict[str, str]) -> dict[str, list[str]]:
    """Return what each text does not show of a danger, by the name of the text."""
    lacking = {name: missing(danger.shown, text) for name, text in shown.items()}
    return {name: values for name, values in lacking.items() if values}


@pytest.mark.parametrize(("danger", "number"), [*_cases()])
def test_a_reviewer_sees_one_danger_among_harmless_changes(
    danger: Danger, number: int, tmp_path: Path
) -> None:
    plan = _plan(pull_request(danger, danger.among, number, danger.dialect), tmp_path)
    assert plan.refusals == ()
    shown = seen(plan)
    if danger not in NEW_PLACES:
        del shown["sarif"]
    assert _unseen(danger, shown) == {}


_TWELVE = (
    "new export sends known secrets to a new host",
    "host changed",
    "host and type changed",
    "bucket replaced by a table on another host",
    "port changed",
    "endpoint changed",
    "address of events changed",
    "known secret sent to another known host",
    "host with a letter of another alphabet",
    "absent resource with another host becomes present",
    "known host as the user of another",
    "known host as the begin of a long one",
)
"""Dangers that one plan can have together."""


@pytest.mark.parametrize("among", ["moves", "updates", "creates", "paused", "projects"])
@pytest.mark.parametrize("many", [4, 5, 12])
def test_r9_twelve_dangers_are_in_the_first_lines_among_300_changes(
    many: int, among: str, tmp_path: Path
) -> None:
    first, *others = [danger for danger in DANGERS if danger.name in _TWELVE][:many]
    plan = _plan(pull_request(first, among, 300, Dialect.V2025, *others), tmp_path)
    harmless = _plan(pull_request(None, among, 1, Dialect.V2025), tmp_path)
    # The first and the tenth have one message.
    shown = [f"sink-{number}" for number in range(2, many + 1) if number != 10]
    shown += [danger.shown[0] for danger in (first, *others)]
    two = [OfEnvironment("staging", harmless), OfEnvironment("production", plan)]
    for width in (80, 100):
        options = RenderOptions(style=Style(width=width))
        for text in (plan_as_text(plan, options), plans_as_text(two, options)):
            assert missing(tuple(shown), "\n".join(text.splitlines()[:24])) == []
        assert len(plan_as_text(plan, options).splitlines()) <= 150
    for text in (plan_as_markdown(plan), plans_as_markdown(two)):
        assert missing(tuple(shown), html.unescape(text[:1_500]).replace("\\", "")) == []
    assert len(plan_as_markdown(plan)) <= 20_000


def test_a_reviewer_sees_the_danger_in_the_first_viewport(tmp_path: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    changes = (pull_request(danger, danger.among, 21, danger.dialect) for danger in DANGERS)
    pages = [writer_of("html", "plan")(_plan(change, tmp_path), DEFAULTS) for change in changes]
    shown = zip(DANGERS, viewports(pages), strict=True)
    lacking = {danger.name: missing(danger.shown, text) for danger, text in shown}
    assert {name: values for name, values in lacking.items() if values} == {}


@pytest.mark.parametrize("name", _BY_COMMAND)
def test_a_reviewer_sees_the_danger_in_what_the_command_prints(
    name: str, service_of: Callable[..., RunningEmulator], tmp_path: Path
) -> None:
    danger = next(danger for danger in DANGERS if danger.name == name)
    change = pull_request(danger, danger.among, 21, danger.dialect)
    service = service_of(_SEED, "--dialect", danger.dialect.value)
    environ = {**service.environ(), **dict.fromkeys(SECRETS, "a-value"), "COLUMNS": "80"}
    git = Git.init(tmp_path)
    write(tmp_path, change.before)
    git.commit("before")
    applied = reconciler("apply", "-C", tmp_path, "--auto-approve", environ=environ)
    assert applied.code == 0, applied.err
    git.run("switch", "--quiet", "-c", "feature")
    write(tmp_path, change.after)
    git.commit("after")
    shown = {}
    for output, of_format in SEEN.items():
        if output == "sarif":
            continue
        ran = reconciler("plan", "-C", tmp_path, "--format", output, environ=environ)
        assert ran.code == 0, ran.err
        shown[output] = of_format(ran.out)
    assert _unseen(danger, shown) == {}


@pytest.mark.parametrize(
    ("among", "dialect"),
    [
        (among, dialect)
        for among in HARMLESS
        for dialect in (Dialect.V2025, Dialect.V2026)
        # Exports of 2026 have integrations instead of secrets.
        if (among, dialect) != ("rotations", Dialect.V2026)
    ],
)
def test_harmless_changes_are_no_danger(among: str, dialect: Dialect, tmp_path: Path) -> None:
    plan = _plan(pull_request(None, among, 3, dialect), tmp_path)
    assert len(plan.effective) == 3
    assert plan.notes == plan.refusals == ()
    assert "New places" not in seen(plan)["text"]
    found = {item.severity for change in plan.effective for item in change.consequences}
    assert Severity.DANGER not in found


def test_what_is_further_down_is_not_seen() -> None:
    lines = [f"line-{number:02}" for number in range(40)]
    shown = of_text("\n".join(lines))
    assert [line for line in lines if line not in shown] == lines[24:28]
    assert missing(
        ("line-09", "line-10"), of_annotations("\n".join(map("::notice::{}".format, lines)))
    ) == ["line-10"]
    assert missing(
        ("inside", "summary"), of_page("<details><summary>summary</summary>inside</details>")
    ) == ["inside"]
    assert missing(("end",), of_markdown("x" * 1_998 + "end")) == ["end"]
