"""Renaming a key: every mention changes, nothing else does, and odd places are refused."""

from __future__ import annotations

import pytest

from reconciler.authoring.renaming import Renaming, renamed
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.kinds import all_kinds
from reconciler.workspace.yaml.loader import parse

KINDS = all_kinds()
BY_NAME = {kind.name: kind for kind in KINDS}
PROJECT = Renaming(BY_NAME["project"], "web", "shop")


def edited(text: str, renaming: Renaming = PROJECT, file: str = "f.yaml") -> str | None:
    document = parse(text.encode(), file, DiagnosticCollector())
    after = renamed(document, renaming)
    return after.text if after is not None else None


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("projects:\n  web: {name: web}  # web\n", "projects:\n  shop: {name: web}  # web\n"),
        ("projects: {'web': {name: W}}\n", "projects: {'shop': {name: W}}\n"),
        ('projects:\r\n  "web":\r\n    name: W', 'projects:\r\n  "shop":\r\n    name: W'),
        (
            "batch_exports:\n  a: {project: web}\n  web: {project: {name: web}}\n",
            "batch_exports:\n  a: {project: shop}\n  web: {project: {name: web}}\n",
        ),
        (
            "batch_exports:\n  a:\n    overrides: {x: {project: 'web'}, y: {project: w}}\n",
            "batch_exports:\n  a:\n    overrides: {x: {project: 'shop'}, y: {project: w}}\n",
        ),
        (
            "batch_exports:\n  a: &a {project: web}\n  b: {<<: *a, name: B}\n",
            "batch_exports:\n  a: &a {project: shop}\n  b: {<<: *a, name: B}\n",
        ),
        (
            "batch_exports:\n  a: {project: &p  web}\n  b: {project: *p}\n",
            "batch_exports:\n  a: {project: &p  shop}\n  b: {project: *p}\n",
        ),
        ("? projects\n: ? web\n  : {name: W}\n", "? projects\n: ? shop\n  : {name: W}\n"),
    ],
)
def test_mentions_change_and_the_rest_stays(before: str, after: str) -> None:
    assert edited(before) == after


def test_defaults_and_scopes_of_every_policy_change() -> None:
    text = (
        "defaults: {batch_export: {project: web}, project: {timezone: web}}\n"
        "policy:\n  prune: {project.web: git, project: false}\n  ignore: [web]\n"
        "environments:\n  web:\n    policy:\n      prune:\n        'project.web': true # web\n"
    )
    after = text.replace("{project: web}", "{project: shop}").replace("project.web", "project.shop")
    assert edited(text, file="reconciler.yaml") == after


@pytest.mark.parametrize("text", ["projects: {shop2: {name: web}}\n", "", "# web\n"])
def test_a_file_without_a_mention_is_not_edited(text: str) -> None:
    assert edited(text) is None


def test_a_key_that_is_not_text_in_plain_style_is_quoted() -> None:
    for key in ("no", "1e3", "12", "null"):
        after = edited("projects:\n  web: {name: W}\n", Renaming(BY_NAME["project"], "web", key))
        assert after == f"projects:\n  '{key}': {{name: W}}\n"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("batch_exports:\n  a: {name: &n web, project: *n}\n", "f.yaml:2:"),
        ('projects:\n  "w\\x65b": {name: W}\n', "f.yaml:2:3"),
        ("batch_exports:\n  a:\n    project: >-\n      web\n", "f.yaml:3:14"),
    ],
)
def test_a_place_that_cannot_be_edited_safely_is_reported(text: str, place: str) -> None:
    with pytest.raises(ReconcilerError) as refused:
        edited(text)
    assert refused.value.message.startswith(place)
    assert "nothing was written" in refused.value.message


# Another name, with the old one in renamed_from

LAKE = Renaming(BY_NAME["batch_export"], "lake", "lake", "New: #1", "Old")
SHORT = "batch_exports:\n  lake:\n"
SHORT_DOS = SHORT.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"{SHORT}    name: Old # why\n    paused: true\n    # last\n  other: {{name: Old}}\n",
            (
                f"{SHORT}    name: 'New: #1' # why\n    paused: true\n"
                "    lifecycle:\n      renamed_from: [Old]\n    # last\n  other: {name: Old}\n"
            ),
        ),
        (
            f"{SHORT}    name: Old\n    secret_version: 1",
            (
                f"{SHORT}    name: 'New: #1'\n    lifecycle:\n      renamed_from: [Old]\n"
                "    secret_version: 1"
            ),
        ),
        (
            f"{SHORT}    name: 'Old'",
            f"{SHORT}    name: 'New: #1'\n    lifecycle:\n      renamed_from: [Old]\n",
        ),
        (
            f"{SHORT_DOS}    name: Old\r\n    lifecycle:\r\n      protect: true\r\n",
            (
                f"{SHORT_DOS}    name: 'New: #1'\r\n    lifecycle:\r\n      protect: true\r\n"
                "      renamed_from: [Old]\r\n"
            ),
        ),
        (
            f"{SHORT}    name: Old\n    lifecycle: {{protect: true}}\n",
            f"{SHORT}    name: 'New: #1'\n    lifecycle: {{protect: true, renamed_from: [Old]}}\n",
        ),
        (
            f"{SHORT}    name: Old\n    lifecycle: {{}}\n",
            f"{SHORT}    name: 'New: #1'\n    lifecycle: {{renamed_from: [Old]}}\n",
        ),
        (
            f"{SHORT}    name: Old\n    lifecycle: {{renamed_from: [Older]}}\n",
            f"{SHORT}    name: 'New: #1'\n    lifecycle: {{renamed_from: [Old, Older]}}\n",
        ),
        (
            f"{SHORT}    name: Old\n    lifecycle:\n      renamed_from:\n      - Older # x\n",
            (
                f"{SHORT}    name: 'New: #1'\n    lifecycle:\n      renamed_from:\n"
                "      - Old\n      - Older # x\n"
            ),
        ),
        (
            f"{SHORT}    name: Old\n    lifecycle:\n      renamed_from: []\n",
            f"{SHORT}    name: 'New: #1'\n    lifecycle:\n      renamed_from: [Old]\n",
        ),
        (
            "batch_exports: {lake: {name: Old, paused: true}}\n",
            (
                "batch_exports: {lake: {name: 'New: #1', paused: true, "
                "lifecycle: {renamed_from: [Old]}}}\n"
            ),
        ),
        (
            (
                f"{SHORT}    name: Old\n    lifecycle: &l\n      protect: true\n"
                "  b: {lifecycle: *l}\n"
            ),
            (
                f"{SHORT}    name: 'New: #1'\n    lifecycle: &l\n      protect: true\n"
                "      renamed_from: [Old]\n  b: {lifecycle: {protect: true}}\n"
            ),
        ),
    ],
)
def test_a_former_name_is_added_in_any_style(before: str, after: str) -> None:
    assert edited(before, LAKE) == after


@pytest.mark.parametrize(
    "text",
    [
        f"{SHORT}    name: >-\n      Old\n",
        "batch_exports:\n  a: &a {name: Old}\n  lake: *a\n",
    ],
)
def test_a_former_name_in_an_odd_layout_is_refused(text: str) -> None:
    with pytest.raises(ReconcilerError):
        edited(text, LAKE)


def test_references_in_a_former_name_stay_and_those_of_a_new_name_are_escaped() -> None:
    renaming = Renaming(BY_NAME["project"], "web", "web", "a ${b}", "${var:x} web")
    after = edited("projects:\n  web:\n    name: ${var:x} web\n", renaming)
    assert after is not None
    value = parse(after.encode(), "", DiagnosticCollector()).value
    assert value == {
        "projects": {
            "web": {"name": "a $${b}", "lifecycle": {"renamed_from": ["${var:x} web"]}},
        }
    }


def test_a_scope_that_exists_under_the_new_key_is_refused_with_its_place() -> None:
    text = "policy:\n  prune:\n    project.web: git\n    project.shop: true\n"
    with pytest.raises(ReconcilerError) as refused:
        edited(text, file="reconciler.yaml")
    assert refused.value.message.startswith("reconciler.yaml:4:5: ")
