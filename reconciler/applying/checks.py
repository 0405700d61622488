"""Compare live objects with the plan before a write, and with what was sent after it.

Only what the plan depends on counts: an export that ran, or a field that is not managed, makes no
change stale. Servers ignore unknown fields and overwrite some at creation (service.md, 1.1 and
4.1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from reconciler.applying.change_run import ChangeRun
from reconciler.applying.scopes import Listing, Scope, Scopes
from reconciler.errors import NotFound, StalePlan
from reconciler.kinds import all_kinds
from reconciler.model.comparison import field_leaves, is_equal, live_values, stamp_of
from reconciler.model.field_types import canonical_text
from reconciler.model.kind import Action, Kind
from reconciler.model.live import LiveObject
from reconciler.model.plan import Change
from reconciler.model.redaction import Mask, redact_value
from reconciler.model.request import Routes
from reconciler.model.text import listed, printable
from reconciler.model.values import JSON, MISSING, JSONObject, Path, path_text
from reconciler.reading import read_object

LONGEST_AGE = 30.0
"""Seconds after which an object to update, pause or delete is checked again before the write."""
_LONGEST_AGE_OF_REPLACED = 5.0
"""The same for the old object of a replacement, whose deletion no list before it covers."""
_HINT = "make a new plan and have it reviewed"


class Checks(Struct, frozen=True):
    """Checks of live objects. All raise StalePlan, or ServiceError if they can't be made.

    `inside` is `Plan.deleted_inside`.
    """

    scopes: Scopes
    mask: Mask
    inside: Mapping[str, Sequence[Change]]

    def is_recent(self, run: ChangeRun) -> bool:
        """Return whether the object to modify was read recently, or is known to be gone."""
        return run.gone or self.scopes.transport.clock() <= self.expiry(run)

    def expiry(self, run: ChangeRun) -> float:
        """Return until when the last look at the object to modify is recent enough."""
        replaces = run.change.action is Action.REPLACE
        return run.checked_at + (_LONGEST_AGE_OF_REPLACED if replaces else LONGEST_AGE)

    def unmodified_in(self, run: ChangeRun, routes: Routes, listing: Listing) -> None:
        """Check the object to modify or delete by a list, if it shows all that counts."""
        item = listing.by_id.get(run.change.live_id or "")
        if item is None:
            return
        leaves = field_leaves(routes.kind.fields, item.body, live=True)
        shown = {*(path_text(leaf.path) for leaf in leaves), *stamp_of(routes.kind, item.body)}
        hidden = set() if item.complete else (run.change.seen or {}).keys() - shown
        self.scopes.hidden[routes.kind.name] |= hidden
        if not hidden:
            self._check(routes.kind, run.change, item)
            run.checked_at = listing.at

    async def unmodified(self, run: ChangeRun, routes: Routes) -> None:
        """Check that the object to modify or delete is as the plan expects it."""
        change, now = run.change, self.scopes.transport.clock()
        try:
            live = await self.read(run, routes, change.live_id or "")
        except NotFound:
            if not _may_be_gone(run):
                raise StalePlan(
                    f"deleted since the plan was made (id {printable(str(change.live_id))})",
                    hint=_HINT,
                ) from None
            run.gone = True
            return
        run.checked_at = now
        if _may_be_gone(run) and routes.kind.is_deleted(live.body):
            run.gone = True
        else:
            self._check(routes.kind, change, live)

    async def inside_as_planned(self, run: ChangeRun, routes: Routes) -> None:
        """Check that a parent to delete contains what the plan knows, unmodified."""
        change, is_parent = run.change, run.change.action is Action.DELETE
        planned = {item.live_id: item for item in self.inside.get(change.id, ())}
        for kind in all_kinds():
            if not is_parent or kind.parent != change.address.kind:
                continue
            try:
                items = await self.scopes.items(Scope(kind.name, change.live_id))
            except NotFound:
                if await self.is_gone(run, routes):
                    continue
                raise
            if new := [item.name for item in items if item.id not in change.inside]:
                names = printable(listed(new, 5))
                raise StalePlan(f"created in it since the plan was made: {names}", hint=_HINT)
            for item in items:
                if item.id in planned:
                    self._check(kind, planned[item.id], item, f"{planned[item.id].address} was ")

    def _check(self, kind: Kind, change: Change, live: LiveObject, who: str = "") -> None:
        if modified := modifications(kind, change, live.body, mask=self.mask):
            raise StalePlan(f"{who}modified since the plan was made: {modified}", hint=_HINT)

    async def is_gone(self, run: ChangeRun, routes: Routes) -> bool:
        """Return whether the object to delete is deleted, or pending deletion."""
        try:
            live = await self.read(run, routes, run.change.live_id or "")
        except NotFound:
            return True
        return routes.kind.is_deleted(live.body)

    async def read(self, run: ChangeRun, routes: Routes, live_id: str) -> LiveObject:
        """Return an object in full. Raises ServiceError."""
        transport, change_id = self.scopes.transport, run.change.id
        return await read_object(transport, routes, live_id, change_id=change_id)


def _may_be_gone(run: ChangeRun) -> bool:
    """Return whether the change is fine with an object that does not exist any more."""
    change = run.change
    return change.action is Action.DELETE or (change.action is Action.REPLACE and bool(run.made))


def modifications(kind: Kind, change: Change, body: JSONObject, *, mask: Mask) -> str:
    """Return `prefix: "a/" -> "b/"` for each modified field, empty without one."""
    live = live_values(kind, body) | stamp_of(kind, body)
    texts = []
    for path, value in sorted((change.seen or {}).items()):
        before, after = (
            canonical_text(redact_value(item, mask)) for item in (value, live.get(path))
        )
        if before != after:
            texts.append(f"{path}: {before} -> {after}")
    return printable("; ".join(texts))


def altered_paths(kind: Kind, sent: JSONObject, stored: JSONObject) -> tuple[Path, ...]:
    """Return the paths of sent fields that read back different, without secrets and toggles."""
    values = {leaf.path: leaf.value for leaf in field_leaves(kind.fields, stored, live=True)}
    named = {_field_name(kind, name): value for name, value in sent.items()}
    return tuple(
        leaf.path
        for leaf in field_leaves(kind.fields, named, live=False)
        if not leaf.field.secret
        and leaf.field.toggle is None
        and not is_equal(leaf.field, leaf.value, values.get(leaf.path, MISSING))
    )


def body_of_altered(kind: Kind, sent: JSONObject, altered: Collection[Path]) -> dict[str, JSON]:
    """Return the top-level fields of a body that read back different, to send them again."""
    names = {path[0] for path in altered}
    return {name: value for name, value in sent.items() if _field_name(kind, name) in names}


def lacks_fields(kind: Kind, stored: JSONObject, altered: Collection[Path]) -> bool:
    """Return whether a body lacks an altered field: then it is not the whole object."""
    if not altered:
        return False
    shown = {leaf.path for leaf in field_leaves(kind.fields, stored, live=True)}
    return any(path not in shown for path in altered)


def _field_name(kind: Kind, name: str) -> str:
    """Return the kind's own name of a field that a dialect may call otherwise."""
    field = kind.field_named(name)
    return field.name if field is not None else name
