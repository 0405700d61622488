"""`reconciler demo`."""

from __future__ import annotations

import sys

import click

from reconciler.cli.output import colour_wanted, runtime
from reconciler.commands.demonstrating import demo


@click.command("demo")
def command() -> None:
    """Play the whole way on an example: plan, apply, an empty plan, drift, repair.

    Starts the embedded service on a free loopback port and needs no network and no account.
    """
    colour = colour_wanted(sys.stdout)

    def say(text: str) -> None:
        if text.startswith("$"):
            click.secho(f"\n{text}", fg="cyan" if colour else None)
        elif text.startswith(" "):
            click.echo(text)
        else:
            click.secho(f"\n{text}", bold=True if colour else None)
        sys.stdout.flush()

    demo(runtime(), say)
