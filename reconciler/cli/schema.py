"""`reconciler schema`."""

from __future__ import annotations

import click
import orjson

from reconciler.cli.command import command
from reconciler.cli.streams import write_result
from reconciler.errors import BadUsage
from reconciler.model.schemas import nearest_schema, schema, schema_names
from reconciler.model.text import plain_json


def _names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in schema_names() if name.startswith(incomplete)]


@command(
    "schema",
    examples=(
        ("schema", "List the schemas"),
        ("schema plan > plan.schema.json", "Write the schema of saved plans to a file"),
    ),
    page="docs/configuration.md",
)
@click.argument("name", required=False, shell_complete=_names)
def schema_command(name: str | None) -> None:
    """Print a JSON Schema (2020-12) by name, or list the names."""
    if name is None:
        write_result("".join(f"{listed}\n" for listed in schema_names()))
        return
    content = schema(name)
    if content is None:
        close = nearest_schema(name)
        suggestion = f"did you mean '{close}'? " if close is not None else ""
        names = ", ".join(schema_names())
        raise BadUsage(f"unknown schema '{name}'", hint=f"{suggestion}schemas: {names}")
    write_result(plain_json(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()) + "\n")
