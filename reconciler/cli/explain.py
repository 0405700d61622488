"""`reconciler explain`."""

from __future__ import annotations

import click

from reconciler.cli.command import command
from reconciler.cli.options import format_option
from reconciler.cli.output import render_options
from reconciler.cli.streams import write_result
from reconciler.render.formats import writer_of

EXAMPLES = (
    ("explain batch_export.destination.S3.prefix", "A field: type, values, consequences, example"),
    ("explain policy", "What the policy of an environment can set"),
    ("explain history-lost --format json", "A consequence, for programs"),
)


@command("explain", examples=EXAMPLES, page="docs/operations.md")
@click.argument("name", required=False, metavar="[NAME]")
@format_option("explanation")
def execute(name: str | None, output_format: str) -> None:
    """Explain a field, a code of a message, or the id of a consequence or known refusal.

    NAME is a path of fields such as batch_export.destination.S3.prefix or policy.prune, or a code
    or id. Without NAME, list the first words of paths. Needs no workspace and no network.
    """
    from reconciler.commands.explaining import explain, overview

    explanation = overview() if name is None else explain(name)
    write_result(writer_of(output_format, "explanation")(explanation, render_options()))
