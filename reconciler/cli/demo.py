"""`reconciler demo`."""

from __future__ import annotations

import sys

from reconciler.cli.command import command
from reconciler.cli.output import style_of
from reconciler.cli.streams import write_update

EXAMPLES = (
    ("demo", "Plan, apply, cause drift and repair it, on the embedded service"),
    ("demo --no-color > demo.txt", "Write the same to a file"),
)


@command("demo", examples=EXAMPLES, page="README.md")
def demo_command() -> None:
    """Run an end-to-end demo on an example: plan, apply, an empty plan, drift, repair.

    Starts the embedded service on a free loopback port and needs no network and no account.
    """
    from reconciler.cli.options import runtime
    from reconciler.commands.demonstrating import demo
    from reconciler.render.progress import demo_line

    style = style_of(sys.stdout)
    demo(runtime(), lambda text: write_update(f"{demo_line(text, style)}\n"))
