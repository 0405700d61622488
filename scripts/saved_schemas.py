"""Write the schemas of what the commands print as JSON, from the forms of the codec.

The docstring after a field is its description.
Run it after every change of a form or a term; a test fails until then.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, defstruct, field
from msgspec.json import schema
from msgspec.structs import fields

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler import authoring, model, operations, render  # noqa: E402 - not installed
from reconciler.diagnostics import Mark  # noqa: E402 - not installed
from reconciler.model.address import Address  # noqa: E402 - not installed
from reconciler.model.codec.backfill_plan import BackfillPlanForm  # noqa: E402 - not installed
from reconciler.model.codec.base import AddressText, PathForm, PlaceForm  # noqa: E402
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm  # noqa: E402 - not installed
from reconciler.model.codec.log import AnyLine  # noqa: E402
from reconciler.model.public import (  # noqa: E402
    Public,
    Term,
    derived,
    names,
)
from reconciler.model.values import Path  # noqa: E402

Schema = dict[str, Any]

_SHAPES: Mapping[Any, Any] = {
    Address: AddressText,
    Mark: PlaceForm,
    Path: PathForm,
    datetime: str,
    Mapping[str, Any]: dict[str, Any],
}
"""What public JSON has for the values of some types."""

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def _reports(kind: type[Public] = Public) -> Iterator[type[Public]]:
    """Yield the reports of all modules."""
    for below in kind.__subclasses__():
        yield from (below,) if "schema" in vars(below) else ()
        yield from _reports(below)


for package in (model, authoring, operations, render):
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
_LINES = "One line of `apply --log-file FILE` and `--format json`."
FORMS = {
    "plan": ("Plan", PlanForm, None),
    **{
        kind.schema: (kind.schema.replace("_", " ").capitalize(), kind, None) for kind in _reports()
    },
    "backfill": ("Backfill", BackfillPlanForm, None),
    "event": ("Event", AnyLine, _LINES),
}


def generated() -> Mapping[str, str]:
    """Return the text of every generated file, by its path in the repository."""
    return {
        f"schemas/{name}.schema.json": json.dumps(saved_schema(name), indent=2) + "\n"
        for name in FORMS
    }


def saved_schema(name: str) -> Schema:
    """Return the schema of a command's JSON, with an absolute id and all that it refers to."""
    title, form, description = FORMS[name]
    raw = schema(_shadow(form) if isinstance(form, type) and issubclass(form, Public) else form)
    definitions = {_name(key): _definition(key, node) for key, node in raw["$defs"].items()}
    root = _node({key: node for key, node in raw.items() if key != "$defs"})
    if "$ref" in root:
        root = definitions.pop(root["$ref"].rpartition("/")[2])
    head = {"$schema": _DIALECT, "$id": f"urn:reconciler:schema:{name}:{FORMAT_VERSION}"}
    text = description or root["description"]
    rest = {key: value for key, value in root.items() if key not in ("title", "description")}
    return {**head, "title": title, "description": text, **rest, "$defs": definitions}


@cache
def _shadow(kind: type[Public]) -> type[Struct]:
    """Return a form with what public JSON has of a type: schemas are made of forms."""
    hints = get_type_hints(kind, include_extras=True)
    made: list[tuple[str, Any, Any]] = []
    texts = {key: text for key, text in _descriptions(kind).items() if key in names(kind)}
    if kind.version is not None:
        made.append(("format_version", Literal[kind.version], NODEFAULT))
        texts["format_version"] = "Version of this format."
    for key, name in names(kind).items():
        value = getattr(kind, name)
        if isinstance(value, derived):
            hint = get_type_hints(value.fget, include_extras=True)["return"]
            texts[key] = (value.__doc__ or "").strip()
        else:
            hint = hints[name]
        default = UNSET if UnsetType in get_args(hint) else NODEFAULT
        made.append((key.replace("-", "_"), _shape(hint), field(name=key, default=default)))
    space = {"__doc__": kind.__doc__, "__texts__": texts}
    return defstruct(kind.__name__, made, namespace=space, forbid_unknown_fields=True, kw_only=True)


def _shape(hint: Any) -> Any:
    """Return the type that values of a type have in public JSON."""
    if hint in _SHAPES:
        return _SHAPES[hint]
    if isinstance(hint, type) and issubclass(hint, Public):
        return _shadow(hint)
    words = get_args(hint)[0] if get_origin(hint) is dict else None
    if isinstance(words, type) and issubclass(words, Term):
        return _counts(words, get_args(hint)[1])
    parts = tuple(map(_shape, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return Union[parts]  # noqa: UP007 - of parts that are known here only
    if get_origin(hint) in (tuple, dict):
        return get_origin(hint)[parts]
    return hint


def _counts(words: type[Term], number: Any) -> type[Struct]:
    """Return a form with a number for each word."""
    members = [(word.name.lower(), number, field(name=str(word))) for word in words]
    texts = {str(word): word.meaning for word in words}
    space = {"__doc__": f"The number by {words.__name__.lower()}.", "__texts__": texts}
    return defstruct(
        f"{words.__name__}Counts", members, namespace=space, forbid_unknown_fields=True
    )


def _name(key: str) -> str:
    """Return the short name of a definition: `change` for `ChangeForm`, `done` for `DoneLine`."""
    short = key.removesuffix("Form").removesuffix("Line")
    return short[:1].lower() + short[1:]


def _all_forms(form: type[Struct] = Struct) -> Iterator[type[Struct]]:
    """Yield every form below a class."""
    for below in form.__subclasses__():
        yield below
        yield from _all_forms(below)


def _descriptions(form: type[Struct]) -> dict[str, str]:
    """Return the docstrings after the fields of a form, by their names in JSON."""
    if "__texts__" in vars(form):
        return {key: text for key, text in vars(form)["__texts__"].items() if text}
    keys = {field.name: field.encode_name for field in fields(form)}
    texts: dict[str, str] = {}
    for owner in form.__mro__[: form.__mro__.index(Struct)]:
        (defined,) = ast.parse(inspect.getsource(owner)).body
        for item, below in pairwise(getattr(defined, "body", ())):
            match item, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts.setdefault(keys[name], " ".join(text.split()))
    return texts


def _definition(key: str, node: Schema) -> Schema:
    """Return a definition; that of a term has its words in order, with their meanings."""
    terms = {term.__name__: term for term in Term.__subclasses__()}
    if key in terms:
        words = list(terms[key])
        meanings = " ".join(f"`{word.value}`: {word.meaning.removesuffix('.')}." for word in words)
        node = {
            "description": f"{node['description']} {meanings}",
            "enum": [word.value for word in words],
        }
    made = _node({name: value for name, value in node.items() if name != "title"})
    forms = [form for form in _all_forms() if form.__name__ == key and not issubclass(form, Public)]
    for form in [form for form in forms if "__texts__" in vars(form)] or forms:
        for name, text in _descriptions(form).items():
            made["properties"][name].pop("description", None)
            made["properties"][name] = {"description": text, **made["properties"][name]}
    if "event" in made.get("properties", {}):
        made["properties"]["event"]["description"] = "The event."
    return made


def _node(node: Any) -> Any:
    """Return a node with short names in references, and only JSON Schema keywords."""
    if isinstance(node, list):
        return [_node(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _node(value) for key, value in node.items() if key != "discriminator"}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = f"#/$defs/{_name(made['$ref'].rpartition('/')[2])}"
    if isinstance(made.get("enum"), list) and len(made["enum"]) == 1:
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
