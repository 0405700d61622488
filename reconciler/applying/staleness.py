"""Find the fields of an object that were modified since a plan was made.

Only what the plan depends on counts: an export that ran, or a field that is not managed, makes no
change stale.
"""

from __future__ import annotations

from reconciler.model.change import Change
from reconciler.model.comparison import live_values, stamp_of
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Kind
from reconciler.model.redaction import Mask, redact_value
from reconciler.model.values import JSONObject
from reconciler.model.wording import printable


def modifications(kind: Kind, change: Change, body: JSONObject, *, mask: Mask) -> str:
    """Return `prefix: "a/" -> "b/"` for each modified field, empty if there is none."""
    if not change.seen:
        return ""
    live = live_values(kind, body) | stamp_of(kind, body)
    texts = []
    for path, value in sorted(change.seen.items()):
        before, after = (
            canonical_text(redact_value(item, mask)) for item in (value, live.get(path))
        )
        if before != after:
            texts.append(f"{path}: {before} -> {after}")
    return printable("; ".join(texts))
