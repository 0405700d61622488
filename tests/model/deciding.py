"""The changes, refusals and notes of a plan (docs/planning.md, Deletion and Creates that double).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from tests.model.declared import CONFIG, Path, Resource, canonical, checked_out, declared
from tests.model.oracle import PLACES, TYPE, Change, Live, Oracle, Prediction, Problem, is_past
from tests.model.world import World

DESTRUCTIVE = ("delete", "replace")
FIXED: frozenset[Path] = frozenset({TYPE, ("model",)})
"""What servers of 2026 cannot change."""
SELECTION = (
    ("destination", "config", "include_events"),
    ("destination", "config", "exclude_events"),
)


class Planned:
    """The plan of a world for one live state."""

    def __init__(self, world: World, live: Sequence[Live]) -> None:
        self.world = world
        self.oracle = Oracle(world, live)
        self.policy = self.oracle.policy
        self.changes: dict[tuple[str, str], Change] = {}
        self.refusals: set[tuple[str, frozenset[str]]] = set()
        self.left_out: set[str] = set()
        self.elsewhere: set[tuple[str, str]] = set()

    def refuse(self, rule: str, *addresses: str) -> None:
        self.refusals.add((rule, frozenset(addresses)))

    def prediction(self) -> Prediction:
        """Return what the plan must be."""
        oracle, result = self.oracle, Prediction()
        result.base = oracle.base.commit if oracle.base else None
        result.resources = oracle.now
        try:
            oracle.match()
            self._decide()
        except Problem as problem:
            code = 64 if str(problem) == "BadUsage" else 1
            return Prediction(code, str(problem), base=result.base)
        self.elsewhere = set(self._of_other_environments())
        self._guard()
        result.changes, result.refusals = self.changes, self.refusals
        result.code = 5 if self.refusals else 2 if self.changes else 0
        for address in oracle.matched.keys() - self.left_out:
            item = oracle.matched[address]
            result.objects[address] = item.id if item else None
        result.objects |= {
            change.address: change.live.id if change.live else None
            for change in self.changes.values()
        }
        gone = {(c.live.kind, c.live.id) for c in self._of_action("delete") if c.live}
        removed = [item for _, item in oracle.removed.values()]
        for item in oracle.live:
            is_open = oracle.is_free(item) or item in removed
            inside = ("project", item.parent or "") in gone
            if is_open and (item.kind, item.id) not in gone and not inside:
                result.unmanaged.add(item.id)
        self._note(result)
        return result

    def _of_action(self, *actions: str) -> list[Change]:
        return [change for change in self.changes.values() if change.action in actions]

    # Changes

    def _decide(self) -> None:
        oracle, candidates = self.oracle, list(self._candidates())
        mentioned = {item.resource.address for item in oracle.unclear}
        known = {*oracle.matched, *oracle.untouchable, *oracle.removed}
        known |= {change.address for change in candidates}
        self._select(known, mentioned - known)
        for change in candidates:
            if change.address not in self.left_out:
                self.changes[change.address, change.action] = change

    def _candidates(self) -> Iterator[Change]:
        oracle = self.oracle
        for address, item in oracle.matched.items():
            resource = oracle.now[address]
            if resource.absent:
                if item is not None:
                    yield Change(address, "delete", item, item.parent)
            elif item is None:
                fields = dict.fromkeys(resource.values, ("unknown", False))
                yield Change(address, "create", None, oracle.parent_of(resource), fields)
            else:
                yield from self._changes_of_pair(resource, item)
        yield from self._pruned()

    def _changes_of_pair(self, resource: Resource, item: Live) -> Iterator[Change]:
        oracle, address = self.oracle, resource.address
        fields, secrets = oracle.fields_of(resource, item), oracle.secrets_of(resource, item)
        parent = oracle.parent_of(resource)
        is_moved = resource.parent is not None and item.parent != parent
        if is_moved or (self.world.dialect == "2026" and FIXED & fields.keys()):
            target = parent if is_moved else item.parent
            fields.pop(("paused",), None)
            yield Change(address, "replace", item, target, fields)
            return
        toggle = fields.pop(("paused",), None)
        if fields or secrets:
            yield Change(address, "update", item, item.parent, fields, secrets)
        if toggle:
            action = "pause" if resource.values["paused",] else "unpause"
            yield Change(address, action, item, item.parent, {("paused",): toggle})

    def _mode(self, kind: str, parent: str | None) -> object:
        """Return the mode of `prune` for objects of a kind in a declared project."""
        modes = self.policy.get("prune", False)
        if not isinstance(modes, dict):
            return modes
        return modes.get(parent, modes.get(kind, False))

    def _parent_address(self, item: Live) -> str | None:
        for address, match in self.oracle.matched.items():
            if match and match.kind == "project" and match.id == item.parent:
                return address
        return None

    def _pruned(self) -> Iterator[Change]:
        oracle = self.oracle
        kept = oracle.base.kept if oracle.base else frozenset()
        ambiguous = {live.id for item in oracle.unclear for live in item.objects}
        for address, (_, item) in oracle.removed.items():
            parent = self._parent_address(item)
            mode = self._mode(item.kind, parent)
            in_absent = parent is not None and oracle.now[parent].absent
            is_pruned = mode is not False and not item.of_other_tool
            if address in kept:  # Like an unmanaged one.
                is_pruned &= mode is True and item.kind != "project" and parent is not None
                in_absent &= mode is True
            if is_pruned or in_absent:
                yield Change(address, "delete", item, item.parent)
        for item in oracle.live:
            parent = self._parent_address(item)
            if not oracle.is_free(item) or item.kind == "project" or parent is None:
                continue
            in_absent = oracle.now[parent].absent and item.id not in ambiguous
            if in_absent or (self._mode(item.kind, parent) is True and not item.of_other_tool):
                yield Change(item.address, "delete", item, item.parent, on_purpose=in_absent)

    # Selection (docs/planning.md, Select resources)

    def _select(self, known: set[str], mentioned: set[str]) -> None:
        world, oracle = self.world, self.oracle
        if not world.targets and not world.excludes and not world.rotate:
            return
        declared_now = set(oracle.matched)
        for text in (*world.targets, *world.excludes, *world.rotate):
            if text != "*" and text not in known | mentioned:
                raise Problem("BadUsage")
        for address in world.rotate:
            if address != "*" and not oracle.now[address].secrets:
                raise Problem("BadUsage")
        chosen = set(world.targets) or known | mentioned
        chosen -= set(world.excludes)
        if not chosen:
            raise Problem("BadUsage")
        for address in sorted(chosen & declared_now):
            resource = oracle.now[address]
            to = resource.parent[1] if resource.parent and resource.parent[0] == "key" else None
            needs = to in oracle.matched and oracle.matched[to] is None and not resource.absent
            if needs and to is not None and not oracle.now[to].absent:
                if to in world.excludes:
                    raise Problem("BadUsage")
                chosen.add(to)
        self.left_out = known - chosen

    # Refusals

    def _guard(self) -> None:
        self._guard_deletions()
        self._guard_inside()
        self._guard_limits()
        self._guard_names()
        self._guard_server()
        matched = [address for address, _ in self.changes if address in self.oracle.matched]
        parents = {self.oracle.now[address].parent for address in matched}
        for address in self.oracle.untouchable:
            if address not in self.left_out or ("key", address) in parents:
                self.refuse("ignore", address)
        for address, inside in self._doubled():
            self.refuse("possible-duplicate", address, *inside)
        base_mode = self.policy.get("prune")
        modes = base_mode.values() if isinstance(base_mode, dict) else [base_mode]
        files = self.world.commits[self.world.head].files
        if True in modes and any(name in files for name in self.world.sparse):
            self.refuse("sparse-checkout")

    def _resource_of(self, address: str) -> Resource | None:
        if address in self.oracle.removed:
            return self.oracle.removed[address][0]
        return self.oracle.now.get(address)

    def _guard_deletions(self) -> None:
        oracle, destructive = self.oracle, self._of_action(*DESTRUCTIVE)
        for change in destructive:
            resource = self._resource_of(change.address)
            maybe = change.live is not None and change.live.id in oracle.maybe_protected
            is_declared = change.address in oracle.matched
            if (resource and resource.protected) or (maybe and not is_declared):
                self.refuse("protect", change.address)
            allowed = self.world.allow_replace or self.policy.get("allow_replace")
            allowed = allowed or bool(resource and resource.lifecycle.get("allow_replace"))
            if change.action == "replace" and not allowed:
                self.refuse("allow_replace", change.address)
            if change.action == "replace" and resource and resource.pinned is not None:
                self.refuse("replaced-id", change.address)
        lost = [
            change.address
            for change in destructive
            if change.live and (change.live.kind, change.live.id) in self.elsewhere
        ]
        if lost:
            self.refuse("declared-elsewhere", *lost)
        if destructive and not oracle.now:
            self.refuse("nothing-declared", *(change.address for change in destructive))

    def _guard_inside(self) -> None:
        """Refuse to delete a project with an export that is not accounted for."""
        oracle = self.oracle
        deleted = self._of_action("delete")
        gone = {(c.live.kind, c.live.id) for c in deleted if c.live}
        moved = {
            c.live.id for c in self._of_action("replace") if c.live and c.live.parent != c.parent
        }
        for change in deleted:
            if not change.live or change.live.kind != "project":
                continue
            for item in oracle.live:
                is_inside = item.parent == change.live.id and item.id not in moved
                if is_inside and (item.kind, item.id) not in gone:
                    self.refuse(self._rule_inside(item), change.address)
            for other in self._of_action("create", "replace"):
                comes = other.live is None or other.live.id in moved
                if comes and other.parent == change.live.id and other.address in oracle.matched:
                    self.refuse("declared-inside", change.address)

    def _rule_inside(self, item: Live) -> str:
        oracle = self.oracle
        kept = oracle.base.kept if oracle.base else frozenset()
        place = (item.kind, item.id)
        if place in oracle.ignored:
            return "ignore"
        for address, match in oracle.matched.items():
            if match is item:
                return "not-selected" if oracle.now[address].absent else "declared-inside"
        owners = [(was, True) for was, live in oracle.removed.values() if live is item]
        owners += [(one.resource, False) for one in oracle.unclear if item in one.objects]
        if any(was.protected for was, _ in owners):
            return "protect"
        for was, is_certain in owners:
            if was.address in kept:
                return "kept"
            if not is_certain:
                return "ambiguous-inside"
        is_pruned = any(change.live is item for change in self._pruned())
        return "not-selected" if is_pruned else "unmanaged-inside"

    def _guard_limits(self) -> None:
        policy, oracle, destructive = self.policy, self.oracle, self._of_action(*DESTRUCTIVE)
        for rule, changes in (
            ("max_deletes", destructive),
            ("max_changes", list(self.changes.values())),
        ):
            limit = policy.get(rule)
            if isinstance(limit, str):
                managed = [item for item in oracle.matched.values() if item]
                limit = len(managed) * int(limit.rstrip("%")) / 100
            if limit is not None and len(changes) > limit:
                self.refuse(rule, *(change.address for change in changes))
        projects = [c.address for c in destructive if c.address.startswith("project.")]
        if projects and not policy.get("allow_project_deletion"):
            self.refuse("allow_project_deletion", *projects)
        lost = [c.address for c in destructive if c.address.startswith("batch_export.")]
        for rule, addresses in (("history-lost", lost), ("project-data-lost", projects)):
            if addresses and rule in policy.get("deny", ()):
                self.refuse("deny", *addresses)

    def _guard_names(self) -> None:
        """Refuse exchanged names, and new names of objects that another tool finds by theirs."""
        oracle, changed = self.oracle, {address for address, _ in self.changes}
        for address, item in oracle.matched.items() if changed else ():
            was = oracle.at_base(item)
            other = was.address if was and not oracle.is_tied(item) else address
            is_claimed = other != address and other in oracle.matched
            is_pinned = oracle.now[address].pinned is not None
            if is_claimed and not is_pinned and changed & {address, other}:
                self.refuse("permuted-names", address, other)
        for change in self._of_action("update", "replace"):
            renamed = change.action == "replace" or ("name",) in change.fields
            if renamed and change.live and change.live.of_other_tool:
                self.refuse("posthog-definitions", change.address)

    def _guard_server(self) -> None:
        """Refuse what the server is known to refuse (docs/consequences.md, Known refusals)."""
        dialect, attempt = self.dialect(), self.policy.get("attempt", ())
        new_names = {
            change.live.id: self.oracle.now[change.address].name
            for change in self._of_action("update")
            if change.live and change.live.kind == "project"
        }
        deleted = {c.live.id for c in self._of_action("delete") if c.live}
        for change in self._of_action("update", "pause"):
            is_deleted = change.live and is_past(change.live, timedelta(days=7))
            if is_deleted and dialect in ("2025", "2026"):
                self._refuse_known("schedule-deleted", change.address, attempt)
        for change in self.changes.values():
            resource = self.oracle.now.get(change.address)
            if resource is None or change.action not in ("create", "update", "replace"):
                continue
            is_new = change.action != "update"
            to = resource.values.get(TYPE)
            if to == "HTTP" and is_new and (*CONFIG, "token") not in resource.values:
                self._refuse_known("field-required", change.address, attempt)
            if dialect != "2026":
                continue
            if resource.kind == "project" and (is_new or ("name",) in change.fields):
                own = change.live.id if change.live else None
                names = {
                    new_names.get(item.id, item.name).lower()
                    for item in self.oracle.live
                    if item.kind == "project" and item.id not in (own, *deleted)
                }
                names |= {
                    self.oracle.now[other.address].name.lower()
                    for other in self._of_action("create")
                    if other.address.startswith("project.") and other.address < change.address
                }
                if resource.name.lower() in names:
                    self._refuse_known("name-taken", change.address, attempt)
            integration = resource.values.get(("destination", "integration"))
            moved = change.live is not None and change.live.parent != change.parent
            same = change.live is not None and (
                str(change.live.values.get(("destination", "integration"))) == str(integration)
            )
            if integration and ((moved and same) or (is_new and change.parent is None)):
                self._refuse_known("integration-of-another-project", change.address, attempt)

    def dialect(self) -> str | None:
        """Return the version of the server, as far as a plan can know it."""
        exports = [item for item in self.oracle.live if item.kind == "batch_export"]
        return self.world.dialect if exports or self.world.dialect == "2026" else None

    def reset_of(self, change: Change) -> list[Path]:
        """Return the fields that a change resets."""
        return [path for path, (_, is_reset) in change.fields.items() if is_reset]

    def doubled_heads(self) -> set[str]:
        """Return the resources that would double an object themselves."""
        return {address for address, _ in self._doubled()}

    def _refuse_known(self, rule: str, address: str, attempt: Sequence[str]) -> None:
        if rule not in attempt:
            self.refuse(rule, address)

    # Creates that would double an object

    def _doubled(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        oracle, created = self.oracle, self._of_action("create")
        at_base = oracle.versions[0] if oracle.versions else {}
        free = list(self._unclaimed())
        for change in created:
            resource = oracle.now[change.address]
            was = at_base.get(change.address)
            was = None if was is None or was.absent else was
            if resource.kind == "batch_export":
                for item in self._twins(resource, was, free):
                    if item.parent == change.parent and not resource.is_beside(
                        item.name, item.address
                    ):
                        yield change.address, ()
            elif was is not None:
                yield from self._renamed_projects(resource, created, free)

    def _renamed_projects(
        self, project: Resource, created: list[Change], free: list[Live]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        at_base = self.oracle.versions[0]
        inside: dict[str, set[str]] = {}
        names = {
            was.name
            for was in at_base.values()
            if was.parent == ("key", project.address) and not was.absent
        }
        for item in free:
            if item.parent and item.plain_name in names:
                inside.setdefault(item.parent, set())
        for change in created:
            child = self.oracle.now[change.address]
            if child.parent != ("key", project.address):
                continue
            was = at_base.get(child.address)
            was = None if was is None or was.absent else was
            twins = self._twins(child, was, free)
            if was is not None:
                twins += [item for item in free if item.parent and item.plain_name == child.name]
            for item in twins:
                inside.setdefault(item.parent or "", set()).add(child.address)
        for item in free:
            children = inside.get(item.id) if item.kind == "project" else None
            if children is not None and not project.is_beside(item.name, item.address):
                yield project.address, tuple(sorted(children))

    def _unclaimed(self) -> Iterator[Live]:
        """Yield what no resource claims and what the plan does not delete on purpose."""
        oracle = self.oracle
        deleted = {c.live.id for c in self._of_action("delete") if c.on_purpose and c.live}
        for item in oracle.live:
            place = (item.kind, item.id)
            owners = oracle.claims.get(place, [])
            is_open = all(key in oracle.removed or oracle.now[key].absent for key in owners)
            if is_open and item.id not in deleted and place not in self.elsewhere:
                yield item

    def _twins(self, resource: Resource, was: Resource | None, free: list[Live]) -> list[Live]:
        """Return the exports, in any project, whose work a resource would do again."""
        found = []
        for item in free:
            if item.kind != "batch_export" or is_past(item):
                continue
            for known in filter(None, (resource, was)):
                place, exact = _place(known.values), known.values.get(TYPE) != "HTTP"
                if place is None or place != _place(item.values):
                    continue
                same = all(_same(known, item, path) for path in SELECTION)
                is_known = was is not None
                is_twin = (same and exact) or (is_known and (same or exact))
                if is_twin and _same(known, item, ("model",)):
                    found.append(item)
        return found

    def _of_other_environments(self) -> Iterator[tuple[str, str]]:
        """Yield what other environments of the organization declare."""
        world = self.world
        for name in world.work["reconciler.yaml"]["environments"]:
            if name == world.environment:
                continue
            other = Oracle(world, self.oracle.live)
            other.now = declared(checked_out(world), name)
            other.versions, other.ignored, other.untouchable = [], {}, set()
            other.policy, other.base = {}, None
            try:
                other.match()
            except Problem:
                continue
            yield from ((item.kind, item.id) for item in other.matched.values() if item)

    # Notes

    def _note(self, result: Prediction) -> None:
        oracle = self.oracle
        for address, item in oracle.matched.items():
            resource = oracle.now[address]
            history = oracle.history_of(address, item)
            if oracle.is_tied(item):
                result.tied.add(address)
            if oracle.base and item and not (history and history[0][0] == 0):
                result.adopted.add(address)
            for text in _loosened(resource, [was for _, was in history]) if oracle.base else ():
                result.loosened.setdefault(text, set()).add(address)
            if item and not resource.absent and address not in self.left_out:
                result.stays |= {(address, ".".join(p)) for p in oracle.stays(resource, item)}


def _loosened(resource: Resource, versions: list[Resource]) -> Iterator[str]:
    """Yield what a resource permits now and did not permit at a commit of the range."""
    own = resource.lifecycle
    for was in versions:
        old = was.lifecycle
        if was.protected and not resource.protected:
            yield "protect"
        if own.get("allow_replace") and not old.get("allow_replace"):
            yield "allow_replace"
        for key in ("ignore_changes", "renamed_from", "beside"):
            yield from (
                f"{key} {item}" for item in own.get(key, ()) if item not in old.get(key, ())
            )
        if resource.pinned and resource.pinned != was.pinned:
            yield f"id {resource.pinned}"
    if not versions:
        yield from (f"beside {item}" for item in own.get("beside", ()))


def _place(values: object) -> tuple[object, ...] | None:
    """Return where an export writes: its type and the parts of the address."""
    assert hasattr(values, "get")
    kind = values.get(TYPE)
    parts = [
        canonical("batch_export", (*CONFIG, name), values.get((*CONFIG, name)))
        for name in PLACES.get(str(kind), ())
    ]
    return (kind, *parts) if parts and parts[0] else None


def _same(resource: Resource, item: Live, path: Path) -> bool:
    return bool(canonical("batch_export", path, resource.values.get(path)) == item.value(path))
