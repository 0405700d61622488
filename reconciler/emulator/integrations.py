"""Integrations of a project: credentials that exports use (service.md, 20).

No account or server is contacted, so any credentials are accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from reconciler.emulator.access import Call, project_in
from reconciler.emulator.answers import JSONAnswer, body_of, page
from reconciler.emulator.clock import iso
from reconciler.emulator.destination_rules import integration_id
from reconciler.emulator.refusal import invalid, not_found
from reconciler.emulator.store import StoredExport
from reconciler.emulator.world import World

_SERVER = ("host", "port", "user", "ssl_mode", "ssl_root_cert")
_AWS = ("name", "aws_account_id", "aws_role_arn")
_SHOWN: Mapping[str, tuple[str, ...]] = {
    "aws-s3": _AWS,
    "s3-compatible": ("name", "endpoint_url"),
    "snowflake": ("name", "account", "user", "authentication_type"),
    "aws-redshift": (*_AWS, *_SERVER),
    "postgresql": _SERVER,
    "google-cloud-service-account": ("project_id", "service_account_email"),
    "databricks": ("server_hostname",),
    "azure-blob": (),
}
"""The keys of `config` that answers have, by kind."""
_ACCOUNTS = {"aws_account_id": "AWS account", "aws_role_arn": "AWS role"}
_UNIQUE: Mapping[str, tuple[str, ...]] = {
    "postgresql": ("host", "port", "user"),
    "google-cloud-service-account": ("service_account_email",),
    "databricks": ("server_hostname",),
    "azure-blob": ("account_name",),
}
"""What distinguishes the integrations of a project and kind; others have a name."""


class Integrations:
    """The operations, on the project path only. There is no update."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._store = world.store

    async def listed(self, call: Call) -> Response:
        """GET the list, oldest first; `?kind=` filters it.

        Before May 2026 a key saw the kind `github` only: `integration_kinds` of a key in the seed.
        """
        kinds = call.caller.record.get("integration_kinds")
        wanted = call.request.query_params.get("kind")
        items = [
            (identity, body)
            for identity, body in self._store.integrations(project_in(call).id)
            if wanted in (None, body["kind"]) and (kinds is None or body["kind"] in kinds)
        ]

        def read(limit: int, offset: int) -> list[dict[str, Any]]:
            return [_shown(*item) for item in items[offset : offset + limit]]

        return page(call.request, len(items), read)

    async def retrieved(self, call: Call) -> Response:
        """GET one."""
        return JSONAnswer(_shown(*self._named(call)))

    async def created(self, call: Call) -> Response:
        """POST a new one, or the same again: the one with its name or its server gets the config.

        A name that is in use is refused.
        """
        sent = await body_of(call.request)
        kind, config = sent.get("kind"), sent.get("config")
        if not isinstance(kind, str) or kind not in _SHOWN:
            raise invalid("kind", f'"{kind}" is not a valid choice.', "invalid_choice")
        if not isinstance(config, dict):
            raise invalid("config", "This field is required.", "required")
        body = {"project": project_in(call).id, "kind": kind, "config": config, "keyless": False}
        body["created_at"] = iso(self._world.clock.now())
        for identity, stored in self._store.integrations(project_in(call).id):
            if stored["kind"] == kind and _key(kind, stored.get("config") or {}) == _key(
                kind, config
            ):
                if "name" in config:
                    raise invalid(None, f"An integration named '{config['name']}' already exists.")
                self._store.write_integration(identity, {**stored, "config": config})
                return JSONAnswer(_shown(identity, {**stored, "config": config}), status_code=201)
        identity = self._store.add_integration(None, body)
        return JSONAnswer(_shown(identity, body), status_code=201)

    async def destroyed(self, call: Call) -> Response:
        """DELETE one that no export uses."""
        identity, body = self._named(call)
        exports = self._store.exports([body["project"]])
        users = sorted(export.body["name"] for export in exports if identity in _used_by(export))
        if users:
            raise invalid(None, f"This integration is used by batch exports: {', '.join(users)}.")
        self._store.remove_integration(identity)
        return Response(status_code=204)

    def _named(self, call: Call) -> tuple[int, dict[str, Any]]:
        """Return the integration that the path names. Raise Refusal (404)."""
        text = call.request.path_params["id"]
        identity = int(text) if text.isascii() and text.isdigit() else -1
        body = self._store.integration(identity)
        if body is None or body["project"] != project_in(call).id:
            raise not_found()
        return identity, body


def _used_by(export: StoredExport) -> set[int | None]:
    """Return the integrations that an export uses."""
    destination = export.body["destination"]
    inputs = destination["config"].get("copy_inputs")
    inputs = inputs if isinstance(inputs, dict) else {}
    below = (integration_id(inputs.get(name)) for name in ("authorization", "bucket_credentials"))
    return {destination.get("integration"), *below}


def _key(kind: str, config: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what distinguishes an integration from others of its kind."""
    if "name" in config:
        return ("name", config["name"])
    return tuple(config.get(name) for name in _UNIQUE.get(kind, _SERVER[:3]))


def _shown(identity: int, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an answer shows: no secrets."""
    config = body.get("config") or {}
    shown = {name: config[name] for name in _SHOWN.get(body["kind"], ()) if name in config}
    return {
        "id": identity,
        "kind": body["kind"],
        "config": shown,
        "created_at": body.get("created_at"),
        "created_by": None,
        "errors": "",
        "display_name": _display_name(identity, config),
    }


def _display_name(identity: int, config: Mapping[str, Any]) -> str:
    if "account_name" in config:
        return f"{identity}: {config['account_name']}"
    name = str(config.get("name", ""))
    accounts = (f"{word} {config[key]}" for key, word in _ACCOUNTS.items() if key in config)
    account = next(accounts, "")
    return f"{name} ({account})" if account else name or str(identity)
