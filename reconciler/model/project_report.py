"""The projects of an organization, and what an operation of one project returns."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.address import UNMANAGED_PREFIX, Address
from reconciler.model.public import Count, Public, derived
from reconciler.model.values import JSON


class ProjectLine(Public, frozen=True):
    """A live project."""

    address: Address
    id: str
    """Its id."""
    name: str
    """Its live name."""
    timezone: str | None
    """Its time zone, null if unknown."""
    exports: Count
    """Batch exports in it."""

    @derived
    def managed(self) -> bool:
        """Whether a resource of the configuration claims it."""
        return not self.address.key.startswith(UNMANAGED_PREFIX)


class ProjectReport(Public, frozen=True):
    """The projects of an organization, as `projects list --format json` prints them."""

    schema = "projects"
    version = 1

    environment: str
    """Name of the environment."""
    base_url: str
    """Base URL of the service."""
    organization: str
    """Id of the organization."""
    projects: tuple[ProjectLine, ...]
    """The projects."""
    missing: tuple[Address, ...] = ()
    """Resources that do not exist yet."""


class ProjectDetails(Public, frozen=True):
    """What an operation of a project returned."""

    schema = "project_details"
    version = 1

    address: Address
    id: str
    """Its id."""
    name: str
    """Its live name."""
    fields: Mapping[str, JSON]
    """The answer of the service, by the names of the API. Secrets are masked."""
    page: str | None = None
    """Address of its settings on the service, null if unknown."""
