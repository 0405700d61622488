"""Write the schemas of what the commands print as JSON, from their declarations.

The docstring after a field is its description.
Run it after every change of a declaration or a term; a test fails until then.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, get_args, get_origin, get_type_hints

from msgspec import Struct, defstruct, field
from msgspec.json import schema

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler import authoring, model, operations, render  # noqa: E402 - not installed
from reconciler.model.audit_log import lines  # noqa: E402 - not installed
from reconciler.model.decoding import SHAPES, form_of  # noqa: E402 - not installed
from reconciler.model.plan import Plan  # noqa: E402 - not installed
from reconciler.model.public import Public, Term, derived, names  # noqa: E402 - not installed

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


_LINES = "One line of `apply --log-file FILE` and `--format json`."


def _all(base: type[Struct]) -> Iterator[type[Any]]:
    """Yield every type below a class."""
    for below in base.__subclasses__():
        yield below
        yield from _all(below)


for package in (model, authoring, operations, render):
    for module in iter_modules(package.__path__):
        import_module(f"{package.__name__}.{module.name}")
REPORTS = {kind.schema: kind for kind in _all(Public) if "schema" in vars(kind)}
FORMS = (*REPORTS, "event")


def _counts(words: type[Term], number: Any) -> type[Struct]:
    """Return a form with a number for each word."""
    members = [(word.name.lower(), number, field(name=str(word))) for word in words]
    texts = {str(word): word.meaning for word in words}
    space = {"__doc__": f"The number by {words.__name__.lower()}.", "texts": texts}
    return defstruct(
        f"{words.__name__}Counts", members, namespace=space, forbid_unknown_fields=True
    )


def _hints(kind: type[Public]) -> Iterator[Any]:
    """Yield the types of what public JSON has of a type."""
    values = [getattr(kind, name) for name in names(kind).values()]
    for value in values:
        if isinstance(value, derived):
            yield get_type_hints(value.fget, include_extras=True)["return"]


for report in REPORTS.values():
    for hint in _hints(report):
        words = get_args(hint)[0] if get_origin(hint) is dict else None
        if isinstance(words, type) and issubclass(words, Term):
            SHAPES[hint] = _counts(words, get_args(hint)[1])


def generated() -> Mapping[str, str]:
    """Return the text of every generated file, by its path in the repository."""
    return {
        f"schemas/{name}.schema.json": json.dumps(saved_schema(name), indent=2) + "\n"
        for name in FORMS
    }


def saved_schema(name: str) -> Schema:
    """Return the schema of a command's JSON, with an absolute id and all that it refers to."""
    raw = schema(lines() if name == "event" else form_of(REPORTS[name]))
    definitions = {_name(key): _definition(key, node) for key, node in raw["$defs"].items()}
    root = _node({key: node for key, node in raw.items() if key != "$defs"})
    if "$ref" in root:
        root = definitions.pop(root["$ref"].rpartition("/")[2])
    head = {"$schema": _DIALECT, "$id": f"urn:reconciler:schema:{name}:{Plan.version}"}
    text = _LINES if name == "event" else inspect.cleandoc(root["description"])
    rest = {key: value for key, value in root.items() if key not in ("title", "description")}
    return {
        **head,
        "title": name.replace("_", " ").capitalize(),
        "description": text,
        **rest,
        "$defs": definitions,
    }


def _name(key: str) -> str:
    """Return the name of a definition: `change` for `Change`."""
    return key[:1].lower() + key[1:]


def _texts(form: type[Any]) -> Mapping[str, str]:
    """Return the descriptions of the members of a form, by their names in JSON."""
    if "texts" in vars(form):
        return form.texts
    kind = getattr(form, "__declared__", None)
    texts = {**_docstrings(form), "format_version": "Version of this format."}
    if kind is not None:
        texts |= _docstrings(kind)
        values = {key: getattr(kind, name) for key, name in names(kind).items()}
        docs = {
            key: item.__doc__ or "" for key, item in values.items() if isinstance(item, derived)
        }
        texts |= {key: " ".join(text.split()) for key, text in docs.items()}
    return texts


def _docstrings(form: type[Struct]) -> dict[str, str]:
    """Return the docstrings after the fields of a type, by their names in JSON."""
    keys = dict(zip(form.__struct_fields__, form.__struct_encode_fields__, strict=True))
    texts: dict[str, str] = {}
    for owner in form.__mro__[: form.__mro__.index(Struct)]:
        if hasattr(owner, "__declared__"):
            continue
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
    forms = [form for form in _all(Struct) if form.__name__ == key and not issubclass(form, Public)]
    for form in forms:
        for name, text in _texts(form).items():
            if name in made["properties"]:
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
