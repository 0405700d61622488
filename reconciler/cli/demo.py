"""`reconciler demo`."""

from __future__ import annotations

import sys

import click

from reconciler.cli.output import runtime, style_of
from reconciler.cli.streams import write_result
from reconciler.commands.demonstrating import demo
from reconciler.render.progress import demo_line


@click.command("demo")
def command() -> None:
    """Run an end-to-end demo on an example: plan, apply, an empty plan, drift, repair.

    Starts the embedded service on a free loopback port and needs no network and no account.
    """
    style = style_of(sys.stdout)
    demo(runtime(), lambda text: write_result(f"{demo_line(text, style)}\n"))
