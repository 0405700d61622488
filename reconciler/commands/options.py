"""Options of several commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import asdict

from reconciler.commands import completion
from reconciler.commands.command import OUTPUT, current, option
from reconciler.commands.process import is_interactive, write_note
from reconciler.commands.workspace import Runtime, Workspace, WorkspaceFiles
from reconciler.errors import BadUsage
from reconciler.files.sources import workspace_above
from reconciler.git.ci import is_job
from reconciler.model.settings import ClientOptions, PlanOptions, Selection, how_to_write, rate
from reconciler.model.text import IMPLICIT_ENVIRONMENT, command_text
from reconciler.paths import WORKSPACE_FILE
from reconciler.render import DEFAULT, formats_of

if TYPE_CHECKING:
    from reconciler.model.times import Moment

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Decorator = Callable[[_Function], _Function]

STDOUT = Path("-")
"""The name of a file that is standard output."""
NAMES: dict[str, Any] = {
    "multiple": True,
    "metavar": "NAME",
    "shell_complete": completion.resources,
}
"""How an option is declared that names objects and may be repeated (`planning/select.py`)."""

PARENTS: dict[str, Any] = {**NAMES, "shell_complete": completion.parents}
"""How an option is declared that names objects which contain others."""


def _known_kinds(
    _: click.Context, __: click.Parameter, written: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the texts as written. Raises BadUsage for an unknown kind, before anything is read."""
    if written:
        from reconciler.kinds import all_kinds
        from reconciler.planning.select import kinds_named

        for text in written:
            kinds_named(text, all_kinds())
    return written


KINDS: dict[str, Any] = {
    "multiple": True,
    "metavar": "KIND",
    "callback": _known_kinds,
    "shell_complete": completion.kinds,
}
"""How an option is declared that takes kinds and may be repeated."""


def all_of(*decorators: _Decorator[Any]) -> _Decorator[Any]:
    """Return a decorator that applies several, the last one first."""

    def decorate(function: _Function) -> _Function:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


_workspace = partial(option, group="Workspace")
_selection = partial(option, group="Selection")
_planning = partial(option, group="Planning")
output_option = partial(option, group=OUTPUT)


_folder = partial(
    _workspace, "-C", "--workspace", "folder", type=click.Path(path_type=Path), metavar="DIR"
)

new_folder_option = _folder(
    default=Path(), help="Folder of the workspace. Default: the current one."
)

folder_option = _folder(
    help="Folder of the workspace. Default: the current one or, outside of CI jobs, the nearest "
    "parent with reconciler.yaml.",
)


def _single(_: click.Context, __: click.Parameter, written: tuple[str, ...]) -> str | None:
    """Return the only environment. Raises BadUsage for several."""
    if len(set(written)) > 1:
        raise BadUsage(
            f"several environments: {', '.join(written)}",
            hint="select one; `plan`, `status` and `gaps` take several: -e A -e B, -e '*'",
        )
    return written[0] if written else None


_environment = partial(
    _workspace,
    "-e",
    "--environment",
    "environment",
    multiple=True,
    metavar="NAME",
    shell_complete=completion.environments,
)
_DEFAULT_ENVIRONMENT = "Default: the only one, or `default:` in reconciler.yaml."
environment_option = _environment(callback=_single, help=f"Environment. {_DEFAULT_ENVIRONMENT}")
environments_option = _environment(
    help=f"Environment; repeatable, globs allowed. {_DEFAULT_ENVIRONMENT}"
)
files_options = all_of(
    _workspace("--strict", is_flag=True, help="Treat warnings about the files as errors."),
    _workspace(
        "--trust-workspace",
        is_flag=True,
        help="Trust the files to say where the API key is sent and what is allowed. Default: on a "
        "terminal outside of CI jobs.",
    ),
)


def _rate(_: click.Context, __: click.Parameter, written: str | None) -> Any:
    value = None if written is None else rate(written)
    if written is not None and value is None:
        hint = f"{how_to_write('rate')}, or off for no limit"
        raise BadUsage(f"invalid --rate '{written}'", hint=hint)
    return value


rate_option = _workspace(
    "--rate",
    callback=_rate,
    metavar="CALLS/SECONDS",
    help="Maximum calls per period, or off. Default: just below the service's limits.",
)


names_argument = click.argument(
    "names", nargs=-1, metavar="[NAME]...", shell_complete=completion.resources
)
project_option = _selection("--project", **PARENTS, help="Only exports in these projects.")
workspace_options = all_of(folder_option, environment_option, files_options)
service_options = all_of(workspace_options, rate_option)
exports_options = all_of(names_argument, service_options, project_option)
environments_options = all_of(
    names_argument, folder_option, environments_option, files_options, rate_option
)


plan_options = all_of(
    _selection(
        "--target",
        **NAMES,
        help="Only these resources and their dependencies: address, id, key, name or glob.",
    ),
    _selection("--exclude", **NAMES, help="Skip these resources."),
    _selection("--kind", **KINDS, help="Only resources of these kinds."),
    _selection("--project", **PARENTS, help="Only these projects and their contents."),
    _planning("--no-inventory", is_flag=True, help="Plan without git."),
    _planning(
        "--rotate-secrets",
        multiple=True,
        is_flag=False,
        flag_value="*",
        metavar="[NAME]",
        shell_complete=completion.resources,
        help="Send secrets again: all, or those of NAME.",
    ),
    _planning(
        "--allow-replace",
        is_flag=True,
        help="Allow changes that delete and re-create an object.",
    ),
)


def format_option(result: str) -> Callable[[_Function], _Function]:
    """Add --format of a result."""
    formats = formats_of(result)
    return output_option(
        "--format",
        "output_format",
        type=click.Choice(formats),
        default=DEFAULT,
        show_default=True,
        metavar="FORMAT",
        help=f"Output format: {', '.join(formats)}.",
    )


def text_or_json_option(description: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add --format of a command that prints text, or JSON for scripts."""
    return option(
        "--format",
        "output_format",
        type=click.Choice(("text", "json")),
        default="text",
        show_default=True,
        help=description,
        **attributes,
    )


class OutputPath(click.Path):
    """A file, or a folder of files, to write: none that the workspace loads."""


def file_option(name: str, description: str, **attributes: Any) -> Callable[[_Function], _Function]:
    """Add an option that names a file to write."""
    path = OutputPath(dir_okay=False, path_type=Path)
    return option(name, type=path, metavar="FILE", help=description, **attributes)


def log_option(description: str) -> Callable[[_Function], _Function]:
    """Add `--log-file`, a file which is appended to, and cannot be stdout."""
    return file_option("--log-file", description, callback=_not_stdout)


def _not_stdout(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    if path == STDOUT:
        raise BadUsage(
            "--log-file - is not supported", hint="use --format json for events on stdout"
        )
    return path


range_options = all_of(
    option("--since", metavar="DURATION", help="How far to look back: 90m, 6h, 7d, 2w."),
    option("--from", "first", metavar="TIME", help="Start of the range, ISO 8601."),
    option("--to", "last", metavar="TIME", help="End of the range, exclusive. Default: now."),
)


def range_of(options: dict[str, Any]) -> tuple[Moment | None, datetime | None]:
    """Return the start of a range, or how long ago it is, and its end. Raises BadUsage."""
    from reconciler.model.times import duration_of, moment_of

    since, first, last = (options.pop(name) for name in ("since", "first", "last"))
    if since is not None and first is not None:
        raise BadUsage("--since and --from exclude each other")
    end = None if last is None else moment_of(last, option="--to")
    if since is not None:
        return duration_of(since), end
    return None if first is None else moment_of(first, option="--from"), end


auto_approve_option = option("-y", "--auto-approve", is_flag=True, help="Do not ask for approval.")

unmanaged_option = output_option(
    "--show-unmanaged", is_flag=True, help="List live objects that no file declares."
)
summary_option = output_option(
    "--summary", is_flag=True, help="Show only counts, dangers and violations."
)


links_option = output_option("--links", is_flag=True, help="Show links to the service's pages.")


def folder_of(given: Path | None) -> Path:
    """Return the folder of the workspace, and print it if it is not where the caller is."""
    if given is not None:
        return given
    above = None
    if not (Path(WORKSPACE_FILE).exists() or is_job(os.environ)):
        above = workspace_above(Path())
    if above is None:
        return Path()
    write_note(f"using {above / WORKSPACE_FILE}\n")
    return above


def runtime() -> Runtime:
    """Return this process."""
    from reconciler.service.pace import ClientSettings

    sent, left_out = current().sent, current().left_out
    client = ClientSettings(sent=sent)
    return Runtime(client=client, interactive=is_interactive(), left_out=left_out)


def files_of(options: dict[str, Any]) -> WorkspaceFiles:
    """Return the files that the options name."""
    return WorkspaceFiles(
        folder_of(options["folder"]),
        environment=options.get("environment"),
        strict=options["strict"],
        trust_workspace=options["trust_workspace"],
    )


def workspace_of(options: dict[str, Any]) -> Workspace:
    """Return the workspace that the options name, and this process."""
    files, client = asdict(files_of(options)), ClientOptions(rate=options.get("rate"))
    context = click.get_current_context()
    outputs = {
        parameter.opts[0]: path
        for parameter in context.command.params
        if isinstance(parameter.type, OutputPath)
        and (path := context.params[str(parameter.name)]) is not None
    }
    return Workspace(**files, client=client, runtime=runtime(), outputs=outputs)


def one_environment(options: dict[str, Any]) -> tuple[str, ...]:
    """Leave the environment in `options` if it is only one; else return the names of several."""
    names: tuple[str, ...] = options["environment"]
    if len(set(names)) > 1 or any(character in name for name in names for character in "*?["):
        options["environment"] = None
        return names
    options["environment"] = next(iter(names), None)
    return ()


def plan_options_of(options: dict[str, Any]) -> PlanOptions:
    """Return what to plan."""
    return PlanOptions(
        rotate=options["rotate_secrets"],
        allow_replace=options["allow_replace"],
        selection=Selection(
            targets=options["target"],
            excludes=options["exclude"],
            kinds=options["kind"],
            parents=options["project"],
        ),
        no_inventory=options["no_inventory"],
    )


_GIVEN_AGAIN = (
    *("folder", "environment", "trust_workspace"),
    *("no_inventory", "rotate_secrets", "allow_replace"),
)
"""The parameters without which the next command refuses a plan, or uses another workspace."""


def next_command(*words: str, environment: str | None = None) -> str:
    """Return a command to paste into a shell, with the options that it needs again.

    `environment` is the one of several that the current command selects.
    """
    again = options_again(without="environment" if environment is not None else "")
    return command_text(*words, environment=environment or IMPLICIT_ENVIRONMENT, more=again)


def options_again(*, without: str = "environment") -> Iterator[str]:
    """Yield the options that the next command needs again."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name, word = str(parameter.name), parameter.opts[-1]
        value = context.params[name] if name in _GIVEN_AGAIN and name != without else None
        for item in value if isinstance(value, tuple) else (value,):
            if item and item != parameter.default:
                yield word if item is True else f"{word}={item}"
