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
    found = schema(name) if name in schema_names() else None
    if found is None:
        close = nearest_schema(name)
        meant = f"did you mean '{close}'? " if close is not None else ""
        raise BadUsage(
            f"there is no schema '{name}'", hint=f"{meant}There are: {', '.join(schema_names())}"
        )
    click.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2))
