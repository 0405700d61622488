"""Small schemas that others are made of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

MOMENT: Schema = {"type": "string", "format": "date-time"}
UUID: Schema = {"type": "string", "format": "uuid"}
TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
ANY: Schema = {}


def or_null(schema: Schema) -> Schema:
    """Return a schema that takes null, too."""
    return {**schema, "type": [schema["type"], "null"]}


def listed(schema: Schema) -> Schema:
    """Return a list of these."""
    return {"type": "array", "items": schema}


def ref(name: str) -> Schema:
    """Return a reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def closed(properties: Schema) -> Schema:
    """Return an object with all of these properties and no others."""
    return shape(properties, only=True)


def shape(properties: Schema, *, only: bool) -> Schema:
    """Return an object with all of these properties; `only` says that it has no others."""
    schema: Schema = {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
    }
    return {**schema, "additionalProperties": False} if only else schema


def page_of(name: str, *, cursor: bool = False) -> Schema:
    """Return the schema of a page; a cursor page has no count."""
    link = {"type": ["string", "null"], "format": "uri"}
    properties: Schema = {"next": link, "previous": link, "results": listed(ref(name))}
    return closed(properties if cursor else {"count": NUMBER, **properties})
