"""Write reports as the commands do."""

from __future__ import annotations

from typing import Any

from reconciler.render import writer_of
from reconciler.render.options import DEFAULTS, RenderOptions


def written(result: str, output_format: str, report: Any, options: RenderOptions = DEFAULTS) -> str:
    """Return a report in a format."""
    return writer_of(output_format, result)(report, options)
