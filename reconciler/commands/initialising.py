"""The use case `init`: a new workspace, with the schemas for editors beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from reconciler.authoring.writing import write_files
from reconciler.authoring.yaml_text import yaml_text
from reconciler.errors import BadUsage, InvalidConfiguration, ReconcilerError
from reconciler.importing.placing import SCHEMA_FILE
from reconciler.kinds import all_kinds
from reconciler.model.schema_files import schema
from reconciler.workspace import load
from reconciler.workspace.sources import WORKSPACE_FILE

_WORKSPACE_SCHEMA_FILE = ".reconciler/workspace.schema.json"
_RESOURCES_FILE = "resources.yaml"
_KEY_VARIABLE = "RECONCILER_API_KEY"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

_WORKSPACE = """\
# yaml-language-server: $schema=.reconciler/workspace.schema.json
# The workspace: where its resources go, and what may be done to them.
version: 1

# Which files hold resources. Left out, it is every *.yaml and *.yml below, this file aside.
# resources: ["projects/*.yaml"]

# What a resource has unless it says otherwise, by kind.
# defaults:
#   batch_export: {{model: events, interval: hour}}

# Nothing is deleted that isn't told to be: by `state: absent` in a resource, or by `prune` here.
# policy:
#   prune: git # what was removed from the files since the git base
#   ignore: ["tmp-*"] # live names that are never touched
#   max_deletes: 3 # more than that, and nothing at all is applied

environments:
  {environment}:
    {base_url}
    {organization}
    api_key: ${{env:{key_variable}}} # never the key itself
    # vars: {{bucket: acme-{plain}}} # ${{var:bucket}} in a resource
"""

_RESOURCES = """\
# yaml-language-server: $schema=.reconciler/resources.schema.json
# Projects and batch exports, under keys that stay theirs for life. What is live already is written
# into files by `reconciler import`; to make something new, begin with these lines:
#
# projects:
#   web:
#     name: Web shop
#
# batch_exports:
#   web-events:
#     project: web
#     name: Web events
#     interval: hour
#     destination:
#       type: S3
#       config:
#         bucket_name: acme
#         region: eu-central-1
#         prefix: web/
#         aws_access_key_id: ${secret:env:AWS_ACCESS_KEY_ID}
#         aws_secret_access_key: ${secret:env:AWS_SECRET_ACCESS_KEY}
"""


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What a new workspace is to say.

    What is None is taken from the variables RECONCILER_BASE_URL and RECONCILER_ORGANIZATION, and
    left open where they are not set. `examples` adds a file of resources, all commented out.
    """

    folder: Path
    environment: str = "production"
    base_url: str | None = None
    organization: str | None = None
    key_variable: str = _KEY_VARIABLE
    examples: bool = True


def initialise(options: InitOptions, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Write a workspace; the names of its files.

    Raises:
        ReconcilerError: there is one already; nothing is written over.
        BadUsage: a name that can't be one.
        InvalidConfiguration: an address that is none, or a mistake in files that were there.

    """
    if (options.folder / WORKSPACE_FILE).exists():
        raise ReconcilerError(
            f"there is a workspace already: {options.folder / WORKSPACE_FILE}",
            hint="add what is live with `reconciler import`; --schemas writes just the schemas "
            "for editors anew",
        )
    _check_names(options)
    files = {WORKSPACE_FILE: _workspace_text(options, environ), **_schemas()}
    if options.examples and not (options.folder / _RESOURCES_FILE).exists():
        files[_RESOURCES_FILE] = _RESOURCES
    new = not options.folder.exists()
    _make(options.folder)
    try:
        _check_drafts(options, environ, files)
    except ReconcilerError:
        if new:
            options.folder.rmdir()
        raise
    write_files(options.folder, files)
    return tuple(files)


def refresh_schemas(folder: Path) -> tuple[str, ...]:
    """Write the schemas for editors anew, as this version has them; the names of the files.

    Raises ReconcilerError where there is no workspace.
    """
    if not (folder / WORKSPACE_FILE).exists():
        raise ReconcilerError(
            f"there is no {WORKSPACE_FILE} in {folder}", hint="make one: reconciler init"
        )
    files = _schemas()
    write_files(folder, files)
    return tuple(files)


def check_reachable(options: InitOptions, environ: Mapping[str, str]) -> None:
    """Whether a new workspace could be imported into at once. Raises BadUsage that says what lacks.

    Asked before anything is written.
    """
    lacking = [
        f"{flag} (or the variable {variable})"
        for flag, given, variable in (
            ("--base-url", options.base_url, "RECONCILER_BASE_URL"),
            ("--organization", options.organization, "RECONCILER_ORGANIZATION"),
        )
        if not (given or environ.get(variable))
    ]
    if not environ.get(options.key_variable):
        lacking.append(f"an API key in the variable {options.key_variable}")
    if lacking:
        raise BadUsage(f"--import needs {', and '.join(lacking)}")


def _workspace_text(options: InitOptions, environ: Mapping[str, str]) -> str:
    base_url = options.base_url or environ.get("RECONCILER_BASE_URL")
    organization = options.organization or environ.get("RECONCILER_ORGANIZATION")
    return _WORKSPACE.format(
        plain=options.environment,
        environment=yaml_text({options.environment: 1}).removesuffix(": 1\n"),
        base_url=_line("base_url", base_url, "https://eu.posthog.com"),
        organization=_line("organization", organization, "its id, as in the settings"),
        key_variable=options.key_variable,
    )


def _line(name: str, value: str | None, example: str) -> str:
    if value is not None:
        return yaml_text({name: value}).rstrip("\n")
    return f"# {name}: {example} # or the variable RECONCILER_{name.upper()}"


def _check_names(options: InitOptions) -> None:
    if not _VARIABLE.fullmatch(options.key_variable) or options.key_variable.startswith("phx_"):
        # It isn't repeated: it may be a key that somebody gave in the place of a name.
        raise BadUsage(
            "--api-key-variable takes the name of an environment variable, not a key",
            hint="such as PRODUCTION_API_KEY",
        )
    if not _ENVIRONMENT.fullmatch(options.environment):
        raise BadUsage(
            f"'{options.environment}' can't be the name of an environment",
            hint="use letters, digits, _ - and . only",
        )


def _schemas() -> dict[str, str]:
    names = {_WORKSPACE_SCHEMA_FILE: "editor/workspace", SCHEMA_FILE: "editor/resources"}
    return {
        file: orjson.dumps(
            schema(name), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        ).decode()
        for file, name in names.items()
    }


def _check_drafts(
    options: InitOptions, environ: Mapping[str, str], files: Mapping[str, str]
) -> None:
    """Whether the workspace is valid, with what the folder holds; before a file is written."""
    try:
        load(
            options.folder,
            kinds=all_kinds(),
            environment=options.environment,
            environ=environ,
            drafts=files,
        )
    except InvalidConfiguration as invalid:
        places = {each.at.file for each in invalid.diagnostics if each.at is not None}
        others = sorted(places - set(files))
        if not others:
            raise
        raise ReconcilerError(
            f"a workspace reads every YAML file below it, and these hold no resources, or have "
            f"mistakes: {', '.join(others[:5])}{' …' if len(others) > 5 else ''}",
            hint="give it a folder of its own: reconciler init -C pipelines",
        ) from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReconcilerError(f"{folder} can't be made: {error.strerror}") from None
