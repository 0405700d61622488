"""What `import` writes for a live object, and why it leaves one out."""

from __future__ import annotations

from typing import Any

from reconciler.commands.import_choice import Adoption, ImportContext
from reconciler.commands.import_drafts import Drafting
from reconciler.model.live import Live
from reconciler.model.resource import ParentRef
from reconciler.model.values import Address, value_at
from tests.support.worlds import BY_NAME, live_export


def adopted(**body: Any) -> Adoption:
    live, address = live_export(**body), Address("batch_export", "lake")
    return Adoption(BY_NAME["batch_export"], live, address, ParentRef(id="1"), pinned=False)


def drafting() -> Drafting:
    context = ImportContext(Live({}), {}, frozenset(), "", mask=lambda text: text)
    return Drafting(context, {}, {})


def test_plan_v11_an_object_that_is_not_imported_has_one_cause() -> None:
    noting = drafting()
    config = {"bucket_name": "b", "region": "r", "prefix": ["no text"]}
    assert noting.draft(adopted(destination={"type": "S3", "config": config}), {}) is None
    (left,) = noting.left
    assert left.why.startswith("destination.config.prefix: ")
    assert "missing field" not in left.why


def test_plan_v9_a_live_value_that_seems_misspelt_is_imported() -> None:
    noting = drafting()
    draft = noting.draft(adopted(interval="dayly", destination={"type": "NoOp", "config": {}}), {})
    assert draft is not None
    assert value_at(draft.value, ("interval",)) == "dayly"
    assert noting.left == []
