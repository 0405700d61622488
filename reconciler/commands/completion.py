"""`reconciler completion`: the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from reconciler.commands.command import command
from reconciler.commands.streams import write_result
from reconciler.errors import ReconcilerError

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
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise ReconcilerError(f"this version of click has no completion for {shell}")
    root = context.find_root().command
    completer = shell_class(root, {}, "reconciler", _VARIABLE)
    # The method of the base class: that of bash starts bash to check its version.
    write_result(ShellComplete.source(completer))
