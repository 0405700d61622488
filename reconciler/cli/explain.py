"""`reconciler explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from reconciler.cli.command import command
from reconciler.cli.output import style_of
from reconciler.cli.streams import write_result
from reconciler.render.style import Colour, Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.commands.explaining import Entry


@command(
    "explain",
    examples=(
        ("explain batch_export.destination.S3.prefix", "A field: type, default, servers"),
        ("explain policy", "What the policy of an environment can set"),
        ("explain history-lost", "A consequence"),
    ),
    page="docs/operations.md",
)
@click.argument("name", required=False, metavar="[NAME]")
def explain_command(name: str | None) -> None:
    """Print what the reference says about a field, a code, a consequence or a known refusal.

    NAME is a path of fields such as batch_export.destination.S3.prefix or policy.prune, or its end,
    or a code or id. Without NAME, list the first words of paths. Needs no workspace and no network.
    """
    from reconciler.commands.explaining import explain, overview

    if name is None:
        write_result("".join(f"{word}\n" for word in overview()))
        return
    style = style_of(sys.stdout)
    write_result(
        "\n".join(map("\n".join, (_lines(entry, style) for entry in explain(name)))) + "\n"
    )


def _lines(entry: Entry, style: Style) -> Iterator[str]:
    yield style.paint(Colour.BOLD, entry.name)
    for paragraph in entry.text.split("\n"):
        yield from style.wrapped(paragraph, "  ", "  ") or [""]
    for name, text in entry.facts.items():
        yield from style.wrapped(text, f"  {name:7}  ", " " * 11) if text else ()
