"""The checks of `doctor` about the API key: what it may do, and what it sees."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from reconciler.client import Transport
from reconciler.commands.session import Session
from reconciler.errors import Forbidden, ReconcilerError, Unauthorized
from reconciler.kinds import all_kinds
from reconciler.model.health import Check
from reconciler.model.kind import Dialect
from reconciler.model.text import listed, printable, quoted
from reconciler.reading.access import (
    ALL,
    KeyAccess,
    dialect_of_key,
    missing_scopes,
    read_key,
    read_organizations,
    read_scope,
    read_visible,
    write_scope,
)

_MOST = 5
_NEW_KEY = "create a personal API key in the settings of the service"


async def access_checks(session: Session, *, is_workspace: bool) -> list[Check]:
    """Return the checks of the key, its scopes and limits, and what it sees.

    Without a workspace, the scopes for resources of every kind are checked.
    """
    try:
        async with session.connected() as transport:
            return await _Access(session, transport, is_workspace).checks()
    except ReconcilerError as error:
        return [_failure("key", error)]


class _Access(Struct, frozen=True):
    session: Session
    transport: Transport
    is_workspace: bool

    @property
    def _organization(self) -> str:
        return self.session.loaded.reachable().organization

    async def checks(self) -> list[Check]:
        """Return the checks. Raises SecretUnavailable if the key can't be resolved."""
        try:
            key = await read_key(self.transport)
        except Unauthorized as error:
            return [Check.failed("key", error.message, f"{_NEW_KEY}, and set it here")]
        except ReconcilerError as error:
            return [_failure("key", error)]
        checks = list(self._about_key(key))
        checks.append(await self._organizations())
        checks += await self._visible(key)
        return checks

    def _about_key(self, key: KeyAccess | None) -> Iterator[Check]:
        if key is None:
            yield Check.warning(
                "key", "accepted; its scopes and limits are unknown: the server does not show them"
            )
            return
        scopes = "all scopes" if ALL in key.scopes else ", ".join(key.scopes) or "no scopes"
        yield Check.fine("key", f"{quoted(printable(key.label))}: {printable(scopes)}")
        yield from self._scopes(key)
        yield from self._limits(key)

    def _scopes(self, key: KeyAccess) -> Iterator[Check]:
        """Yield whether the key has the least scopes that a plan and an apply need."""
        managed = {resource.address.kind for resource in self.session.loaded.desired.in_order()}
        kinds = [kind.name for kind in all_kinds()]
        to_plan = tuple(map(read_scope, kinds))
        to_apply = tuple(
            write_scope(kind) if kind in managed or not self.is_workspace else read_scope(kind)
            for kind in kinds
        )
        lacking = missing_scopes(key.scopes, to_plan)
        if lacking:
            fix = f"{_NEW_KEY} with these scopes"
            yield Check.failed("scopes to plan", f"missing: {', '.join(lacking)}", fix)
        else:
            yield Check.fine("scopes to plan", ", ".join(to_plan))
        lacking = missing_scopes(key.scopes, to_apply)
        if lacking:
            fix = "use another key to apply; to plan, a key that only reads is the right one"
            yield Check.warning("scopes to apply", f"missing: {', '.join(lacking)}", fix)
        else:
            yield Check.fine("scopes to apply", ", ".join(to_apply))

    def _limits(self, key: KeyAccess) -> Iterator[Check]:
        if key.organizations and self._organization not in key.organizations:
            yield Check.failed(
                "key limits",
                f"limited to other organizations: {_texts(key.organizations)}",
                f"{_NEW_KEY} for organization {printable(self._organization)}",
            )
        elif key.projects:
            yield Check.warning(
                "key limits",
                f"limited to projects {_texts(key.projects)}: lists of the organization are "
                "refused, so only objects with a configured id are found",
                f"{_NEW_KEY} without a limit to projects",
            )
        else:
            yield Check.fine("key limits", "none that concern this organization")

    async def _organizations(self) -> Check:
        name = "organizations"
        try:
            visible = await read_organizations(self.transport)
        except Forbidden:
            return Check.fine(name, "not shown to this key (scope organization:read)")
        except ReconcilerError as error:
            return _failure(name, error)
        names = [quoted(printable(text)) for text in visible.values()]
        text = f"visible: {listed(names, _MOST)}"
        if self._organization in visible:
            return Check.fine(name, text)
        return Check.failed(
            name,
            f"{printable(self._organization)} is not visible to the key; {text}",
            f"set `organization` to one of {_texts(tuple(visible))}",
        )

    async def _visible(self, key: KeyAccess | None) -> list[Check]:
        """Return how many objects of each kind are visible, and the dialect of the server."""
        checks = []
        dialect: Dialect | None = None
        for kind in all_kinds():
            name = kind.collection.replace("_", " ")
            try:
                visible = await read_visible(self.transport, kind, self._organization)
            except Forbidden as error:
                limited = key is not None and key.projects
                fix = "see `key limits`" if limited else "see `scopes to plan`"
                checks.append(Check.failed(name, error.message, fix))
                continue
            except ReconcilerError as error:
                checks.append(_failure(name, error))
                continue
            dialect = dialect or visible.dialect
            count = "some" if visible.count is None else f"{visible.count:,}"
            checks.append(Check.fine(name, f"{count} visible"))
        return [*checks, _dialect(dialect or await dialect_of_key(self.transport))]


def _dialect(dialect: Dialect | None) -> Check:
    if dialect is None:
        return Check.fine("dialect", "unknown until the organization has an export")
    return Check.fine("dialect", str(dialect))


def _texts(values: tuple[str, ...]) -> str:
    return listed([printable(value) for value in values], _MOST)


def _failure(name: str, error: ReconcilerError) -> Check:
    return Check.failed(name, error.message, error.hint or "")
