"""The public JSON of projects."""

from __future__ import annotations

from typing import Any, Final

from reconciler.model.codec.base import AddressText, Count, Form, copied
from reconciler.model.codec.text import json_text
from reconciler.model.project_report import ProjectDetails, ProjectLine, ProjectReport

PROJECTS_VERSION: Final = 1


class ProjectLineForm(Form, frozen=True, kw_only=True):
    """A live project."""

    address: AddressText
    id: str
    """Its id."""
    name: str
    """Its live name."""
    managed: bool
    """Whether a resource of the configuration claims it."""
    timezone: str | None
    """Its time zone, null if unknown."""
    exports: Count
    """Batch exports in it."""

    @classmethod
    def of(cls, line: ProjectLine) -> ProjectLineForm:
        """Return the form of a project."""
        return copied(cls, line, address=str(line.address), exports=line.children)


class ProjectReportForm(Form, frozen=True, kw_only=True):
    """The projects of an organization, as `projects list --format json` prints them."""

    format_version: int = PROJECTS_VERSION
    """Version of this format."""
    environment: str
    """Name of the environment."""
    base_url: str
    """Base URL of the service."""
    organization: str
    """Id of the organization."""
    projects: tuple[ProjectLineForm, ...]
    """The projects."""
    missing: tuple[AddressText, ...]
    """Resources that do not exist yet."""


class ProjectDetailsForm(Form, frozen=True, kw_only=True):
    """What an operation of a project returned."""

    format_version: int = PROJECTS_VERSION
    """Version of this format."""
    address: AddressText
    id: str
    """Its id."""
    name: str
    """Its live name."""
    page: str | None
    """Address of its settings on the service, null if unknown."""
    fields: dict[str, Any]
    """The answer of the service, by the names of the API. Secrets are masked."""


def projects_as_json(report: ProjectReport) -> str:
    """Return projects as JSON."""
    lines = tuple(map(ProjectLineForm.of, report.projects))
    missing = tuple(map(str, report.missing))
    return json_text(
        copied(
            ProjectReportForm,
            report,
            format_version=PROJECTS_VERSION,
            projects=lines,
            missing=missing,
        )
    )


def project_as_json(details: ProjectDetails) -> str:
    """Return the answer of an operation as JSON."""
    return json_text(
        copied(
            ProjectDetailsForm,
            details,
            format_version=PROJECTS_VERSION,
            address=str(details.address),
            fields=dict(details.fields),
        )
    )
