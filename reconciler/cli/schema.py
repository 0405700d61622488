"""`reconciler schema`."""

from __future__ import annotations

import click
import orjson

from reconciler.errors import BadUsage
from reconciler.model.schema_files import nearest_schema, schema, schema_names


@click.command("schema")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print a JSON Schema (2020-12) by name, or list the names."""
    if name is None:
        click.echo("\n".join(schema_names()))
        return
    content = schema(name)
    if content is None:
        close = nearest_schema(name)
        suggestion = f"did you mean '{close}'? " if close is not None else ""
        names = ", ".join(schema_names())
        raise BadUsage(f"unknown schema '{name}'", hint=f"{suggestion}schemas: {names}")
    click.echo(orjson.dumps(content, option=orjson.OPT_INDENT_2))
