"""Write the schemas of what the commands print as JSON, from the types of the values.

The docstring after a field is its description.
Run it after every change of a type or a term; a test fails until then.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct, UnsetType, defstruct
from msgspec.json import schema_components
from msgspec.structs import fields

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler import commands, model, render  # noqa: E402 - not installed
from reconciler.errors import ExitCode  # noqa: E402 - not installed
from reconciler.model.decoding import EVENTS, STARTS, FirstLine, Line  # noqa: E402 - not installed
from reconciler.model.plan import Plan  # noqa: E402 - not installed
from reconciler.model.public import Public, Term, derived, names  # noqa: E402 - not installed
from reconciler.model.values import MISSING, Address  # noqa: E402 - not installed

Schema = dict[str, Any]
Members = dict[str, tuple[Schema, bool]]
"""What JSON has, by name: the schema, and whether it is always there."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LINES = "One line of `apply --log-file FILE` and `--format json`."
_HEAD = ("run", "sequence", "time")
"""What each line of an audit log has beside its event."""
_TEXTS: Mapping[type[Any], Schema] = {
    Address: {
        "description": "KIND.KEY, or KIND.id:ID for an unmanaged object.",
        "type": "string",
        "pattern": r"^[^.]+\..+$",
    },
    ExitCode: {"type": "integer"},
}


def _all(base: type[Any]) -> Iterator[type[Any]]:
    """Yield every type below a class."""
    for below in base.__subclasses__():
        yield below
        yield from _all(below)


for package in (model, commands, render):
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)
REPORTS = {kind.schema: kind for kind in _all(Public) if "schema" in vars(kind)}
FORMS = (*REPORTS, "event")


def generated() -> Mapping[str, str]:
    """Return the text of every generated file, by its path in the repository."""
    return {
        f"schemas/{name}.schema.json": json.dumps(saved_schema(name), indent=2) + "\n"
        for name in FORMS
    }


def saved_schema(name: str) -> Schema:
    """Return the schema of a command's JSON, with an absolute id and all that it refers to."""
    definitions: dict[str, Schema] = {}
    if name == "event":
        for word, kind in EVENTS.items():
            _define(kind, definitions, _head(word, definitions))
        references = [_reference(kind) for kind in EVENTS.values()]
        root: Schema = {"description": _LINES, "anyOf": references}
    else:
        _define(REPORTS[name], definitions)
        root = definitions.pop(_name(REPORTS[name]))
    return {
        "$schema": _DIALECT,
        "$id": f"urn:reconciler:schema:{name}:{Plan.version}",
        "title": name.replace("_", " ").capitalize(),
        **root,
        "$defs": definitions,
    }


def _name(kind: type[Any]) -> str:
    """Return the name of a definition: `change` for `Change`."""
    return kind.__name__[:1].lower() + kind.__name__[1:]


def _reference(kind: type[Any]) -> Schema:
    return {"$ref": f"#/$defs/{_name(kind)}"}


def _head(word: str, definitions: dict[str, Schema]) -> Members:
    """Return what the line of an event has before the event."""
    is_first = word in STARTS
    line = _members(FirstLine if is_first else Line, definitions)
    keys = (*_HEAD, "started_by") if is_first else _HEAD
    event = {"description": "The event.", "const": word}
    return {"event": (event, True), **_version(Plan.version), **{key: line[key] for key in keys}}


def _version(version: int) -> Members:
    return {"format_version": ({"description": "Version of this format.", "const": version}, True)}


def _define(kind: type[Any], definitions: dict[str, Schema], head: Members | None = None) -> None:
    """Add the definition of a struct or of an enumeration, and of all types that it uses."""
    if _name(kind) in definitions:
        return
    made: Schema = {"description": inspect.cleandoc(kind.__doc__ or "")}
    definitions[_name(kind)] = made
    if issubclass(kind, Enum):
        made["enum"] = [word.value for word in kind]
        if issubclass(kind, Term):
            texts = (f"`{word.value}`: {word.meaning.removesuffix('.')}." for word in kind)
            made["description"] = " ".join([made["description"], *texts])
        return
    version = getattr(kind, "version", None)
    head = head or (_version(version) if version is not None else {})
    made |= _object({**head, **_members(kind, definitions)})


def _object(members: Members) -> Schema:
    return {
        "type": "object",
        "properties": {key: node for key, (node, _) in members.items()},
        "required": [key for key, (_, is_required) in members.items() if is_required],
        "additionalProperties": False,
    }


def _members(kind: type[Any], definitions: dict[str, Schema]) -> Members:
    """Return what the JSON of a struct has."""
    known, texts = {item.name: item for item in fields(kind)}, _docstrings(kind)
    keys = {item.encode_name: name for name, item in known.items()}
    members: Members = {}
    for key, name in (names(kind) if issubclass(kind, Public) else keys).items():
        value, default = getattr(kind, name), None
        if isinstance(value, derived):
            hint = get_type_hints(value.fget, include_extras=True)["return"]
            text = " ".join((value.__doc__ or "").split())
        else:
            hint, text, default = known[name].type, texts.get(name), known[name].default
        is_optional = name in getattr(kind, "optional", ())
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        left = {UnsetType, type(None)} if is_optional else {UnsetType}
        node = _node(Union[tuple(part for part in parts if part not in left)], definitions)  # noqa: UP007
        is_required = not (is_optional or UnsetType in parts or default is MISSING)
        described = {"description": text} if text else {}
        members[key] = ({**described, **node, **described}, is_required)
    return members


def _docstrings(kind: type[Struct]) -> dict[str, str]:
    """Return the docstrings after the fields of a type."""
    texts: dict[str, str] = {}
    for owner in kind.__mro__[: kind.__mro__.index(Struct)]:
        (defined,) = ast.parse(inspect.getsource(owner)).body
        for item, below in pairwise(getattr(defined, "body", ())):
            match item, below:
                case ast.AnnAssign(ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    texts.setdefault(name, " ".join(text.split()))
    return texts


def _node(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a type, and define what it refers to."""
    if get_origin(hint) is dict and issubclass(words := get_args(hint)[0], Term):
        number = _node(get_args(hint)[1], definitions)
        return _object(
            {word.value: ({"description": word.meaning, **number}, True) for word in words}
        )

    (node,), _ = schema_components([_opaque(hint, definitions)], schema_hook=_custom)
    return _plain(node)


def _custom(kind: type[Any]) -> Schema:
    return dict(_TEXTS[kind.stands_for]) if kind.stands_for in _TEXTS else _reference(kind)


def _opaque(hint: Any, definitions: dict[str, Schema]) -> Any:
    """Return a type with empty types of the same names in it, and define what they stand for."""
    if isinstance(hint, type) and issubclass(hint, (Struct, Enum, Address)):
        if hint not in _TEXTS:
            _define(hint, definitions)
        return _stand_in(hint)
    origin = get_origin(hint)
    parts = tuple(_opaque(part, definitions) for part in get_args(hint))
    if origin is Annotated:
        return Annotated[(parts[0], *hint.__metadata__)]
    if origin in (Union, UnionType):
        return Union[parts]  # noqa: UP007 - of parts that are known here only
    return origin[parts] if origin in (tuple, dict, Mapping) else hint


@cache
def _stand_in(kind: type[Any]) -> type[Any]:
    if issubclass(kind, Struct):
        return defstruct(kind.__name__, [])
    return type(kind.__name__, (), {"stands_for": kind})


def _plain(node: Any) -> Any:
    """Return a node with short names in references, and simple types joined."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _plain(value) for key, value in node.items()}
    if "$ref" in made:
        name = made["$ref"].rpartition("/")[2]
        made["$ref"] = f"#/$defs/{name[:1].lower()}{name[1:]}"
    if len(made.get("enum", ())) == 1:
        (made["const"],) = made.pop("enum")
    choices = made.get("anyOf", [])
    # The order is that of the msgspec version otherwise.
    choices.sort(key=lambda choice: (choice == {"type": "null"}, json.dumps(choice)))
    if choices and all(list(choice) == ["type"] for choice in choices):
        del made["anyOf"]
        made["type"] = [choice["type"] for choice in choices]
    return made


def main() -> None:
    """Write all schemas."""
    for path, text in generated().items():
        (ROOT / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
