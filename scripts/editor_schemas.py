"""Compose the schemas for editors from those of the kinds.

Editors check files, not resolved values: a reference is valid for any field, and fields that
defaults or overrides may set are not required.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import available_timezones

from reconciler.kinds import behaviour_of
from reconciler.model.kind import Action, Dialect, Kind, Variant
from reconciler.model.plan import Severity
from reconciler.model.schemas import known_schema

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
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
_IDS = {
    "editor/workspace": "urn:reconciler:schema:workspace-in-editors:1",
    "editor/resources": "urn:reconciler:schema:resources-in-editors:1",
}
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
    schemas = {"editor/workspace": _workspace(kinds), "editor/resources": _resources(kinds)}
    return {name: {"$id": _IDS[name], **schema} for name, schema in schemas.items()}


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
        "$schema": _DIALECT,
        "title": "Resources",
        "description": "A resource file: maps from a key to a resource.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "anchors": _alone(known_schema("workspace")["properties"]["anchors"], nullable=False),
            "defaults": _defaults(kinds),
            **collections,
        },
        "allOf": [_default_rule(kind, *one) for kind in kinds for one in _variants(kind)],
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
    return {"$schema": _DIALECT, **composed, "$defs": {**_shared(kinds), _MATCH: _match(kinds)}}


def _match(kinds: Sequence[Kind]) -> Schema:
    """Return the schema of the matches of rules."""
    composed = _composed(known_schema("policy/match"), references=False, required=True)
    properties = composed["properties"]
    words = {
        "kind": [kind.name for kind in kinds],
        "action": [action.value for action in Action if action is not Action.NO_OP],
        "severity": [severity.value for severity in Severity],
        "consequence": sorted({rule.id for kind in kinds for rule in behaviour_of(kind).rules}),
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
    _offer(
        properties["deny"]["items"],
        sorted({rule.id for kind in kinds for rule in behaviour_of(kind).rules}),
    )
    refusals = {refusal.id for kind in kinds for refusal in behaviour_of(kind).refusals}
    _offer(properties["attempt"]["items"], sorted(refusals))


def _shared(kinds: Sequence[Kind]) -> Schema:
    """Return the definitions of fields for defaults and overrides, and of bodies of variants."""
    zones = sorted(available_timezones() - {"localtime"})
    message = "use a name such as Europe/Berlin or UTC, or a reference such as ${var:NAME}"
    parts: Schema = {"zone": {"enum": zones, "errorMessage": message}}
    for kind in kinds:
        parts[f"{kind.name}.fields"] = _fields(kind)
        for field, folder, tag, _ in _variants(kind):
            del field
            parts[f"{folder}.{tag}"] = _composed(known_schema(f"{folder}/{tag}"), nullable=True)
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
    rules = [
        _override_rule(field, folder, tag, variant)
        for field, folder, tag, variant in _variants(kind)
    ]
    return {**composed, "allOf": rules} if rules else composed


def _paths(kind: Kind) -> set[str]:
    """Return the paths of all fields, those of every variant included."""
    paths = {field.name for field in kind.fields}
    for field, folder, tag, variant in _variants(kind):
        inside = known_schema(f"{folder}/{tag}").get("properties", {})
        paths |= {f"{field}.{variant.body}.{name}" for name in inside}
    return paths


def _override_rule(field: str, folder: str, tag: str, variant: Variant) -> Schema:
    """Return the rule that an override without a type has the type of its resource."""
    overrides = _each(_of_type(field, folder, tag, variant))
    return {
        "if": _with(field, _with(variant.tag, {"const": tag})),
        "then": {"type": "object", "properties": {"overrides": overrides}},
    }


def _default_rule(kind: Kind, field: str, folder: str, tag: str, variant: Variant) -> Schema:
    """Return the rule that a resource without a type has the type of the defaults of its file."""
    fields = _with(field, _with(variant.tag, {"const": tag}))
    resources = _each(_of_type(field, folder, tag, variant))
    return {
        "if": _with("defaults", _with(kind.name, fields)),
        "then": {"type": "object", "properties": {kind.collection: resources}},
    }


def _of_type(field: str, folder: str, tag: str, variant: Variant) -> Schema:
    """Return the schema of a layer whose type is that of a lower one, unless it has its own."""
    body = {"type": "object", "properties": {variant.body: {"$ref": f"#/$defs/{folder}.{tag}"}}}
    inherited = {"if": {"not": _with(variant.tag, _ANYTHING)}, "then": body}
    return {"type": "object", "properties": {field: inherited}}


def _each(node: Schema) -> Schema:
    return {"type": ["object", "null"], "additionalProperties": node}


def _with(name: str, node: Schema) -> Schema:
    """Return the schema of a mapping that has a key with a value of a schema."""
    return {"type": "object", "properties": {name: node}, "required": [name]}


def _variants(kind: Kind) -> list[tuple[str, str, str, Variant]]:
    """Return field, folder, tag and variant of every variant of a kind."""
    properties = known_schema(kind.name)["properties"]
    return [
        (field.name, str(properties[field.name]["x-variants"]["folder"]), tag, field.type)
        for field in kind.fields
        if field.variant is not None
        for tag in field.variant.variants
    ]


def _composed(
    node: Schema, *, references: bool = True, required: bool = False, nullable: bool = False
) -> Schema:
    """Return a node for an editor, with everything below it."""
    composed = _alone(node, nullable=nullable)
    if references:
        _admit_references(composed)
    if required and "required" in node:
        composed["required"] = node["required"]
    for name in ("properties", "items", "additionalProperties", "if", "then"):
        if name in node:
            composed[name] = _below(name, node[name], references=references, required=required)
    if "x-variants" in node:
        composed["allOf"] = _variant_rules(node["x-variants"], node)
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
        composed["type"] = [*_types(node), "null"]
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


def _below(name: str, value: Any, *, references: bool, required: bool) -> Any:
    if isinstance(value, bool) or name in ("if", "then"):
        return value
    if name == "properties":
        return {
            name_below: _composed(below, references=references, required=required)
            for name_below, below in value.items()
        }
    return _composed(value, references=references, required=required)


def _variant_rules(variants: Mapping[str, str], node: Schema) -> list[Schema]:
    tag = variants["tag"]
    return [
        {
            "if": {"type": "object", "properties": {tag: {"const": value}}, "required": [tag]},
            "then": {
                "type": "object",
                "properties": {
                    variants["body"]: {"$ref": f"#/$defs/{variants['folder']}.{value}"},
                },
            },
        }
        for value in node["properties"][tag]["x-open-enum"]
    ]


def _admit_references(composed: Schema) -> None:
    """Allow text with a reference such as `${var:NAME}` as any value."""
    types = _types(composed)
    if types and "string" not in types:
        allowed = " or ".join(_WORDS[type_name] for type_name in types)
        composed["type"] = [*types, "string"]
        composed["pattern"] = _REFERENCE
        composed["patternErrorMessage"] = f"must be {allowed}, or a reference such as ${{var:NAME}}"
    elif "enum" in composed:
        composed["if"] = {"not": {"pattern": _REFERENCE}}
        composed["then"] = {"enum": composed.pop("enum")}


def _types(node: Schema) -> list[str]:
    types = node.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _description(node: Schema) -> str:
    text = str(node.get("description", ""))
    if node.get("x-secret"):
        text += " Secret: write a reference such as ${secret:env:NAME}."
    if dialects_of(node):
        text += f" Servers: {', '.join(dialects_of(node))}."
    return text.strip()


def dialects_of(node: Schema) -> list[str]:
    """Return the dialects that know a node; none where all do."""
    since, until = node.get("x-since"), node.get("x-until")
    if since is None and until is None:
        return []
    first = Dialect(since) if since else None
    return [dialect.value for dialect in Dialect.between(first, Dialect(until) if until else None)]


def _title(kind: Kind) -> str:
    return str(known_schema(kind.name)["title"]).lower()
