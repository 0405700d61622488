"""What the files of a world declare (docs/configuration.md). Fields have dotted paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.model.world import Files, Sent

UNSET = "${unset}"
KINDS = {"project": "projects", "batch_export": "batch_exports"}
SPECIAL = ("project", "lifecycle", "id", "state", "secret_version")
TYPE, INTEGRATION = "destination.type", "destination.integration"
CONFIG = "destination.config."
# What a removed field is reset to.
DEFAULTS: dict[str, Any] = {
    "timezone": "UTC",
    "model": "events",
    "paused": False,
    f"{CONFIG}arg": "",
}
DEFAULTS |= {f"{CONFIG}schema": "public", f"{CONFIG}table_name": "events"}
DEFAULTS |= dict.fromkeys(("end_at", "surveys_opt_in", f"{CONFIG}exclude_events"))


def canonical(path: str, value: Any) -> Any:
    """Return a value as it is compared: by meaning, and absent, null and default are one."""
    if value is None:
        return DEFAULTS.get(path)
    if path == "end_at":
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    if path.endswith("exclude_events"):
        return tuple(sorted(value)) or None
    return value if isinstance(value, bool) else str(value).strip()


@dataclass(frozen=True)
class Resource:
    """A resource in one environment. `parent` is how its project is named, and the name."""

    address: str
    file: str = field(compare=False)
    parent: tuple[str, str] | None
    values: Mapping[str, Any]
    unset: frozenset[str]
    lifecycle: Mapping[str, Any]
    pinned: str | None
    absent: bool
    version: str | None

    def value(self, path: str) -> Any:
        return canonical(path, self.values.get(path))

    @property
    def kind(self) -> str:
        return self.address.partition(".")[0]

    @property
    def name(self) -> str:
        return str(self.value("name"))

    @property
    def names(self) -> list[str]:
        """The name and the former ones."""
        return [self.name, *map(str.strip, self.lifecycle.get("renamed_from", ()))]

    @property
    def secrets(self) -> set[str]:
        return {path for path, value in self.values.items() if str(value).startswith("${secret:")}

    @property
    def protected(self) -> bool:
        return bool(self.lifecycle.get("protect"))

    def ignores(self, path: str) -> bool:
        ignored = self.lifecycle.get("ignore_changes", ())
        return any(f"{path}.".startswith(f"{item}.") for item in ignored)


Declared = Mapping[str, Resource]


def merged(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a layer over a lower one. Another type replaces the destination."""
    result = dict(lower)
    for key, value in upper.items():
        below: Any = result.get(key)
        is_mapping = isinstance(value, Mapping) and isinstance(below, Mapping)
        is_other = is_mapping and value.get("type", below.get("type")) != below.get("type")
        is_merged = is_mapping and key != "project" and not (is_other and "type" in below)
        result[key] = merged(below, value) if is_merged else value
    return result


def environment_of(files: Files, environment: str, key: str) -> dict[str, Any]:
    """Return `vars` or `policy`: the keys of an environment replace those of the workspace."""
    top = files["reconciler.yaml"]
    return {**top.get(key, {}), **top["environments"][environment].get(key, {})}


def all_resources(files: Files) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the file, address and value of everything that the files contain."""
    for name in files:
        for kind, collection in KINDS.items():
            for key, value in files[name].get(collection, {}).items():
                yield name, f"{kind}.{key}", value


def declared(files: Files, environment: str) -> dict[str, Resource]:
    """Return the resources of an environment, in layers.

    These are the defaults of the workspace and of the file, the resource and its override.
    """
    top, found = files["reconciler.yaml"], {}
    loaded = top.get("resources", files)
    for name, address, value in all_resources(files):
        is_known = environment in top["environments"] and name in loaded
        if not is_known or environment not in value.get("environments", [environment]):
            continue
        kind = address.partition(".")[0]
        own = {key: item for key, item in value.items() if key not in ("environments", "overrides")}
        layers = (item.get("defaults", {}).get(kind, {}) for item in (top, files[name]))
        whole = merged(merged(*layers), own)
        whole = merged(whole, value.get("overrides", {}).get(environment, {}))
        found[address] = _resource(address, name, whole, environment_of(files, environment, "vars"))
    return found


def _resource(address: str, file: str, whole: Body, known: Body) -> Resource:
    values = {
        path: known[value[6:-1]] if str(value).startswith("${var:") else value
        for path, value in leaves({key: x for key, x in whole.items() if key not in SPECIAL})
    }
    unset = frozenset(path for path, value in values.items() if value == UNSET)
    values = {path: value for path, value in values.items() if path not in unset}
    parent, own = whole.get("project"), whole.get("lifecycle", {})
    lifecycle = {key: value for key, value in own.items() if value}
    if isinstance(parent, Mapping):
        parent = next((how, str(text).strip()) for how, text in parent.items())
    elif parent is not None:
        parent = ("key", f"project.{parent}")
    absent, pinned = whole.get("state") == "absent", whole.get("id")
    version = whole.get("secret_version")
    return Resource(address, file, parent, values, unset, lifecycle, pinned, absent, version)


Body = Mapping[str, Any]


def leaves(value: Body, before: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from leaves(item, f"{before}{key}.")
        else:
            yield f"{before}{key}", item


def sent_by(resource: Resource | None) -> Sent | None:
    """Return what decides the secrets of a resource, None without secrets."""
    if resource is None or not resource.secrets:
        return None
    texts = sorted(f"{path}={resource.values[path]}=" for path in resource.secrets)
    return (resource.version or "", *texts)
