"""Authentication and permission: what a call reaches, checked before it counts against a limit.

Order of checks: key, scope, limits of the key, membership (service.md, 5).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from reconciler.emulator.answers import uuid_in
from reconciler.emulator.refusal import (
    Refusal,
    forbidden,
    not_authenticated,
    not_found,
    server_error,
    unknown_key,
)
from reconciler.emulator.store import Store, StoredExport, StoredProject

INTERNAL = "INTERNAL"
"""A scope that no issued key has (service.md, 11).

Here `*` does not include it. Whether it does in the real service is not known.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """A key, its user and its limits. An empty limit means none.

    `admin` may change every setting of a project. `current_project` is False for a user without
    one, for whom unpause answers 401 (service.md, 1.7). `record` is the key as it is stored.
    """

    record: dict[str, Any]
    organizations: tuple[str, ...]
    scopes: frozenset[str]
    only_organizations: frozenset[str]
    only_projects: frozenset[int]
    admin: bool = True
    current_project: bool = True

    @property
    def user(self) -> int:
        """Return the id of the key's user."""
        return int(self.record.get("user", 1))

    @property
    def level(self) -> int:
        """Return the membership level of the key's user: 1 member, 8 admin, 15 owner."""
        return {"member": 1, "admin": 8}.get(self.record.get("role", "owner"), 15)

    def need(self, scope: str) -> None:
        """Raise Refusal (403) unless the key has the scope; write includes read."""
        name, _, level = scope.partition(":")
        enough = {"*", scope} | ({f"{name}:write"} if level == "read" else set())
        enough -= {"*"} if scope == INTERNAL else set()
        if not enough & self.scopes:
            raise forbidden(f"API key missing required scope '{scope}'")

    def need_project(self, project: StoredProject) -> None:
        """Raise Refusal (403) if a limit of the key excludes the project."""
        outside = self.only_projects and project.id not in self.only_projects
        if outside or not self.reaches(project.organization):
            raise forbidden(
                f"API key does not have access to the requested project: ID {project.id}."
            )

    def need_organization(self, organization: str, *, hidden: bool = False) -> None:
        """Raise Refusal if a limit of the key excludes the organization.

        403; an organization outside the limits of the key is 404 if `hidden`.
        """
        if self.only_projects:
            raise forbidden(
                "API keys with scoped projects are only supported on project-based endpoints."
            )
        if not self.reaches(organization):
            if hidden:
                raise not_found()
            raise forbidden(
                f"API key does not have access to the requested organization: ID {organization}."
            )

    def reaches(self, organization: str) -> bool:
        """Return whether the limits of the key allow the organization."""
        return not self.only_organizations or organization in self.only_organizations


@dataclass(frozen=True, slots=True)
class Call:
    """A permitted request: who calls, and the place that the path names.

    `organization` is set below `/api/organizations/…/`, `project` below `/api/projects/…/` and
    `/api/environments/…/`.
    """

    request: Request
    caller: Caller
    organization: str | None = None
    project: StoredProject | None = None


Handler: TypeAlias = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path.

    scope
        What the key must have; None for an operation that any key may call.
    with_key
        False for an operation without a declared scope: it serves sessions and refuses keys.
    on_project
        Whether `{id}` in the path is a project. A key that is limited to projects may call it
        below an organization, too (service.md, 4.3).
    hides_organization
        Whether an organization outside the key's limits is 404, not 403 (service.md, 12).
    """

    handler: Handler
    scope: str | None = None
    with_key: bool = True
    on_project: bool = False
    hides_organization: bool = False


def caller_of(request: Request, store: Store) -> Caller:
    """Return the caller. The header must be exactly `Bearer <key>`, case included.

    Raise Refusal (401).
    """
    header = request.headers.get("authorization", "")
    word, _, value = header.partition(" ")
    if word != "Bearer" or not value or " " in value:
        raise not_authenticated()
    key = store.key(value)
    if key is None:
        raise unknown_key()
    return Caller(
        record=key,
        organizations=tuple(key.get("member_of", ())) or tuple(store.organizations()),
        scopes=frozenset(key.get("scopes", ())),
        only_organizations=frozenset(key.get("organizations", ())),
        only_projects=frozenset(key.get("projects", ())),
        admin=key.get("role", "admin") != "member",
        current_project=key.get("current_project", True),
    )


def permitted(request: Request, operation: Operation, caller: Caller, store: Store) -> Call:
    """Return the call, if the key may make it. Raise Refusal (403 or 404)."""
    if not operation.with_key:
        raise forbidden("This action does not support personal API key access")
    if operation.scope is not None:
        caller.need(operation.scope)
    path = request.path_params
    if "organization" in path:
        organization = _organization(path["organization"], caller, store)
        if not (operation.on_project and caller.only_projects):
            caller.need_organization(organization, hidden=operation.hides_organization)
        return Call(request, caller, organization=organization)
    if "project" in path:
        project = project_of(path["project"], caller, store)
        caller.need_project(project)
        if project.organization not in caller.organizations:
            raise forbidden("You don't have access to the project.")
        return Call(request, caller, project=project)
    return Call(request, caller)


def _organization(identity: str, caller: Caller, store: Store) -> str:
    if identity == "@current":
        return caller.organizations[0]
    if identity not in caller.organizations or store.organization(identity) is None:
        raise not_found("Organization not found.")
    return identity


def project_of(identity: str, caller: Caller, store: Store) -> StoredProject:
    """Return the project of an id or of `@current`, whoever it belongs to. Raise Refusal (404)."""
    project = None
    if identity == "@current":
        projects = store.projects(caller.organizations[0], limit=1)
        project = projects[0] if projects else None
    elif identity.isascii() and identity.isdigit():
        project = store.project(int(identity))
    if project is None:
        raise not_found("Project not found.")
    return project


def project_in(call: Call) -> StoredProject:
    """Return the project that the path is below. Raise Refusal (404)."""
    if call.project is None:
        raise not_found()
    return call.project


def export_of(call: Call, store: Store) -> StoredExport:
    """Return the export that the path names. Raise Refusal (404)."""
    export = store.export(uuid_in(call.request, "id"))
    if export is None or not _reaches(call, export.project, store):
        raise not_found()
    return export


def export_of_list(call: Call, store: Store, *, any_uuid: bool) -> str:
    """Return the id of the export whose list the path names, or "" for one without a list.

    The lists of real servers take any UUID: those of unknown exports are empty, and those of
    deleted ones stay. They crash at what is no UUID (service.md, 2). Raise Refusal.
    """
    if not any_uuid:
        return export_of(call, store).id
    try:
        identity = uuid_in(call.request, "id")
    except Refusal:
        raise server_error() from None
    export = store.export(identity, deleted=True)
    return identity if export is not None and _reaches(call, export.project, store) else ""


def _reaches(call: Call, project: int, store: Store) -> bool:
    if call.project is not None:
        return call.project.id == project
    stored = store.project(project)
    return stored is not None and stored.organization == call.organization
