"""Who asks, and what the key may do (interface 5; service-facts, sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request

from reconciler.emulator.refusal import forbidden, not_authenticated, not_found, unknown_key
from reconciler.emulator.store import Store, StoredProject


@dataclass(frozen=True, slots=True)
class Caller:
    """A key and its limits. An empty limit means none.

    `admin` may change every setting of a project. `current_project` is False for a user without
    one, whom unpause answers 401 (service-facts 1.7).
    """

    organizations: tuple[str, ...]
    scopes: frozenset[str]
    only_organizations: frozenset[str]
    only_projects: frozenset[int]
    admin: bool = True
    current_project: bool = True

    def need(self, scope: str) -> None:
        """Raises Refusal (403) unless the key has the scope; write includes read."""
        name, _, level = scope.partition(":")
        enough = {"*", scope} | ({f"{name}:write"} if level == "read" else set())
        if not enough & self.scopes:
            raise forbidden(f"API key missing required scope '{scope}'")


def caller_of(request: Request, store: Store) -> Caller:
    """The caller of a request. The header must be exactly `Bearer <key>`, case included."""
    header = request.headers.get("authorization", "")
    word, _, value = header.partition(" ")
    if word != "Bearer" or not value or " " in value:
        raise not_authenticated()
    key = store.key(value)
    if key is None:
        raise unknown_key()
    return Caller(
        organizations=tuple(key.get("member_of", ())) or tuple(store.organizations()),
        scopes=frozenset(key.get("scopes", ())),
        only_organizations=frozenset(key.get("organizations", ())),
        only_projects=frozenset(key.get("projects", ())),
        admin=key.get("role", "admin") != "member",
        current_project=key.get("current_project", True),
    )


def organization_of(path: Mapping[str, str], caller: Caller, store: Store) -> str:
    """The organization in the path. Raises Refusal: 404 for unknown, 403 for out of limits."""
    identity = path["organization"]
    if identity == "@current":
        identity = caller.organizations[0]
    if store.organization(identity) is None or identity not in caller.organizations:
        raise not_found("Organization not found.")
    if caller.only_organizations and identity not in caller.only_organizations:
        raise forbidden("API key does not have access to the requested organization.")
    if caller.only_projects:
        raise forbidden("API key does not have access to the requested organization.")
    return identity


def project_of(identity: str, caller: Caller, store: Store) -> StoredProject:
    """The project in a project path. Raises Refusal."""
    if identity == "@current":
        found = store.projects(caller.organizations[0], limit=1)
        project = found[0] if found else None
    else:
        project = (
            store.project(int(identity)) if identity.isascii() and identity.isdigit() else None
        )
    if project is None:
        raise not_found("Project not found.")
    if project.organization not in caller.organizations:
        raise forbidden("You don't have access to the project.")
    if caller.only_projects and project.id not in caller.only_projects:
        raise forbidden("API key does not have access to the requested project.")
    if caller.only_organizations and project.organization not in caller.only_organizations:
        raise forbidden("API key does not have access to the requested project.")
    return project
