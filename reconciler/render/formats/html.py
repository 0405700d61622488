"""HTML: a page of one file."""

from __future__ import annotations

from reconciler.render.formats.base import Format
from reconciler.render.plan_html import plan_as_html

FORMAT = Format("html", plan=plan_as_html)
