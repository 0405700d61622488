"""`reconciler init`: write the files of a new workspace, and the pipeline of a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import click
import orjson
from msgspec import Struct

from reconciler.commands.command import command, option
from reconciler.commands.options import new_folder_option, next_command, runtime
from reconciler.commands.process import write_note, write_result
from reconciler.commands.screen import path_in_repository
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.diagnostics import InvalidConfiguration, Level
from reconciler.editing.writing import write_files
from reconciler.editing.yaml_text import yaml_text
from reconciler.errors import BadUsage, ReconcilerError
from reconciler.exit_codes import ExitCode
from reconciler.model.schemas import schema
from reconciler.model.settings import ADDRESS, API_KEY
from reconciler.model.text import printable, quoted
from reconciler.packaged import packaged
from reconciler.paths import WORKSPACE_FILE
from reconciler.version import REPOSITORY

SCHEMA_FILE = ".reconciler/resources.schema.json"
"""The schema of resource files inside a workspace, for editors."""
_WORKSPACE_SCHEMA_FILE = ".reconciler/workspace.schema.json"
_IGNORED = {".reconciler/.gitignore": "*\n"}
"""Keeps the schemas, which each version writes again, out of commits."""
_SAVED = ("plan", "event")
"""Schemas of JSON that other programs read. Files do not refer to them."""
_RESOURCES_FILE = "resources.yaml"
_ENVIRONMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


_WORKFLOWS = ("plan", "comment", "apply", "drift")
RECIPES: Mapping[str, Mapping[str, str]] = {
    "github": {
        f".github/workflows/reconciler-{name}.yml": f"github/reconciler-{name}.yml"
        for name in _WORKFLOWS
    },
    "gitlab": {
        ".gitlab/reconciler.yml": "gitlab/environment.yml",
        ".gitlab/reconciler-component.yml": "gitlab/reconciler.yml",
        ".gitlab-ci.yml": "gitlab/gitlab-ci.yml",
    },
    "azure": {".azure-pipelines/reconciler.yml": "azure/reconciler.yml"},
}
"""The files of each host in a repository, and in the folder of recipes.

The first one names the workspace and the environment.
"""

_SHARED = (".gitlab/reconciler-component.yml", ".gitlab-ci.yml")
"""The files that all environments use."""
_HEAD = "# reconciler init --ci"
"""Begins the first line of a file, which names the workspace and the environment."""
_PLAIN = re.compile(r"[\w./ -]+")
_ADDRESS = re.compile(r"https?://[\w.:/\[\]-]+")


@command(
    "init",
    examples=(
        (
            "init --base-url https://eu.posthog.com --organization 0188461e-…",
            "Create a workspace in the current folder",
        ),
        ("init --ci github -C pipelines", "Add workflows for a workspace to its repository"),
    ),
    page="docs/adopt.md",
)
@new_folder_option
@option(
    "-e",
    "--environment",
    default="production",
    show_default=True,
    metavar="NAME",
    help="Name of the first environment.",
)
@option(
    "--base-url",
    envvar=ADDRESS["base_url"],
    metavar="URL",
    help=f"Address of the service. [{ADDRESS['base_url']}]",
)
@option(
    "--organization",
    envvar=ADDRESS["organization"],
    metavar="ID",
    help=f"Id of the organization. [{ADDRESS['organization']}]",
)
@option(
    "--ci",
    "host",
    type=click.Choice(tuple(RECIPES)),
    help="Also write a CI pipeline. In an existing workspace, write only that.",
)
@option(
    "--schemas",
    is_flag=True,
    help="Only write JSON Schemas to .reconciler/: of files, plans, events.",
)
def init_command(*, schemas: bool, host: str | None, **options: Any) -> int:
    """Create a workspace, with comments that explain its files.

    The schemas for editors go into .reconciler/, and the files refer to them. Existing files are
    not overwritten.
    """
    workspace = InitOptions(**options)
    if schemas:
        _print_files(refresh_schemas(workspace.folder))
        return ExitCode.FINE
    is_new = host is None or not has_workspace(workspace.folder)
    if is_new:
        _print_files(initialise(workspace, runtime()))
    if host is not None:
        recipe = write_recipe(host, workspace)
        _print_files(recipe.written)
        for name in recipe.kept:
            write_note(f"kept {printable(name)}, which exists\n")
        write_note(recipe.next_steps)
    if is_new:
        importing, planning = next_command("import"), next_command("plan")
        write_note(f"next: add resources or run `{importing}`, then `{planning}`\n")
    return ExitCode.FINE


def _print_files(files: tuple[str, ...]) -> None:
    write_result("".join(f"+ {printable(name)}\n" for name in files))


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
    from reconciler.commands.session import open_session

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
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReconcilerError(f"{options.folder} can't be created: {error.strerror}") from None
    workspace = Workspace(
        options.folder, options.environment, trust_workspace=True, runtime=runtime
    )
    try:
        open_session(workspace, drafts=files)
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
    return packaged("commands").joinpath("templates", name).read_text(encoding="utf-8")


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


class WrittenRecipe(Struct, frozen=True):
    """The files that were written, those that existed and were kept, and what is left to do."""

    written: tuple[str, ...]
    kept: tuple[str, ...]
    next_steps: str


def write_recipe(host: str, options: InitOptions) -> WrittenRecipe:
    """Write the recipe of a host for a workspace and an environment into its repository.

    The address is that of the workspace, or else that of the options; the branch is the default
    branch of origin, or else the current one.

    Raises:
        BadUsage: an unknown environment, or a name that could be read as syntax of a pipeline.
        ReconcilerError: a file can't be written.

    """
    folder, environment = options.folder, options.environment
    # Without variables, which would name the checkout of a job.
    path = path_in_repository(folder, {}) or "."
    root = folder.resolve()
    for _ in PurePosixPath(path).parts:
        root = root.parent
    base_url, organization = _connection(options)
    source, commit = _installed_from()
    head = f'{_HEAD} {host} -C "{path}" -e "{environment}"\n'
    suffix = _suffix(root / next(iter(RECIPES[host])), head, path, environment)
    values = {
        "WORKSPACE": path,
        "ENVIRONMENT": environment,
        "BRANCH": _default_branch(folder),
        "BASE_URL": base_url.rstrip("/") if base_url else "https://eu.posthog.com",
        "SOURCE": source,
        "COMMIT": commit or "FULL-COMMIT-ID",
        # The ends of the names of files, secrets and workflows.
        "SUFFIX": suffix,
        "END": suffix.upper().replace("-", "_"),
        "TITLE": suffix.replace("-", " ", 1),
        # What starts a pipeline.
        "BELOW": "" if path == "." else f"{path}/",
        "FOLDER": "*" if path == "." else path,
    }
    _check(values)
    sources = {_name(name, suffix): source for name, source in RECIPES[host].items()}
    kept = tuple(name for name in sources if (root / name).exists())
    texts = {}
    for name, file in sources.items():
        if name not in kept:
            text = filled(packaged("recipes").joinpath(file).read_text(encoding="utf-8"), values)
            texts[name] = text if name in _SHARED else head + text
    write_files(root, texts)
    values["ORGANIZATION"] = printable(organization or "the id of the organization")
    steps = filled(_template(f"{host}.txt"), values).splitlines()
    if host != "gitlab" and commit is None:
        steps.append("in the files, SOURCE and COMMIT: where to install reconciler from")
    if base_url is None:
        steps.append(f"in the files, the address of the service, if it is not {values['BASE_URL']}")
    numbered = (f"  {number}. {step}\n" for number, step in enumerate(steps, 1))
    after = f"next, set at the host:\n{''.join(numbered)}"
    return WrittenRecipe(tuple(texts), kept, after if texts else "")


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in place of `@NAME@`."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _connection(options: InitOptions) -> tuple[str | None, str | None]:
    """Return the address and the organization. Raises BadUsage for an unknown environment."""
    from reconciler.diagnostics import DiagnosticCollector
    from reconciler.files.sources import FolderSource
    from reconciler.files.workspace_file import chosen_environment, read_workspace

    workspace = read_workspace(FolderSource(options.folder), DiagnosticCollector())
    name = chosen_environment(workspace, options.environment, {})
    settings = workspace.section("environments", name)
    # Not references, which only the job resolves.
    base_url, organization = (
        text if isinstance(text := settings.get(key), str) and "${" not in text else None
        for key in ("base_url", "organization")
    )
    return base_url or options.base_url, organization or options.organization


def _check(values: Mapping[str, str]) -> None:
    names = [values[name] for name in ("WORKSPACE", "ENVIRONMENT", "BRANCH")]
    wrong = [name for name in names if not _PLAIN.fullmatch(name)]
    if not _ADDRESS.fullmatch(values["BASE_URL"]):
        wrong.append(values["BASE_URL"])
    if wrong:
        raise BadUsage(
            f"a pipeline cannot refer to {quoted(wrong[0])}",
            hint="use letters, digits, spaces, _ - . and / only",
        )


def _default_branch(folder: Path) -> str:
    """Return the default branch of origin, or else the current branch, or else main."""
    from reconciler.git.ci import REMOTE_BRANCHES
    from reconciler.git.repository import Repository, default_branch

    repository = Repository.containing(folder)
    if repository is None:
        return "main"
    remote = default_branch(repository) or repository.branch_to_be() or "main"
    return remote.removeprefix(REMOTE_BRANCHES)


def _installed_from() -> tuple[str, str | None]:
    """Return the repository and the commit that this program was installed from, if known."""
    from importlib import metadata

    import orjson

    text = metadata.distribution("posthog-reconciler").read_text("direct_url.json")
    origin: dict[str, Any] = orjson.loads(text or "{}")
    url, commit = origin.get("url", ""), origin.get("vcs_info", {}).get("commit_id", "")
    # Not with credentials, or from a folder of this machine.
    if url.startswith("https://") and _ADDRESS.fullmatch(url) and commit.isalnum():
        return url, commit
    return REPOSITORY, None


def _name(name: str, suffix: str) -> str:
    path = PurePosixPath(name)
    return name if name in _SHARED else str(path.with_stem(f"{path.stem}{suffix}"))


def _suffix(first: Path, head: str, path: str, environment: str) -> str:
    """Return the end of the names of the files: the first that no other environment has.

    `first` is the first file, `head` its first line for this workspace and environment.
    """
    from reconciler.commands.import_choice import key_of

    suffix = ""
    for name in ("", environment, f"{path}-{environment}"):
        suffix = f"-{key_of(name)}" if name else ""
        file = first.with_stem(f"{first.stem}{suffix}")
        text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else head
        # A file without such a line is one of the user, for this workspace.
        if text.startswith(head) or not text.startswith(_HEAD):
            break
    return suffix
