"""What pull, compare and promote do with the files (docs/operations.md).

Imports nothing of what it judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.model.declared import (
    Declared,
    Path,
    Resource,
    all_resources,
    canonical,
    declared,
    is_secret,
)
from tests.model.outcome import Drifted
from tests.model.world import Files


@dataclass
class Differences:
    """How two environments differ: fields by address, whether intended, and what one lacks."""

    fields: dict[tuple[str, Path], bool] = field(default_factory=dict)
    only_first: set[str] = field(default_factory=set)
    only_second: set[str] = field(default_factory=set)

    @property
    def unintended(self) -> set[tuple[str, Path]]:
        return {key for key, is_intended in self.fields.items() if not is_intended}


def compared(files: Files, first: str, second: str) -> Differences:
    """Return how two environments of the files differ."""
    one, two = declared(files, first), declared(files, second)
    bodies = {address: body for _, address, body in all_resources(files)}
    result = Differences(only_first=set(one) - set(two), only_second=set(two) - set(one))
    for address in one.keys() & two.keys():
        layers = [bodies[address].get("overrides", {}).get(name, {}) for name in (first, second)]
        for path in one[address].values.keys() | two[address].values.keys():
            values = [item[address].values.get(path) for item in (one, two)]
            set_in = [path in item[address].values for item in (one, two)]
            kind = one[address].kind
            if set_in[0] == set_in[1] and _same(kind, path, *values):
                continue
            both = all(_sets(layer, path) for layer in layers)
            is_intended = (
                both
                or path == ("name",)
                or any(map(is_secret, values))
                or _is_reference(files, address, path)
            )
            result.fields[address, path] = is_intended
    return result


def _same(kind: str, path: Path, one: Any, two: Any) -> bool:
    return bool(canonical(kind, path, one) == canonical(kind, path, two))


def _sets(layer: Mapping[str, Any], path: Path) -> bool:
    value: Any = layer
    for part in path:
        if not isinstance(value, Mapping) or part not in value:
            return False
        value = value[part]
    return True


def _is_reference(files: Files, address: str, path: Path) -> bool:
    """Return whether a field of a resource is a variable, in the resource or in no override."""
    value: Any = next(body for _, key, body in all_resources(files) if key == address)
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return isinstance(value, str) and "${var:" in value


def pulled(
    now: Declared, live: Mapping[str, Mapping[Path, Any]], drift: Drifted, conflicts: set[Any]
) -> dict[str, dict[Path, Any]]:
    """Return the values of the resources after their drift was written into the files."""
    after = {}
    for address, resource in now.items():
        values = comparable(resource)
        for path in drift.fields.get(address, ()):
            if (address, path) not in conflicts:
                values[path] = canonical(resource.kind, path, live[address].get(path))
        after[address] = values
    return after


def comparable(resource: Resource) -> dict[Path, Any]:
    """Return the fields of a resource as they are compared."""
    return {path: canonical(resource.kind, path, value) for path, value in resource.values.items()}
