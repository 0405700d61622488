"""Compose the schemas for editors from those of the kinds.

Editors check files, not resolved values: a reference is valid for any field, and fields that
defaults or overrides may set are not required.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import available_timezones

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action, Dialect, Kind
from reconciler.model.plan import Severity
from reconciler.model.schemas import known_schema

Schema = dict[str, Any]

_REFERENCE = r"\$\{"
_MOMENT = r"^\s*\d{4}-?(\d\d|W)|\$\{"
_KEY = "^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
_PER_ENVIRONMENT = ("environments", "overrides")
"""Fields that are not allowed in defaults and overrides."""
_KEPT = (
    *("title", "description", "default", "examples", "type", "const", "enum", "pattern"),
    *("minimum", "maximum", "minLength", "maxLength", "minProperties", "maxProperties"),
)
_ANYTHING: Schema = {}
_REFERENCE_ONLY: Schema = {"pattern": _REFERENCE}
_MATCH = "policy.match"
_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "a boolean",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def editor_schemas(kinds: Sequence[Kind]) -> Mapping[str, Schema]:
    """Return both schemas by name: `editor/workspace` and `editor/resources`."""
    schemas = {"workspace": _workspace(kinds), "resources": _resources(kinds)}
    return {
        f"editor/{name}": {
            "$id": f"urn:reconciler:schema:{name}-in-editors:1",
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema,
        }
        for name, schema in schemas.items()
    }


def editor_files(kinds: Sequence[Kind]) -> Mapping[str, str]:
    """Return the text of both schemas by path in the repository."""
    return {
        f"schemas/{name}.schema.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in editor_schemas(kinds).items()
    }


def _resources(kinds: Sequence[Kind]) -> Schema:
    collections = {
        kind.collection: {
            "description": f"Every {_title(kind)} by its key.",
            "type": ["object", "null"],
            "propertyNames": {
                "pattern": _KEY,
                "patternErrorMessage": "a key has letters, digits, _ - and . only",
            },
            "additionalProperties": {"$ref": f"#/$defs/{kind.name}"},
        }
        for kind in kinds
    }
    return {
        "title": "Resources",
        "description": "A resource file: maps from a key to a resource.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "anchors": _alone(known_schema("workspace")["properties"]["anchors"], nullable=False),
            "defaults": _defaults(kinds),
            **collections,
        },
        "allOf": [
            _rule(_with("defaults", _with(kind.name, one.chosen)), kind.collection, one)
            for kind in kinds
            for one in _types_of(kind)
        ],
        "$defs": {
            **{kind.name: _whole_resource(kind) for kind in kinds},
            **_shared(kinds),
        },
    }


def _defaults(kinds: Sequence[Kind]) -> Schema:
    composed = _composed(known_schema("workspace")["properties"]["defaults"], references=False)
    fields = {kind.name: {"$ref": f"#/$defs/{kind.name}.fields"} for kind in kinds}
    return {**composed, "properties": fields}


def _workspace(kinds: Sequence[Kind]) -> Schema:
    node = known_schema("workspace")
    composed = _composed(node, references=False, required=True)
    composed["properties"]["defaults"] = _defaults(kinds)
    _complete_policy(composed["properties"]["policy"], kinds)
    environment = composed["properties"]["environments"]["additionalProperties"]
    _complete_policy(environment["properties"]["policy"], kinds)
    return {**composed, "$defs": {**_shared(kinds), _MATCH: _match(kinds)}}


def _match(kinds: Sequence[Kind]) -> Schema:
    """Return the schema of the matches of rules."""
    composed = _composed(known_schema("policy/match"), references=False, required=True)
    properties = composed["properties"]
    words = {
        "kind": [kind.name for kind in kinds],
        "action": [action.value for action in Action if action is not Action.NO_OP],
        "severity": [severity.value for severity in Severity],
        "consequence": _rules(kinds),
    }
    for name, values in words.items():
        _offer(properties[name], values)
    return composed


def _complete_policy(policy: Schema, kinds: Sequence[Kind]) -> None:
    """Let editors complete the modes of `prune`, the ids in lists, and the matches of rules."""
    properties = policy["properties"]
    rule = properties["rules"]["additionalProperties"]
    rule["properties"]["match"] = {"$ref": f"#/$defs/{_MATCH}"}
    _offer(properties["prune"], [True, False, "git"])
    _offer(properties["deny"]["items"], _rules(kinds))
    refusals = {refusal.id for kind in kinds for refusal in behaviour_of(kind).refusals}
    _offer(properties["attempt"]["items"], sorted(refusals))


def _rules(kinds: Sequence[Kind]) -> list[str]:
    return sorted({rule.id for kind in kinds for rule in behaviour_of(kind).rules})


def _shared(kinds: Sequence[Kind]) -> Schema:
    """Return the definitions of fields for defaults and overrides, and of bodies of variants."""
    zones = sorted(available_timezones() - {"localtime"})
    message = "use a name such as Europe/Berlin or UTC, or a reference such as ${var:NAME}"
    parts: Schema = {"zone": {"enum": zones, "errorMessage": message}}
    for kind in kinds:
        parts[f"{kind.name}.fields"] = _fields(kind)
        for one in _types_of(kind):
            parts[f"{one.names['folder']}.{one.tag}"] = _composed(one.schema, nullable=True)
    return parts


def _fields(kind: Kind) -> Schema:
    composed = _composed(known_schema(kind.name))
    for name in _PER_ENVIRONMENT:
        del composed["properties"][name]
    return composed


def _whole_resource(kind: Kind) -> Schema:
    composed = _composed(known_schema(kind.name))
    properties = composed["properties"]
    for name in _PER_ENVIRONMENT:
        properties[name] = _composed(known_schema(kind.name)["properties"][name], references=False)
    properties["overrides"]["additionalProperties"] = {"$ref": f"#/$defs/{kind.name}.fields"}
    ignored = properties["lifecycle"]["properties"]["ignore_changes"]["items"]
    _offer(ignored, sorted(_paths(kind)))
    rules = [_rule(one.chosen, "overrides", one) for one in _types_of(kind)]
    return {**composed, "allOf": rules} if rules else composed


def _paths(kind: Kind) -> set[str]:
    """Return the paths of all fields, those of every type included."""
    inside = {
        f"{one.field}.{one.names['body']}.{name}"
        for one in _types_of(kind)
        for name in one.schema.get("properties", {})
    }
    return inside | {field.name for field in kind.fields}


def _rule(condition: Schema, name: str, one: _Type) -> Schema:
    """Return the rule that layers without a type inherit it where a condition holds."""
    has_none = {"not": _with(one.names["tag"], _ANYTHING)}
    inherited = {"if": has_none, "then": _may_have_body(one.names, one.tag)}
    layer = _may_have(one.field, inherited)
    layers = {"type": ["object", "null"], "additionalProperties": layer}
    return {"if": condition, "then": _may_have(name, layers)}


def _with(name: str, node: Schema) -> Schema:
    """Return the schema of a mapping that has a key with a value of a schema."""
    return {**_may_have(name, node), "required": [name]}


def _may_have(name: str, node: Schema) -> Schema:
    return {"type": "object", "properties": {name: node}}


def _has_type(names: Mapping[str, str], tag: str) -> Schema:
    return _with(names["tag"], {"const": tag})


def _may_have_body(names: Mapping[str, str], tag: str) -> Schema:
    return _may_have(names["body"], {"$ref": f"#/$defs/{names['folder']}.{tag}"})


class _Type(NamedTuple):
    """A type of a field, such as S3 of the destination of an export.

    `names` has the names of its keys and its folder, as `x-variants` in a schema.
    """

    field: str
    names: Mapping[str, str]
    tag: str

    @property
    def schema(self) -> Schema:
        """Return the schema of its body."""
        return known_schema(f"{self.names['folder']}/{self.tag}")

    @property
    def chosen(self) -> Schema:
        """Return the schema of a layer with the type."""
        return _with(self.field, _has_type(self.names, self.tag))


def _types_of(kind: Kind) -> list[_Type]:
    """Return every type of the fields of a kind."""
    return [
        _Type(name, node["x-variants"], tag)
        for name, node in typed_fields(kind).items()
        for tag in tags_of(node)
    ]


def typed_fields(kind: Kind) -> dict[str, Schema]:
    """Return the schemas of the fields of a kind that have types."""
    fields = known_schema(kind.name)["properties"].items()
    return {name: node for name, node in fields if "x-variants" in node}


def tags_of(node: Schema) -> list[str]:
    """Return the types of a field."""
    tags: list[str] = node["properties"][node["x-variants"]["tag"]]["x-open-enum"]
    return tags


def _composed(
    node: Schema, *, references: bool = True, required: bool = False, nullable: bool = False
) -> Schema:
    """Return a node for an editor, with everything below it."""
    composed = _alone(node, nullable=nullable)
    if references:
        _admit_references(composed)
    if required and "required" in node:
        composed["required"] = node["required"]
    below = partial(_composed, references=references, required=required)
    if "properties" in node:
        composed["properties"] = {name: below(inner) for name, inner in node["properties"].items()}
    for name in ("items", "additionalProperties"):
        if name in node:
            composed[name] = below(node[name]) if isinstance(node[name], dict) else node[name]
    if "x-variants" in node:
        composed["allOf"] = _variant_rules(node)
    return composed


def _alone(node: Schema, *, nullable: bool) -> Schema:
    """Return a node for an editor, without what is below it."""
    composed = {name: node[name] for name in _KEPT if name in node}
    composed["description"] = _description(node)
    if "x-open-enum" in node:
        composed["anyOf"] = [{"enum": list(node["x-open-enum"])}, _REFERENCE_ONLY]
    if node.get("x-zone"):
        composed["anyOf"] = [{"$ref": "#/$defs/zone"}, _REFERENCE_ONLY]
    if node.get("x-secret"):
        _ask_for_reference(composed)
    if nullable:
        composed["type"] = [*types_in(node), "null"]
    if node.get("format") == "date-time":
        composed["pattern"] = _MOMENT
        composed["patternErrorMessage"] = "use ISO 8601, such as 2026-01-31T00:00:00Z"
    return composed


def _offer(composed: Schema, values: Sequence[Any]) -> None:
    """Let editors complete values without refusing others.

    Not as examples: editors show every one of them under a heading of its own.
    """
    composed["anyOf"] = [{"enum": list(values)}, _ANYTHING]


def _ask_for_reference(composed: Schema) -> None:
    """Complete a reference to an environment variable, and mark a secret that is written out."""
    composed["pattern"] = _REFERENCE
    composed["patternErrorMessage"] = "write a reference such as ${secret:env:NAME}"
    label = "${secret:env:NAME}"
    snippet = {"label": label, "description": "A secret of the environment."}
    composed["defaultSnippets"] = [{**snippet, "body": r"\${secret:env:${1:NAME}\}"}]


def _variant_rules(node: Schema) -> list[Schema]:
    names = node["x-variants"]
    return [
        {"if": _has_type(names, tag), "then": _may_have_body(names, tag)} for tag in tags_of(node)
    ]


def _admit_references(composed: Schema) -> None:
    """Allow text with a reference such as `${var:NAME}` as any value."""
    types = types_in(composed)
    if types and "string" not in types:
        allowed = " or ".join(_WORDS[type_name] for type_name in types)
        composed["type"] = [*types, "string"]
        composed["pattern"] = _REFERENCE
        composed["patternErrorMessage"] = f"must be {allowed}, or a reference such as ${{var:NAME}}"
    elif "enum" in composed:
        composed["if"] = {"not": {"pattern": _REFERENCE}}
        composed["then"] = {"enum": composed.pop("enum")}


def types_in(node: Schema) -> list[str]:
    """Return the types that a schema names."""
    types = node.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _description(node: Schema) -> str:
    text = str(node.get("description", ""))
    if node.get("x-secret"):
        text += " Secret: write a reference such as ${secret:env:NAME}."
    return f"{text} {servers_of(node)}".strip()


def servers_of(node: Schema) -> str:
    """Return a sentence that names the dialects that know a node, "" where all do."""
    since, until = (node.get(name) and Dialect(node[name]) for name in ("x-since", "x-until"))
    dialects = Dialect.between(since, until) if since or until else ()
    return f"Servers: {', '.join(dialect.value for dialect in dialects)}." if dialects else ""


def _title(kind: Kind) -> str:
    return str(known_schema(kind.name)["title"]).lower()
