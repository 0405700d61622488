"""Fills a new store: from a seed file, or with one organization, project and key.

A seed is YAML or JSON:

    organizations:
      - id: 4dc8564d-bd82-1065-2f40-97f7c50f67cf
        name: Acme
        projects:
          - id: 1                       # optional
            name: Web
            timezone: UTC               # any project field
            batch_exports:
              - name: Events            # any export field, secrets in the config included
                interval: hour
                destination: {type: NoOp, config: {}}
    keys:
      - value: phx_...
        scopes: ["*"]
        organizations: []               # limits; empty means none
        projects: []
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4, uuid5

import orjson
import yaml

from reconciler.emulator.clock import Clock, iso
from reconciler.emulator.refusal import Refusal
from reconciler.emulator.resources.batch_exports import CHECKS, checked_destination
from reconciler.emulator.resources.projects import new_project
from reconciler.emulator.store import Store, StoredExport

_NAMESPACE = UUID("6f0b5a9c-6d1c-4c3e-9a56-0f3d1a1c7e55")


class BadSeed(Exception):
    """The seed file does not fit; the message says where and why."""


def read_seed(path: Path) -> Mapping[str, Any]:
    """The seed file as a value. Raises BadSeed."""
    try:
        raw = path.read_bytes()
        seed = orjson.loads(raw) if path.suffix == ".json" else yaml.safe_load(raw)
    except OSError as error:
        raise BadSeed(f"{path}: {error.strerror}") from None
    except (orjson.JSONDecodeError, yaml.YAMLError) as error:
        raise BadSeed(f"{path}: {error}") from None
    if not isinstance(seed, dict) or not seed.get("organizations"):
        raise BadSeed(f"{path}: a seed is a mapping with `organizations`")
    return seed


def default_seed() -> Mapping[str, Any]:
    """One organization with one project, and one key with all scopes, all new."""
    project = {"name": "Default project"}
    return {
        "organizations": [{"id": str(uuid4()), "name": "Demo", "projects": [project]}],
        "keys": [{"value": f"phx_{secrets.token_urlsafe(32)}", "scopes": ["*"]}],
    }


def plant(store: Store, seed: Mapping[str, Any], clock: Clock) -> None:
    """Fill an empty store. Raises BadSeed for an object that the service would refuse."""
    try:
        _plant(store, seed, clock)
    except (Refusal, KeyError, TypeError, AttributeError) as error:
        detail = error.detail if isinstance(error, Refusal) else f"{type(error).__name__}: {error}"
        raise BadSeed(f"the seed does not fit: {detail}") from None


def _plant(store: Store, seed: Mapping[str, Any], clock: Clock) -> None:
    born = clock.now() - timedelta(days=30)
    for position, organization in enumerate(seed["organizations"]):
        identity = str(organization.get("id") or uuid4())
        store.add_organization(identity, {"name": organization.get("name", f"Org {position}")})
        for number, project in enumerate(organization.get("projects", ())):
            now = iso(born + timedelta(seconds=number))
            own = {name: value for name, value in project.items() if name != "batch_exports"}
            project_id = own.pop("id", None)
            body = {**new_project(str(own.get("name", "Default project")), now), **own}
            project_id = store.add_project(identity, body, identity=project_id)
            store.add_exports(
                [
                    _export(each, project_id, iso(born + timedelta(seconds=index)), index)
                    for index, each in enumerate(project.get("batch_exports", ()))
                ]
            )
    for key in seed.get("keys") or default_seed()["keys"]:
        body = {name: value for name, value in key.items() if name != "value"}
        store.add_key(str(key["value"]), {"scopes": ["*"], **body})


def _export(each: Mapping[str, Any], project: int, now: str, index: int) -> StoredExport:
    identity = each.get("id") or str(uuid5(_NAMESPACE, f"{project}/{index}"))
    destination = checked_destination(each["destination"], partial=True, stored={})
    body = {name: each[name] for name in CHECKS if name in each}
    body |= {
        "destination": destination,
        "interval": each.get("interval", "hour"),
        "created_at": each.get("created_at", now),
        "last_updated_at": each.get("last_updated_at", now),
    }
    return StoredExport(str(identity), project, body)
