"""The public JSON of destination tests."""

from __future__ import annotations

from typing import Literal

from reconciler.model.codec.base import AddressText, Form, copied
from reconciler.model.codec.text import json_text
from reconciler.model.preflight import Preflight, PreflightReport, StepStatus

FORMAT_VERSION: Literal[1] = 1


class StepForm(Form, frozen=True, kw_only=True):
    """One step that the service ran."""

    name: str
    status: StepStatus
    message: str | None
    """As the service returns it."""


class PreflightForm(Form, frozen=True, kw_only=True):
    """The tests of one resource."""

    address: AddressText
    name: str
    failed: bool
    untested: str
    """Why the service ran nothing, empty if it did."""
    problems: tuple[str, ...]
    """What is wrong by the files and the policy."""
    steps: tuple[StepForm, ...]
    """Up to the first failure."""


class PreflightReportForm(Form, frozen=True, kw_only=True):
    """The tests of all resources."""

    format_version: Literal[1]
    environment: str
    failed: bool
    results: tuple[PreflightForm, ...]


def preflight_as_json(report: PreflightReport) -> str:
    """Return the JSON of a report."""
    return json_text(
        copied(
            PreflightReportForm,
            report,
            format_version=FORMAT_VERSION,
            results=tuple(map(_form, report.results)),
        )
    )


def _form(result: Preflight) -> PreflightForm:
    steps = tuple(copied(StepForm, step) for step in result.steps)
    return copied(PreflightForm, result, address=str(result.address), steps=steps)
