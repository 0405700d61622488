"""Files and live state that say only what a test is about."""

from __future__ import annotations

import json
from typing import Any

from tests.support.simulated import no_op_export

NOOP = {"type": "NoOp", "config": {}}
WEB = {"web": {"name": "Web"}}


def declared(projects: dict[str, Any] | None = None, **exports: dict[str, Any]) -> str:
    """Return the text of a file with the project `web`, and exports in it named as their keys."""
    own = {
        key: {"project": "web", **no_op_export(key), **fields} for key, fields in exports.items()
    }
    return json.dumps({"projects": projects or WEB, "batch_exports": own}, indent=1)


def workspace(
    settings: str = "", projects: dict[str, Any] | None = None, **exports: dict[str, Any]
) -> dict[str, str]:
    """Return the files of a workspace with such a file."""
    text = declared(projects, **exports)
    return {"reconciler.yaml": f"version: 1\n{settings}", "resources.yaml": text}


def seed(*projects: dict[str, Any], **key: Any) -> dict[str, Any]:
    """Return a service with an organization and a key."""
    organization = {"id": "org", "name": "O", "projects": list(projects)}
    return {"organizations": [organization], "keys": [{"value": "phx_key", **key}]}


def s3(access: str, secret: str, **fields: Any) -> dict[str, Any]:
    """Return the fields of an export to a bucket with two secrets."""
    config = {"bucket_name": "b", "region": "us-east-1", "prefix": "p"}
    config |= {"aws_access_key_id": access, "aws_secret_access_key": secret}
    return {"destination": {"type": "S3", "config": config}, **fields}
