"""The use case `init`: write the files of a new workspace."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

import orjson
from msgspec import Struct

from reconciler.commands.import_.run import SCHEMA_FILE
from reconciler.commands.runtime import Runtime, Workspace
from reconciler.commands.session import Session
from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.editing.writing import write_files
from reconciler.editing.yaml_text import yaml_text
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.model.connection import ADDRESS, API_KEY
from reconciler.model.schemas import schema
from reconciler.paths import WORKSPACE_FILE

_WORKSPACE_SCHEMA_FILE = ".reconciler/workspace.schema.json"
_IGNORED = {".reconciler/.gitignore": "*\n"}
"""Keeps the schemas, which each version writes again, out of commits."""
_SAVED = ("plan", "event")
"""Schemas of JSON that other programs read. Files do not refer to them."""
_RESOURCES_FILE = "resources.yaml"
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class InitOptions(Struct, frozen=True):
    """The content of a new workspace. `base_url` and `organization` are None if unknown."""

    folder: Path
    environment: str
    base_url: str | None = None
    organization: str | None = None


def initialise(options: InitOptions, runtime: Runtime) -> tuple[str, ...]:
    """Write a workspace and return the names of its files.

    Raises:
        ReconcilerError: a workspace already exists; nothing is overwritten.
        BadUsage: an invalid name or base URL.
        InvalidConfiguration: an error in the new files.

    """
    if has_workspace(options.folder):
        raise ReconcilerError(
            f"a workspace already exists: {options.folder / WORKSPACE_FILE}",
            hint="add live objects with `reconciler import`, or update only the schemas for "
            "editors with --schemas",
        )
    if not _ENVIRONMENT.fullmatch(options.environment):
        raise BadUsage(
            f"invalid environment name '{options.environment}'",
            hint="use letters, digits, _ - and . only",
        )
    files = {WORKSPACE_FILE: _workspace_text(options), **_schemas(), **_IGNORED}
    if not (options.folder / _RESOURCES_FILE).exists():
        files[_RESOURCES_FILE] = _template(_RESOURCES_FILE)
    new = not options.folder.exists()
    _make(options.folder)
    workspace = Workspace(
        options.folder, options.environment, trust_workspace=True, runtime=runtime
    )
    try:
        Session.open(workspace, drafts=files)
    except InvalidConfiguration as invalid:
        if new:
            options.folder.rmdir()
        raise _explained(invalid, files) from None
    write_files(options.folder, files)
    return tuple(files)


def has_workspace(folder: Path) -> bool:
    """Return whether a folder has the file of a workspace."""
    return (folder / WORKSPACE_FILE).exists()


def refresh_schemas(folder: Path) -> tuple[str, ...]:
    """Write the schemas of this version: of the files, saved plans and events.

    Existing ones are overwritten. Returns the file names.

    Raises ReconcilerError if there is no workspace.
    """
    if not has_workspace(folder):
        raise ReconcilerError(
            f"no {WORKSPACE_FILE} in {folder}", hint="create one with `reconciler init`"
        )
    files = {**_schemas(), **{f".reconciler/{name}.schema.json": _schema(name) for name in _SAVED}}
    write_files(folder, files)
    return tuple(files)


def _template(name: str) -> str:
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _workspace_text(options: InitOptions) -> str:
    return _template(WORKSPACE_FILE).format(
        plain=options.environment,
        environment=yaml_text({options.environment: 1}).removesuffix(": 1\n"),
        base_url=_line("base_url", options.base_url, "https://eu.posthog.com"),
        organization=_line("organization", options.organization, "id-from-its-settings"),
        key_variable=API_KEY,
    )


def _line(name: str, value: str | None, example: str) -> str:
    if value is not None:
        return yaml_text({name: value}).rstrip("\n")
    return f"# {name}: {example} # or the variable {ADDRESS[name]}"


def _schemas() -> dict[str, str]:
    names = {_WORKSPACE_SCHEMA_FILE: "editor/workspace", SCHEMA_FILE: "editor/resources"}
    return {file: _schema(name) for file, name in names.items()}


def _schema(name: str) -> str:
    layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(schema(name), option=layout).decode()


def _explained(invalid: InvalidConfiguration, files: Mapping[str, str]) -> ReconcilerError:
    """Return the error of an option, whose file does not exist yet, or of a file in the way."""
    first = next(item for item in invalid.diagnostics if item.level is Level.ERROR)
    if first.at is None or first.at.file in files:
        return BadUsage(first.message.replace("base_url", "--base-url", 1), hint=first.hint)
    return ReconcilerError(
        f"an existing YAML file below the workspace is not valid: {first.at}: {first.message}",
        hint="use a separate folder: reconciler init -C pipelines",
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReconcilerError(f"{folder} can't be created: {error.strerror}") from None
