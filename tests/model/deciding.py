"""What a plan of a world is (docs/planning.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.model.declared import (
    TYPE,
    Resource,
    base_of,
    checked_out,
    declared,
    environment_of,
)
from tests.model.fields import Fields, changed_secrets, dropped, fields_of, loosened
from tests.model.identity import Identity, Live
from tests.model.refusing import refusals_of
from tests.model.world import World

FIXED = {TYPE, "model"}
"""What servers of 2026 cannot change."""


@dataclass
class Change:
    """A planned change. `parent` is the id of its project, None for one to create."""

    address: str
    action: str
    live: Live | None = None
    parent: str | None = None
    fields: Fields = field(default_factory=dict)
    secrets: set[str] = field(default_factory=set)
    on_purpose: bool = True


class Planned:
    """The plan of a world for one live state. `error` is the name of the error that ends it."""

    def __init__(self, world: World, live: Sequence[Live]) -> None:
        files, environments = checked_out(world), world.work["reconciler.yaml"]["environments"]
        self.world, self.live = world, live
        self.now = declared(files, world.environment)
        self.policy = environment_of(world.work, world.environment, "policy")
        self.base = base_of(world, self.now)
        globs = self.policy.get("ignore", ())
        self.identity = Identity(live, self.now, self.base.versions, globs)
        self.changes: dict[tuple[str, str], Change] = {}
        self.left_out: set[str] = set()
        self.refusals: set[tuple[str, frozenset[str]]] = set()
        others = [Identity(live, declared(files, name)) for name in environments]
        self.elsewhere = {
            item
            for name, other in zip(environments, others, strict=True)
            for item in other.matched.values()
            if name != world.environment and item and not other.is_ambiguous
        }
        """What other environments of the organization declare."""
        self.error, self.code = "AmbiguousIdentity" if self.identity.is_ambiguous else "", 1
        if self.error:
            return
        candidates = [*self._candidates()]
        self._select({change.address for change in candidates})
        if self.error:
            self.code = 64
            return
        self.changes = {
            (change.address, change.action): change
            for change in candidates
            if change.address not in self.left_out
        }
        self.refusals = refusals_of(self)
        self.code = 5 if self.refusals else 2 if self.changes else 0

    def of_action(self, *actions: str) -> list[Change]:
        return [change for change in self.changes.values() if change.action in actions]

    def resource_of(self, address: str) -> Resource | None:
        return self.now.get(address) or self.identity.was.get(address)

    # Changes

    def _candidates(self) -> Iterator[Change]:
        for address, item in self.identity.matched.items():
            resource = self.now[address]
            if item is None:
                if not resource.absent:
                    fields = dict.fromkeys(resource.values, ("unknown", False))
                    parent = self.identity.parent_of(resource)
                    yield Change(address, "create", None, parent, fields)
            elif resource.absent:
                yield Change(address, "delete", item, item.parent)
            else:
                yield from self._of_pair(resource, item)
        yield from self.pruned()

    def _of_pair(self, resource: Resource, item: Live) -> Iterator[Change]:
        address, fields = resource.address, fields_of(self.identity, self.base, resource, item)
        parent = item.parent if resource.parent is None else self.identity.parent_of(resource)
        toggle = fields.pop("paused", None)
        if item.parent != parent or (self.world.dialect == "2026" and FIXED & fields.keys()):
            yield Change(address, "replace", item, parent, fields)
            return
        is_rotated = {address, "*"} & {*self.world.rotate}
        secrets = changed_secrets(self.identity, resource, item)
        secrets = resource.secrets if is_rotated else secrets
        if fields or secrets:
            yield Change(address, "update", item, parent, fields, secrets)
        if toggle:
            action = "pause" if resource.values["paused"] else "unpause"
            yield Change(address, action, item, parent, {"paused": toggle})

    def prune_mode(self, item: Live, parent: str | None) -> object:
        """Return the mode of `prune` for an object, in a declared project if there is one."""
        modes = self.policy.get("prune", False)
        if isinstance(modes, dict):
            modes = modes.get(parent, modes.get(item.kind, False))
        return modes if not item.of_other_tool else False

    def pruned(self) -> Iterator[Change]:
        """Yield the deletions of removed and of unmanaged objects."""
        identity = self.identity
        of = {item: address for address, item in identity.removed.items()}
        unclear = {item for items in identity.unclear.values() for item in items}
        projects = {item.id: key for key, item in identity.matched.items() if item}
        for item in self.live:
            address, parent = of.get(item), projects.get(item.parent or "")
            mode = self.prune_mode(item, parent)
            is_inside = parent is not None and self.now[parent].absent and item not in unclear
            if address is not None and address not in self.base.kept:
                if mode or is_inside:
                    yield Change(address, "delete", item, item.parent)
            elif parent is not None and (address or identity.is_free(item)):
                on_purpose = address is not None or is_inside
                if mode is True or (is_inside and address is None):
                    yield Change(
                        address or item.address, "delete", item, item.parent, on_purpose=on_purpose
                    )

    # Selection

    def _select(self, known: set[str]) -> None:
        """Find what the options leave out (docs/planning.md, Select resources)."""
        world, identity = self.world, self.identity
        texts = {*world.targets, *world.excludes, *world.rotate} - {"*"}
        if not texts:
            return
        known = known | identity.matched.keys() | identity.removed.keys()
        mentioned = known | identity.untouchable | identity.unclear.keys()
        chosen = {*(world.targets or mentioned)} - {*world.excludes}
        has_secrets = all(
            key in self.now and self.now[key].secrets for key in {*world.rotate} - {"*"}
        )
        if not texts <= mentioned or not has_secrets or not chosen:
            self.error = "BadUsage"
        for address in sorted(chosen & identity.matched.keys()):
            resource = self.now[address]
            to = resource.parent[1] if resource.parent else ""
            is_new = identity.matched.get(to, self) is None and not self.now[to].absent
            if is_new and not resource.absent:
                chosen.add(to)
                if to in world.excludes:
                    self.error = "BadUsage"
        self.left_out = known - chosen

    # Notes

    @property
    def objects(self) -> dict[str, str | None]:
        """The ids of the objects of what is planned."""
        found = {
            key: item for key, item in self.identity.matched.items() if key not in self.left_out
        }
        found |= {change.address: change.live for change in self.changes.values()}
        return {address: item.id if item else None for address, item in found.items()}

    @property
    def unmanaged(self) -> set[str]:
        """The ids of what no resource has and what stays."""
        gone = {change.live for change in self.of_action("delete")}
        lost = {item.id for item in gone if item}
        removed = self.identity.removed.values()
        return {
            item.id
            for item in self.live
            if (self.identity.is_free(item) or item in removed)
            and item not in gone
            and item.parent not in lost
        }

    @property
    def adopted(self) -> set[str]:
        """The resources whose object the base did not manage."""
        return {
            address
            for address, item in self.identity.matched.items()
            if item and self.base.versions and not self.identity.history_of(address, item, 1)
        }

    @property
    def stays(self) -> set[tuple[str, str]]:
        """The removed fields that keep their live value."""
        return {
            (address, path)
            for address, item in self.identity.matched.items()
            if item and not self.now[address].absent and address not in self.left_out
            for path, is_reset in dropped(self.identity, self.now[address], item)
            if not is_reset
        }

    @property
    def loosened(self) -> dict[str, set[str]]:
        """What resources permit that they did not permit at a commit of the range."""
        found: dict[str, set[str]] = {}
        for address, item in self.identity.matched.items() if self.base.versions else ():
            history = self.identity.history_of(address, item)
            for text in loosened(self.now[address], history):
                found.setdefault(text, set()).add(address)
        return found

    @property
    def tied(self) -> set[str]:
        """The resources whose object several resources of the base may have been."""
        pairs = self.identity.matched.items()
        return {address for address, item in pairs if len(self.identity.at_base(item)) > 1}
