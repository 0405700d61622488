"""What the documents say that a plan of a world is (docs/planning.md, configuration.md, git.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.model.declared import (
    CLEARABLE,
    CONFIG,
    DEFAULTS,
    Base,
    Declared,
    Path,
    Resource,
    base_of,
    canonical,
    checked_out,
    declared,
    is_secret,
    policy_of,
)
from tests.model.world import World

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
TYPE: Path = ("destination", "type")
PLACES: Mapping[str, Sequence[str]] = {
    "S3": ("bucket_name", "prefix", "endpoint_url"),
    "AwsS3": ("bucket_name", "prefix", "endpoint_url"),
    "Postgres": ("host", "port", "database", "schema", "table_name"),
    "HTTP": ("url",),
}
_MARKER = re.compile(r"(.*?)\s*<!-- iac:[\w-]+:\S+ iac:hash:\S+ -->\s*", re.DOTALL)


def has_marker(name: str) -> bool:
    """Return whether another tool finds an object by its name."""
    return _MARKER.fullmatch(name) is not None


@dataclass(frozen=True)
class Live:
    """A live object with its fields by path. `parent` is the id of its project."""

    kind: str
    id: str
    name: str
    parent: str | None
    values: Mapping[Path, Any]

    @property
    def address(self) -> str:
        return f"{self.kind}.id:{self.id}"

    @property
    def of_other_tool(self) -> bool:
        return has_marker(self.name)

    @property
    def plain_name(self) -> str:
        marked = _MARKER.fullmatch(self.name)
        return marked[1].strip() if marked else self.name

    def plain(self, name: str) -> str:
        """Return the name, without the end that a replacement of `name` has until its end."""
        return name if self.name.startswith(f"{name} (replaces ") else self.name

    def value(self, path: Path) -> Any:
        return canonical(self.kind, path, self.values.get(path))


def live_of(projects: Iterable[Mapping[str, Any]]) -> list[Live]:
    """Return the live objects of projects as the service stores or is planted with them."""
    found = []
    for project in projects:
        if project.get("is_pending_deletion"):
            continue
        own: dict[Path, Any] = {
            (key,): value for key, value in project.items() if key != "batch_exports"
        }
        found.append(Live("project", str(project["id"]), project["name"].strip(), None, own))
        for export in project.get("batch_exports", ()):
            values: dict[Path, Any] = {
                (key,): value for key, value in export.items() if key != "destination"
            }
            to = export["destination"]
            values |= {
                ("destination", key): to[key] for key in ("type", "integration") if key in to
            }
            values |= {(*CONFIG, key): value for key, value in (to.get("config") or {}).items()}
            name = export["name"].strip()
            found.append(Live("batch_export", str(export["id"]), name, str(project["id"]), values))
    return found


@dataclass
class Change:
    """A planned change, with the differing fields: their origin, and whether they are reset."""

    address: str
    action: str
    live: Live | None = None
    parent: str | None = None
    fields: dict[Path, tuple[str, bool]] = field(default_factory=dict)
    secrets: set[Path] = field(default_factory=set)
    on_purpose: bool = True


@dataclass
class Prediction:
    """What a plan must say. `error` is the name of the error that ends it."""

    code: int = 0
    error: str = ""
    changes: dict[tuple[str, str], Change] = field(default_factory=dict)
    objects: dict[str, str | None] = field(default_factory=dict)
    refusals: set[tuple[str, frozenset[str]]] = field(default_factory=set)
    unmanaged: set[str] = field(default_factory=set)
    loosened: dict[str, set[str]] = field(default_factory=dict)
    adopted: set[str] = field(default_factory=set)
    stays: set[tuple[str, str]] = field(default_factory=set)
    base: int | None = None
    resources: Declared = field(default_factory=dict)
    tied: set[str] = field(default_factory=set)


class Problem(Exception):
    """Planning stops with an error."""


@dataclass
class Removed:
    """A removed resource, the objects that it may be, and those that it certainly had."""

    resource: Resource
    objects: list[Live]
    own: set[str]
    is_certain: bool


class Oracle:
    """The planner of the documents, for one world and one live state."""

    def __init__(self, world: World, live: Sequence[Live]) -> None:
        self.world = world
        self.live = live
        self.by_id = {(item.kind, item.id): item for item in live}
        self.now = declared(checked_out(world), world.environment)
        self.policy = policy_of(world.work, world.environment)
        self.base: Base | None = base_of(world, self.now)
        self.versions: Sequence[Declared] = self.base.versions if self.base else []
        self.ignored = {(item.kind, item.id): item for item in live if self._is_ignored(item.name)}
        self.untouchable = {
            address
            for address, item in self.now.items()
            if self._is_ignored(item.name) or (item.kind, item.pinned) in self.ignored
        }
        self.matched: dict[str, Live | None] = {}
        self.claims: dict[tuple[str, str], list[str]] = {}
        self.removed: dict[str, tuple[Resource, Live]] = {}
        self.unclear: list[Removed] = []
        self.maybe_protected: dict[str, str] = {}
        self.is_ambiguous = False

    def _is_ignored(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, glob) for glob in self.policy.get("ignore", ()))

    # Identity (docs/planning.md, Identity)

    def is_free(self, item: Live) -> bool:
        place = (item.kind, item.id)
        return place not in self.claims and place not in self.ignored

    def parent_of(self, resource: Resource) -> str | None:
        """Return the id of the live project of a resource, None if it does not exist yet."""
        if resource.parent is None:
            return None
        how, text = resource.parent
        if how == "key":
            match = self.matched.get(text)
            return match.id if match else None
        if how == "id":
            return text
        named = [item for item in self.live if item.kind == "project" and item.name == text.strip()]
        if len(named) != 1:
            self.is_ambiguous = True
            return None
        return named[0].id

    def named(self, kind: str, parents: Iterable[str | None], name: str) -> list[Live]:
        wanted = set(parents)
        return [
            item
            for item in self.live
            if item.kind == kind and item.plain(name) == name and item.parent in wanted
        ]

    def match(self) -> None:
        """Find the object of every resource, or raise."""
        for kind in ("project", "batch_export"):
            resources = [
                item
                for address, item in sorted(self.now.items())
                if item.kind == kind and address not in self.untouchable
            ]
            self._match_kind(kind, resources)
        if self.is_ambiguous or any(len(users) > 1 for users in self.claims.values()):
            raise Problem("AmbiguousIdentity")
        self._match_removed()

    def _claim(self, resource: Resource, found: list[Live]) -> None:
        if len(found) > 1:
            self.is_ambiguous = True
        item = found[0] if len(found) == 1 else None
        self.matched[resource.address] = item
        if item:
            self.claims.setdefault((item.kind, item.id), []).append(resource.address)

    def _match_kind(self, kind: str, resources: list[Resource]) -> None:
        pinned = {item.pinned for item in resources}
        parents = {item.address: self.parent_of(item) for item in resources}
        left = []
        for resource in resources:
            if resource.pinned is not None:
                item = self.by_id.get((kind, resource.pinned))
                self.is_ambiguous |= item is None and not resource.absent
                self._claim(resource, [item] if item else [])
                continue
            found = [
                item
                for item in self._in_place(resource, parents[resource.address], resource.name)
                if item.id not in pinned
            ]
            if found:
                self._claim(resource, found)
            else:
                left.append(resource)
        for rule in (self._by_former_name, self._by_base):
            pairs = [(resource, rule(resource)) for resource in left]
            certain = {found[0].id for _, found in pairs if len(found) == 1}
            left = [resource for resource, found in pairs if not found]
            for resource, every in pairs:
                is_single = len(every) == 1
                found = [item for item in every if is_single or item.id not in certain]
                if found:
                    self._claim(resource, found)
                elif resource not in left:
                    self.matched[resource.address] = None
        for resource in left:
            self.matched[resource.address] = None
        for resource in resources:
            if resource.pinned is None:
                self._second(resource, parents[resource.address])

    def _in_place(self, resource: Resource, parent: str | None, name: str) -> list[Live]:
        if resource.parent is not None and parent is None:
            return []
        found = self.named(resource.kind, [parent], name)
        return [item for item in found if (item.kind, item.id) not in self.ignored]

    def _may_become(self, resource: Resource, objects: Iterable[Live]) -> list[Live]:
        """Return the objects that a resource may be by another name than its own."""
        unique = {item.id: item for item in objects}
        return [
            item
            for item in unique.values()
            if self.is_free(item)
            and not item.of_other_tool
            and not resource.is_beside(item.name, item.address)
        ]

    def _by_former_name(self, resource: Resource) -> list[Live]:
        parent = self.parent_of(resource)
        places = [self._in_place(resource, parent, name) for name in resource.former_names]
        return self._may_become(resource, (item for place in places for item in place))

    def _by_base(self, resource: Resource) -> list[Live]:
        return self._may_become(resource, self.former(resource.address))

    def former(self, address: str) -> list[Live]:
        """Return the objects that a key was at any commit of the range."""
        found: list[Live] = []
        for number in range(len(self.versions)):
            found += self.of_version(number, address)
        return list({item.id: item for item in found}.values())

    def of_version(self, number: int, address: str) -> list[Live]:
        """Return the objects that a resource of a commit was: several if it is ambiguous."""
        was = self.versions[number].get(address)
        if was is None:
            return []
        if was.pinned is not None:
            item = self.by_id.get((was.kind, was.pinned))
            return [item] if item else []
        scopes = self.scopes(number, was)
        for names in ((was.name,), was.former_names):
            found = [item for name in names for item in self.named(was.kind, scopes, name)]
            if found:
                return list({item.id: item for item in found}.values())
        return []

    def scopes(self, number: int, was: Resource) -> list[str | None]:
        """Return the projects in which a resource of a commit may have been."""
        if was.parent is None:
            return [None]
        how, text = was.parent
        if how == "id":
            return [text]
        if how == "name":
            return [item.id for item in self.named("project", [None], text.strip())]
        found = self.of_version(number, text)
        if not found:
            found = self.former(text)
            named = self.versions[number].get(text)
            if named:
                found = found + self._known_as(named.name)
        today = self.matched.get(text)
        if not found and today:
            found = [today]
        return list(dict.fromkeys(item.id for item in found))

    def _known_as(self, name: str) -> list[Live]:
        """Return the projects of today whose key had a name in the range."""
        return [item for address, item in self._of_projects() if name in self._names_of(address)]

    def _of_projects(self) -> list[tuple[str, Live]]:
        pairs = self.matched.items()
        return [(key, item) for key, item in pairs if item and key.startswith("project.")]

    def _names_of(self, address: str) -> set[str]:
        """Return every name of a key in the range and today, with `renamed_from`."""
        found = [was[address] for was in self.versions if address in was]
        names = {name for was in found for name in (was.name, *was.former_names)}
        today = self.now.get(address)
        return names | set(today.former_names if today else ())

    def connected(self, address: str) -> list[str]:
        """Return the projects that commits which were applied in part may have left a key."""
        names_of: dict[str, set[str]] = {}
        for version in self.versions:
            for key, was in version.items():
                if was.kind == "project":
                    names_of.setdefault(key, set()).update((was.name, *was.former_names))
        keys, names = {address}, set[str]()
        while True:
            more = set().union(*(names_of.get(key, set()) for key in keys))
            also = {key for key, own in names_of.items() if own & more}
            if more <= names and also <= keys:
                break
            names |= more
            keys |= also
        found = {item.id for item in self.live if item.kind == "project" and item.name in names}
        found |= {item.id for name in names for item in self._known_as(name)}
        return sorted(found | {item.id for key, item in self._of_projects() if key in keys})

    def elsewhere(self, address: str) -> list[Live]:
        """Return what has a name of a key, in projects in which it may have been."""
        found: list[Live] = []
        for version in self.versions:
            was = version.get(address)
            if was and was.parent and was.parent[0] == "key" and was.pinned is None:
                group = self.connected(was.parent[1])
                for name in (was.name, *was.former_names):
                    found += self.named(was.kind, group, name)
        return found

    def _second(self, resource: Resource, parent: str | None) -> None:
        """Refuse one object by the name and another one by the base: one would go on running."""
        address = resource.address
        versions = [was[address] for was in self.versions if address in was]
        if not versions and self.matched[address] is None:
            return
        same = all(
            was.get(address, resource) == resource
            and (address not in was or self.scopes(number, was[address]) == [parent])
            for number, was in enumerate(self.versions)
        )
        if self.matched[address] is not None and same:
            return
        if self._by_base(resource) or self._may_become(resource, self.elsewhere(address)):
            self.is_ambiguous = True

    def _match_removed(self) -> None:
        """Find the objects of removed resources. One that another one certainly is counts less."""
        left = [self._removed(address) for address in self._removed_addresses()]
        left.sort(key=lambda item: (not item.resource.protected, item.resource.address))
        for item in left:
            free = [live for live in item.objects if self.is_free(live)]
            is_own = len(free) == 1 and item.is_certain and free[0].id in item.own
            if item.resource.protected and not is_own:
                for live in free:
                    self.maybe_protected.setdefault(live.id, item.resource.address)
        progress = True
        while progress:
            progress = False
            for item in list(left):
                free = [live for live in item.objects if self.is_free(live)]
                if len(free) == 1 and item.is_certain and free[0].id in item.own:
                    address = item.resource.address
                    self.claims[free[0].kind, free[0].id] = [address]
                    self.removed[address] = (item.resource, free[0])
                    left.remove(item)
                    progress = True
        for item in left:
            item.objects = [live for live in item.objects if self.is_free(live)]
            if item.objects:
                self.unclear.append(item)

    def _removed_addresses(self) -> list[str]:
        return sorted(
            {
                address
                for version in self.versions
                for address, was in version.items()
                if address not in self.now and not was.absent
            }
        )

    def _removed(self, address: str) -> Removed:
        numbers = [
            number
            for number, version in enumerate(self.versions)
            if address in version and not version[address].absent
        ]
        versions = [self.versions[number][address] for number in numbers]
        protected = [was for was in versions if was.protected]
        scopes = [self.scopes(number, self.versions[number][address]) for number in numbers]
        found = [item for number in numbers for item in self.of_version(number, address)]
        is_certain = all(len(ids) <= 1 for ids in scopes)
        if not any(scopes) and not found:
            is_certain = False
            names = {was.name for was in versions}
            kind = versions[0].kind
            found = [item for item in self.live if item.kind == kind and item.name in names]
        objects = {item.id: item for item in (*found, *self.elsewhere(address))}
        resource = (protected or versions)[-1]
        return Removed(resource, list(objects.values()), {item.id for item in found}, is_certain)

    # Differences (docs/planning.md, What counts as a change and The git base)

    def history_of(self, address: str, item: Live | None) -> list[tuple[int, Resource]]:
        """Return how a live object was declared since the base, under any key."""
        found = []
        for number, version in enumerate(self.versions):
            for key, was in version.items():
                objects = self.of_version(number, key)
                certain = objects[0] if len(objects) == 1 else None
                is_it = (
                    certain is not None
                    and item is not None
                    and ((certain.kind, certain.id) == (item.kind, item.id))
                )
                if is_it or (certain is None and key == address):
                    found.append((number, was))
        return found

    def at_base(self, item: Live | None) -> Resource | None:
        """Return how the base declares a live object."""
        for key, was in self.versions[0].items() if self.versions and item else ():
            objects = self.of_version(0, key)
            if len(objects) == 1 and item and objects[0].id == item.id and was.kind == item.kind:
                return was
        return None

    def is_tied(self, item: Live | None) -> bool:
        """Return whether several resources of the base may have been an object."""
        keys = [
            key
            for key, was in (self.versions[0].items() if self.versions and item else ())
            if item and was.kind == item.kind and [item] == self.of_version(0, key)
        ]
        return len(keys) > 1

    def fields_of(self, resource: Resource, item: Live) -> dict[Path, tuple[str, bool]]:
        """Return the fields that differ, each with its origin and whether it is reset."""
        kind, history = resource.kind, [was for _, was in self.history_of(resource.address, item)]
        base = self.at_base(item)
        found = {}
        for path, value in resource.values.items():
            if (
                is_secret(value)
                or resource.ignores(path)
                or (path == ("paused",) and value is None)
            ):
                continue
            want, have = canonical(kind, path, value), self._live_value(resource, item, path)
            if want != have:
                found[path] = (self._origin(kind, path, want, have, base), False)
        for path in self._reset(resource, item, history):
            found[path] = ("files", True)
        return found

    def _live_value(self, resource: Resource, item: Live, path: Path) -> Any:
        if path[:2] == CONFIG and resource.values.get(TYPE) != item.values.get(TYPE):
            return canonical(item.kind, path, item.values.get(path))
        return item.value(path)

    def _origin(self, kind: str, path: Path, want: Any, have: Any, base: Resource | None) -> str:
        if self.base is None:
            return "unknown"
        if base is None or path not in base.values or not self.base.is_merged:
            return "files"
        was = canonical(kind, path, base.values[path])
        if was == want:
            return "live"
        return "files" if was == have else "both"

    def _once(self, resource: Resource, history: list[Resource]) -> set[Path]:
        """Return what was set in the range. The last commit that mentions a field decides."""
        once: set[Path] = set()
        for was in (*history, resource) if history else ():
            once = {path for path in once if not was.leaves_to_service(path)}
            same = was.values.get(TYPE) == resource.values.get(TYPE)
            once |= {path for path in was.values if same or path[0] != "destination"}
        return once

    def _removed_fields(self, resource: Resource, item: Live, history: list[Resource]) -> set[Path]:
        same = resource.values.get(TYPE) == item.values.get(TYPE)
        return {
            path
            for path in self._once(resource, history)
            if path not in resource.values
            and not resource.ignores(path)
            and (same or path[0] != "destination")
        }

    def _reset(self, resource: Resource, item: Live, history: list[Resource]) -> Iterator[Path]:
        kind = resource.kind
        for path in self._removed_fields(resource, item, history):
            has_default = (kind, path) in DEFAULTS or (kind, path) in CLEARABLE
            is_default = item.value(path) == canonical(kind, path, None)
            stays = path == ("paused",) or self._was_secret(history, path)
            if has_default and not stays and not is_default:
                yield path

    def _was_secret(self, history: list[Resource], path: Path) -> bool:
        return any(is_secret(was.values.get(path)) for was in history)

    def stays(self, resource: Resource, item: Live) -> Iterator[Path]:
        """Yield the fields that were removed and keep their live value."""
        history = [was for _, was in self.history_of(resource.address, item)]
        for path in self._removed_fields(resource, item, history):
            key = (resource.kind, path)
            resettable = key in DEFAULTS or key in CLEARABLE
            if path == ("paused",):
                if item.value(path):
                    yield path
            elif not resettable or self._was_secret(history, path):
                yield path

    def secrets_of(self, resource: Resource, item: Live) -> set[Path]:
        """Return the secrets that changed since the base, or that an option sends again."""
        secrets = resource.secrets
        if self._names(resource, self.world.rotate) or "*" in self.world.rotate:
            return secrets
        secrets = {path for path in secrets if not resource.ignores(path)}
        history = [was for _, was in self.history_of(resource.address, item)]
        if any(was.version != resource.version for was in history):
            return secrets
        return {
            path
            for path in secrets
            if any(was.values.get(path) != resource.values[path] for was in history)
        }

    def _names(self, resource: Resource, texts: Iterable[str]) -> bool:
        return resource.address in texts


def is_past(item: Live, since: timedelta = timedelta()) -> bool:
    """Return whether the end of an export has passed, and the time since then."""
    end = item.value(("end_at",))
    return end is not None and end < NOW - since
