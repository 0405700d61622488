"""What the files of a world declare, now and since the git base (docs/configuration.md, git.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.model.world import Files, World

Path = tuple[str, ...]
UNSET = "${unset}"
KINDS = {"project": "projects", "batch_export": "batch_exports"}
CONFIG: Path = ("destination", "config")
DEFAULTS: Mapping[tuple[str, Path], Any] = {
    ("project", ("timezone",)): "UTC",
    ("project", ("session_recording_opt_in",)): False,
    ("batch_export", ("model",)): "events",
    ("batch_export", ("paused",)): False,
    ("batch_export", ("timezone",)): "UTC",
    ("batch_export", (*CONFIG, "port")): 5432,
    ("batch_export", (*CONFIG, "schema")): "public",
    ("batch_export", (*CONFIG, "table_name")): "events",
    ("batch_export", (*CONFIG, "file_format")): "JSONLines",
    ("batch_export", (*CONFIG, "arg")): "",
}
CLEARABLE: set[tuple[str, Path]] = {
    ("batch_export", ("end_at",)),
    ("batch_export", (*CONFIG, "compression")),
    ("batch_export", (*CONFIG, "exclude_events")),
    ("project", ("surveys_opt_in",)),
}


@dataclass(frozen=True)
class Resource:
    """A resource in one environment, with its fields by path."""

    address: str
    file: str
    parent: tuple[str, str] | None
    values: Mapping[Path, Any]
    unset: frozenset[Path]
    lifecycle: Mapping[str, Any]
    pinned: str | None = None
    absent: bool = False
    version: str | None = None

    @property
    def kind(self) -> str:
        return self.address.partition(".")[0]

    @property
    def name(self) -> str:
        return str(self.values["name",]).strip()

    @property
    def secrets(self) -> set[Path]:
        return {path for path, value in self.values.items() if is_secret(value)}

    @property
    def protected(self) -> bool:
        return bool(self.lifecycle.get("protect"))

    @property
    def former_names(self) -> list[str]:
        return [str(name).strip() for name in self.lifecycle.get("renamed_from", ())]

    def is_beside(self, name: str, address: str) -> bool:
        return bool({name, address} & set(self.lifecycle.get("beside", ())))

    def ignores(self, path: Path) -> bool:
        text = ".".join(path)
        ignored = self.lifecycle.get("ignore_changes", ())
        return any(text == item or text.startswith(f"{item}.") for item in ignored)

    def leaves_to_service(self, path: Path) -> bool:
        return any(path[: len(item)] == item for item in self.unset)


Declared = Mapping[str, Resource]


def is_secret(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("${secret:")


def canonical(kind: str, path: Path, value: Any) -> Any:
    """Return a value as it is compared: by meaning, and absent, null and default are one."""
    if value is None:
        value = DEFAULTS.get((kind, path))
    if path[-1] in ("start_at", "end_at") and value is not None:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    if path[-1] in ("exclude_events", "include_events"):
        return tuple(sorted(value)) if value else None
    if isinstance(value, bool):
        return value
    return value if value is None else str(value).strip() if path == ("name",) else str(value)


def merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a layer over a lower one."""
    result = dict(lower)
    for key, value in upper.items():
        below: Any = result.get(key)
        is_merge = isinstance(value, Mapping) and isinstance(below, Mapping) and key != "project"
        if (
            is_merge
            and key == "destination"
            and value.get("type", below.get("type")) != below.get("type")
        ):
            is_merge = False
        result[key] = merged(below, value) if is_merge else value
    return result


def variables(files: Files, environment: str) -> dict[str, Any]:
    top = files["reconciler.yaml"]
    return {**top.get("vars", {}), **top["environments"][environment].get("vars", {})}


def resolved(value: Any, known: Mapping[str, Any]) -> Any:
    """Replace references to variables."""
    if isinstance(value, Mapping):
        return {key: resolved(item, known) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item, known) for item in value]
    if isinstance(value, str):
        whole = re.fullmatch(r"\$\{var:(\w+)\}", value)
        if whole:
            return known[whole[1]]
        return re.sub(r"\$\{var:(\w+)\}", lambda match: str(known[match[1]]), value)
    return value


def loaded_files(files: Files) -> list[str]:
    """Return the names of the resource files that `resources:` selects."""
    wanted = files["reconciler.yaml"].get("resources")
    names = [name for name in files if name != "reconciler.yaml"]
    return names if wanted is None else [name for name in names if name in wanted]


def all_resources(files: Files) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the file, address and value of everything that the files contain."""
    for name in loaded_files(files):
        for kind, collection in KINDS.items():
            for key, value in files[name].get(collection, {}).items():
                yield name, f"{kind}.{key}", value


def declared(files: Files, environment: str) -> dict[str, Resource]:
    """Return the resources of an environment."""
    if environment not in files["reconciler.yaml"]["environments"]:
        return {}
    known = variables(files, environment)
    found = {}
    for name, address, value in all_resources(files):
        if environment not in value.get("environments", [environment]):
            continue
        kind = address.partition(".")[0]
        below = files["reconciler.yaml"].get("defaults", {}).get(kind, {})
        own = {key: item for key, item in value.items() if key not in ("environments", "overrides")}
        layers = [below, own, value.get("overrides", {}).get(environment, {})]
        whole: dict[str, Any] = {}
        for layer in layers:
            whole = merged(whole, layer)
        found[address] = _resource(address, name, resolved(whole, known))
    return found


def _resource(address: str, file: str, whole: Mapping[str, Any]) -> Resource:
    special = ("project", "lifecycle", "id", "state", "secret_version")
    leaves = dict(_leaves({key: value for key, value in whole.items() if key not in special}))
    parent = whole.get("project")
    if isinstance(parent, Mapping):
        ((how, text),) = parent.items()
        parent = (how, str(text))
    elif parent is not None:
        parent = ("key", f"project.{parent}")
    version, pinned = whole.get("secret_version"), whole.get("id")
    return Resource(
        address,
        file,
        parent,
        {path: value for path, value in leaves.items() if value != UNSET},
        frozenset(path for path, value in leaves.items() if value == UNSET),
        whole.get("lifecycle", {}),
        None if pinned is None else str(pinned),
        whole.get("state") == "absent",
        None if version is None else str(version),
    )


def _leaves(value: Mapping[str, Any], at: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, (*at, key))
        else:
            yield (*at, key), item


def policy_of(files: Files, environment: str) -> dict[str, Any]:
    """Return the policy of an environment: its keys replace those of the workspace."""
    top = files["reconciler.yaml"]
    return {**top.get("policy", {}), **top["environments"][environment].get("policy", {})}


@dataclass(frozen=True)
class Base:
    """The base: a commit, what was declared there and at the commits up to HEAD."""

    commit: int
    versions: Sequence[Declared]
    files: Sequence[Files]
    is_merged: bool
    kept: frozenset[str] = field(default_factory=frozenset)


def range_of(world: World, base: int, head: int) -> list[int]:
    """Return the first-parent commits up to HEAD that contain the base, oldest first."""
    chain: list[int] = []
    commit: int | None = head
    before = world.ancestors(base)
    while commit is not None and commit not in before:
        if base in world.ancestors(commit):
            chain.append(commit)
        commit = next(iter(world.commits[commit].parents), None)
    return chain[::-1]


def base_commit(world: World) -> int:
    """Return the base commit by the table of docs/git.md."""
    head, default = world.head, world.default
    ends: list[int | None] = [world.base]
    if world.mark is not None and _counts(world, world.mark):
        ends.append(world.mark)
    if world.pull:
        ends.append(default)
    if default is not None and head not in world.ancestors(default):
        ends.append(default)
    if default is None and not world.pull:
        ends.append(world.upstream)
    if not has_remote(world) and world.local is not None:
        ends.append(world.local)
    return next((world.merge_base(head, end) for end in ends if end is not None), head)


def has_remote(world: World) -> bool:
    return world.default is not None or world.upstream is not None


def _counts(world: World, mark: int) -> bool:
    is_trusted = world.default is None or mark in world.ancestors(world.default)
    return is_trusted and mark in world.ancestors(world.head)


def base_of(world: World, now: Declared) -> Base | None:
    """Return the base of a world."""
    if world.no_base:
        return None
    commit = base_commit(world)
    files = [world.commits[n].files for n in (commit, *range_of(world, commit, world.head))]
    versions = [declared(item, world.environment) for item in files]
    is_merged = not has_remote(world) or (
        world.default is not None and commit in world.ancestors(world.default)
    )
    return Base(commit, versions, files, is_merged, frozenset(_kept(world, now, versions)))


def _kept(world: World, now: Declared, versions: Sequence[Declared]) -> Iterator[str]:
    """Yield the removed resources that the tree still has, or whose `environments` changed."""
    present = checked_out(world)
    here = {address for _, address, _ in all_resources(present)}
    loaded = loaded_files(present)
    unloaded = {
        f"{kind}.{key}"
        for name, value in present.items()
        if name not in loaded and name != "reconciler.yaml"
        for kind, collection in KINDS.items()
        for key in value.get(collection, {})
    }
    files = {address: item.file for version in versions for address, item in version.items()}
    left_out = {name for name in world.sparse if name in world.commits[world.head].files}
    for address, file in files.items():
        exists = file in present and file not in loaded
        if address not in now and (
            address in here or file in left_out or exists or address in unloaded
        ):
            yield address


def checked_out(world: World) -> Files:
    """Return the files of the checkout."""
    return {name: value for name, value in world.work.items() if name not in world.sparse}
