"""Inputs of users of the service: files, options and requests of the switchboard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml


class BadInput(Exception):
    """An invalid input; the message says where and why."""


def read_yaml(path: Path) -> Any:
    """Return the value of a YAML or JSON file. Raise BadInput."""
    try:
        raw = path.read_bytes()
        return orjson.loads(raw) if path.suffix == ".json" else yaml.safe_load(raw)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    except (orjson.JSONDecodeError, yaml.YAMLError) as error:
        raise BadInput(f"{path}: {error}") from None


def list_of(value: Any, name: str) -> Sequence[Any]:
    """Return a list, or the list under a name of a mapping. Raise BadInput."""
    items = value.get(name) if isinstance(value, Mapping) else value
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise BadInput(f"{name} must be a list")
    return items


def mapping_of(value: Any, name: str, allowed: Iterable[str] | None = None) -> Mapping[str, Any]:
    """Return a mapping without other keys than the allowed ones. Raise BadInput."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{name} must be a mapping")
    if allowed is not None:
        names = list(allowed)
        unknown = sorted(str(key) for key in value if key not in names)
        if unknown:
            raise BadInput(f"{name}: unknown key {unknown[0]!r}; allowed: {', '.join(names)}")
    return value


def typed(name: str, value: Any, kind: type) -> Any:
    """Return a value of a type; float takes any number. A boolean is no number. Raise BadInput."""
    kinds = (int, float) if kind is float else (kind,)
    if not isinstance(value, kinds) or isinstance(value, bool) is not (kind is bool):
        raise BadInput(f"{name} must be of type {kind.__name__.lower()}")
    return value
