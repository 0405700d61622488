"""The lists of what references may read, in a workspace file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.model.connection import Trusted
from reconciler.model.values import JSON, references_in
from reconciler.providers.env import API_KEY


def declared_names(workspace: Mapping[str, Any], *, allow_exec: bool) -> Trusted:
    """Return the lists `env`, `secrets` and `secret_files` of a workspace file."""
    return Trusted(
        env=frozenset(_texts(workspace.get("env"))),
        secrets=frozenset(_texts(workspace.get("secrets"))),
        secret_files=tuple(_texts(workspace.get("secret_files"))),
        allow_exec=allow_exec,
    )


def key_variables(workspace: Mapping[str, Any]) -> frozenset[str]:
    """Return the environment variables with the API keys of all environments."""
    environments = workspace.get("environments")
    entries = environments.values() if isinstance(environments, dict) else ()
    keys = (entry.get("api_key") for entry in entries if isinstance(entry, dict))
    texts = (key for key in keys if isinstance(key, str))
    references = (reference for text in texts for reference in references_in(text))
    names = (
        reference.argument.partition(":-")[0]
        for reference in references
        if reference.provider == "env"
    )
    return frozenset({API_KEY, *names})


def _texts(value: JSON) -> list[str]:
    """Return the texts of a list. Other values are reported by the schema."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
