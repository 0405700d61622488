"""What `import` writes for a live object, and why it leaves one out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.commands.import_choice import Adoption, ImportContext
from reconciler.commands.import_drafts import Drafting
from reconciler.commands.session import load
from reconciler.commands.workspace import Workspace
from reconciler.diagnostics import DiagnosticCollector
from reconciler.files.yaml_loader import parse
from reconciler.model.live import Live
from reconciler.model.resource import ParentRef
from reconciler.model.values import Address, value_at
from tests.support.cli import write
from tests.support.worlds import BY_NAME, live_export

EMPTY = parse(b"", "new.yaml", DiagnosticCollector())


def adopted(**body: Any) -> Adoption:
    live, address = live_export(**body), Address("batch_export", "lake")
    return Adoption(BY_NAME["batch_export"], live, address, ParentRef(id="1"), pinned=False)


@pytest.fixture
def drafting(tmp_path: Path) -> Drafting:
    context = ImportContext(Live({}), {}, frozenset(), "", mask=lambda text: text)
    write(tmp_path, {"reconciler.yaml": "version: 1\n"})
    workspace = Workspace(tmp_path, lenient=frozenset({"no-files"}))
    return Drafting(context, load(workspace), {})


def test_plan_v11_an_object_that_is_not_imported_has_one_cause(drafting: Drafting) -> None:
    config = {"bucket_name": "b", "region": "r", "prefix": ["no text"]}
    drafting.draft(adopted(destination={"type": "S3", "config": config}), EMPTY)
    assert drafting.edits == []
    (left,) = drafting.left
    assert left.why.startswith("destination.config.prefix: ")
    assert "missing field" not in left.why


def test_plan_v9_a_live_value_that_seems_misspelt_is_imported(drafting: Drafting) -> None:
    drafting.draft(adopted(interval="dayly", destination={"type": "NoOp", "config": {}}), EMPTY)
    ((_, edit),) = drafting.edits
    assert value_at(edit.value, ("interval",)) == "dayly"
    assert drafting.left == []
