"""HTML: a page of one file."""

from __future__ import annotations

from reconciler.render.formats.base import Format, Later

FORMAT = Format(
    "html",
    plan=Later("plan_html", "plan_as_html"),
    backfills=Later("backfills_html", "backfills_as_html"),
)
