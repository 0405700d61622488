"""Renaming a key: every mention changes, nothing else does, and odd places are refused."""

from __future__ import annotations

import pytest

from reconciler.commands.mv import renamed
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.files.yaml_loader import parse
from reconciler.model.values import Address

EXPORT = "batch_exports:\n  a: "


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("projects:\n  web: {name: web}  # web\n", "projects:\n  shop: {name: web}  # web\n"),
        ("projects: {'web': {name: W}}\n", "projects: {'shop': {name: W}}\n"),
        ('projects:\r\n  "web":\r\n    name: W', 'projects:\r\n  "shop":\r\n    name: W'),
        (
            f"{EXPORT}{{project: web}}\n  web: {{project: {{name: web}}}}\n",
            f"{EXPORT}{{project: shop}}\n  web: {{project: {{name: web}}}}\n",
        ),
        (
            f"{EXPORT}\n    overrides: {{x: {{project: 'web'}}, y: {{project: w}}}}\n",
            f"{EXPORT}\n    overrides: {{x: {{project: shop}}, 'y': {{project: w}}}}\n",
        ),
        ("? projects\n: ? web\n  : {name: W}\n", "? projects\n: ? shop\n  : {name: W}\n"),
        ("projects: {shop2: {name: web}}\n", None),
        ("", None),
        ('projects:\n  "w\\x65b": {name: W}\n', "f.yaml:2:"),
        (f"{EXPORT}&a {{project: web}}\n  b: {{<<: *a, name: B}}\n", "f.yaml:2:"),
        (f"{EXPORT}{{project: &p  web}}\n  b: {{project: *p}}\n", "f.yaml:2:"),
        *(("projects:\n  web: {}\n", f"projects:\n  '{key}': {{}}\n") for key in ("no", "12")),
    ],
)
def test_mentions_change_and_the_rest_stays_or_is_refused(before: str, after: str | None) -> None:
    key = after.split("'")[1] if after and after.endswith("': {}\n") else "shop"
    document = parse(before.encode(), "f.yaml", DiagnosticCollector())
    web, new = Address("project", "web"), Address("project", key)
    if after is None or not after.startswith("f.yaml:"):
        assert renamed(document, web, new) == after
        return
    with pytest.raises(ReconcilerError, match=f"^{after}.*nothing was written"):
        renamed(document, web, new)
