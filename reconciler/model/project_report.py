"""The projects of an organization, and what an operation of one project returns."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from reconciler.model.address import UNMANAGED_PREFIX, Address
from reconciler.model.values import JSON


class ProjectLine(Struct, frozen=True):
    """One live project. `children` is the number of live objects in it."""

    address: Address
    id: str
    name: str
    timezone: str | None
    children: int

    @property
    def managed(self) -> bool:
        """Whether a resource of the configuration claims it."""
        return not self.address.key.startswith(UNMANAGED_PREFIX)


class ProjectReport(Struct, frozen=True):
    """The live projects by address, and the resources without one."""

    environment: str
    base_url: str
    organization: str
    projects: tuple[ProjectLine, ...]
    missing: tuple[Address, ...] = ()


class ProjectDetails(Struct, frozen=True):
    """What an operation of a project returned, with secrets masked.

    `page` is the address of its settings on the service, None if unknown.
    """

    address: Address
    id: str
    name: str
    fields: Mapping[str, JSON]
    page: str | None = None
