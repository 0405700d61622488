"""Renaming a key: every mention changes, nothing else does, and odd places are refused."""

from __future__ import annotations

import pytest

from reconciler.commands.mv import renamed
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.files.yaml_loader import parse
from reconciler.model.values import Address

WEB = Address("project", "web")


def edited(text: str, key: str = "shop") -> str | None:
    document = parse(text.encode(), "f.yaml", DiagnosticCollector())
    return renamed(document, WEB, Address("project", key))


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
            "batch_exports:\n  a:\n    overrides: {x: {project: shop}, 'y': {project: w}}\n",
        ),
        ("? projects\n: ? web\n  : {name: W}\n", "? projects\n: ? shop\n  : {name: W}\n"),
    ],
)
def test_mentions_change_and_the_rest_stays(before: str, after: str) -> None:
    assert edited(before) == after


@pytest.mark.parametrize("text", ["projects: {shop2: {name: web}}\n", "", "# web\n"])
def test_a_file_without_a_mention_is_not_edited(text: str) -> None:
    assert edited(text) is None


def test_a_key_that_is_not_text_in_plain_style_is_quoted() -> None:
    for key in ("no", "1e3", "12", "null"):
        after = edited("projects:\n  web: {name: W}\n", key)
        assert after == f"projects:\n  '{key}': {{name: W}}\n"


@pytest.mark.parametrize(
    "text",
    [
        'projects:\n  "w\\x65b": {name: W}\n',
        "batch_exports:\n  a: &a {project: web}\n  b: {<<: *a, name: B}\n",
        "batch_exports:\n  a: {project: &p  web}\n  b: {project: *p}\n",
    ],
)
def test_a_place_that_cannot_be_edited_safely_is_reported(text: str) -> None:
    with pytest.raises(ReconcilerError) as refused:
        edited(text)
    assert refused.value.message.startswith("f.yaml:2:")
    assert "nothing was written" in refused.value.message
