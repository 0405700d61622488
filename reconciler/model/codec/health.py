"""The public JSON of the checks of `doctor`."""

from __future__ import annotations

from typing import Literal

from reconciler.model.codec.base import Form, copied
from reconciler.model.codec.text import json_text
from reconciler.model.health import Health, HealthReport

FORMAT_VERSION: Literal[1] = 1


class CheckForm(Form, frozen=True, kw_only=True):
    """One check."""

    name: str
    health: Health
    result: str
    fix: str
    """What to do about it, empty for nothing."""


class HealthReportForm(Form, frozen=True, kw_only=True):
    """All checks, in the order in which they were made."""

    format_version: Literal[1]
    failed: bool
    """Whether any check failed."""
    checks: tuple[CheckForm, ...]


def health_as_json(report: HealthReport) -> str:
    """Return the JSON of a report."""
    checks = tuple(copied(CheckForm, check) for check in report.checks)
    return json_text(
        HealthReportForm(format_version=FORMAT_VERSION, failed=report.failed, checks=checks)
    )
