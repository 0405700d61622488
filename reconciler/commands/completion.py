"""`reconciler completion`: the completion script of a shell, and the values that it completes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.commands.command import command
from reconciler.commands.process import write_result
from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import ReconcilerError
from reconciler.files.sources import FolderSource, workspace_above
from reconciler.model.values import Address
from reconciler.paths import WORKSPACE_FILE

if TYPE_CHECKING:
    # Every command imports this module; these are imported when a shell asks.
    from reconciler.files.workspace_file import Workspace
    from reconciler.files.yaml_document import Document

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_RECONCILER_COMPLETE"


@command(
    "completion",
    examples=(
        ("completion bash > ~/.local/share/bash-completion/completions/reconciler", "For bash"),
        ("completion zsh > ~/.zfunc/_reconciler", "For zsh, with ~/.zfunc in fpath"),
        ("completion fish > ~/.config/fish/completions/reconciler.fish", "For fish"),
    ),
    page="docs/output.md",
)
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: bash, zsh or fish.

    It completes commands, options, files, and the environments and resources of the workspace.
    """
    from click.shell_completion import ShellComplete, get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise ReconcilerError(f"this version of click has no completion for {shell}")
    root = context.find_root().command
    completer = shell_class(root, {}, "reconciler", _VARIABLE)
    # The method of the base class: that of bash starts bash to check its version.
    write_result(ShellComplete.source(completer))


_MOST_BYTES = 2_000_000
"""Bytes of resource files that are read: about a second of parsing."""
_PLAIN = re.compile(r"[\w.@+-]+", re.ASCII)


def environments(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the environments of the workspace that begin with a text."""
    return _beginning(incomplete, _workspace_of(_source_of(ctx)).environments)


def resources(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the addresses that begin with a text, or else the keys."""
    addresses = list(_addresses(_source_of(ctx)))
    known = _beginning(incomplete, map(str, addresses))
    return known or _beginning(incomplete, (address.key for address in addresses))


def parents(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the keys of resources that contain others, such as projects."""
    from reconciler.kinds import all_kinds
    from reconciler.model.kind import containers

    kinds = containers(all_kinds())
    keys = (address.key for address in _addresses(_source_of(ctx)) if address.kind in kinds)
    return _beginning(incomplete, keys)


def kinds(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the kinds that begin with a text."""
    from reconciler.kinds import kinds_by_name

    return _beginning(incomplete, kinds_by_name())


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    """Return the values that a shell takes as they are and that begin with a text."""
    plain = {value for value in values if _PLAIN.fullmatch(value)}
    return sorted(value for value in plain if value.startswith(incomplete))


def _source_of(ctx: click.Context) -> FolderSource:
    """Return the files of the workspace of a command line."""
    folder = ctx.params.get("folder")
    if folder is None and not Path(WORKSPACE_FILE).exists():
        folder = workspace_above(Path())
    return FolderSource(Path(folder or "."))


def _workspace_of(source: FolderSource) -> Workspace:
    from reconciler.files.workspace_file import Workspace
    from reconciler.files.yaml_document import Document

    document = _parsed(source, WORKSPACE_FILE)
    if document is None or not isinstance(document.value, dict):
        return Workspace(Document(WORKSPACE_FILE), {})
    return Workspace(document, document.value)


def _addresses(source: FolderSource) -> Iterator[Address]:
    """Yield the addresses in the resource files, as far as these can be read."""
    from reconciler.files.resource_files import is_key, selected_files
    from reconciler.kinds import kinds_by_collection

    collections = kinds_by_collection()
    names: Iterable[str] = ()
    with suppress(ReconcilerError, OSError):
        names = selected_files(source, _workspace_of(source), DiagnosticCollector())
    size = 0
    for name in names:
        document = _parsed(source, name)
        if document is None or not isinstance(document.value, dict):
            continue
        for collection, members in document.value.items():
            if collection in collections and isinstance(members, dict):
                for key in filter(is_key, members):
                    yield Address(collections[collection].name, key)
        size += len(document.text)
        if size > _MOST_BYTES:
            return


def _parsed(source: FolderSource, name: str) -> Document | None:
    from reconciler.files.yaml_loader import parse

    with suppress(ReconcilerError, OSError):
        raw = source.read(name)
        if raw is not None:
            return parse(raw, name, DiagnosticCollector())
    return None
