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
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import schema
from msgspec.structs import fields

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.model.codec.backfill_plan import BackfillPlanForm  # noqa: E402 - not installed
from reconciler.model.codec.compared import ComparisonForm  # noqa: E402 - not installed
from reconciler.model.codec.drift import DriftForm, PulledForm  # noqa: E402 - not installed
from reconciler.model.codec.forms import FORMAT_VERSION, PlanForm  # noqa: E402 - not installed
from reconciler.model.codec.gaps import GapReportForm  # noqa: E402
from reconciler.model.codec.health import HealthReportForm  # noqa: E402
from reconciler.model.codec.lines import AnyLine  # noqa: E402
from reconciler.model.codec.preflight import PreflightReportForm  # noqa: E402
from reconciler.model.codec.projects import (  # noqa: E402
    ProjectDetailsForm,
    ProjectReportForm,
)
from reconciler.model.codec.runs import LogReportForm, RunReportForm  # noqa: E402
from reconciler.model.codec.status import StatusReportForm  # noqa: E402
from reconciler.model.term import Term  # noqa: E402

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
FORMS = {
    "plan": ("Plan", PlanForm, None),
    "status": ("Status", StatusReportForm, None),
    "runs": ("Runs", RunReportForm, None),
    "logs": ("Logs", LogReportForm, None),
    "drift": ("Drift", DriftForm, None),
    "pull": ("Pull", PulledForm, None),
    "doctor": ("Doctor", HealthReportForm, None),
    "gaps": ("Gaps", GapReportForm, None),
    "backfill": ("Backfill", BackfillPlanForm, None),
    "compare": ("Compare", ComparisonForm, None),
    "preflight": ("Preflight", PreflightReportForm, None),
    "projects": ("Projects", ProjectReportForm, None),
    "project_details": ("Project details", ProjectDetailsForm, None),
    "event": (
        "Event",
        AnyLine,
        "One line of `apply --log-file FILE` and `--format json`.",
    ),
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
    raw = schema(form)
    definitions = {_name(key): _definition(key, node) for key, node in raw["$defs"].items()}
    root = _node({key: node for key, node in raw.items() if key != "$defs"})
    if "$ref" in root:
        root = definitions.pop(root["$ref"].rpartition("/")[2])
    head = {"$schema": _DIALECT, "$id": f"urn:reconciler:schema:{name}:{FORMAT_VERSION}"}
    text = description or root["description"]
    rest = {key: value for key, value in root.items() if key not in ("title", "description")}
    return {**head, "title": title, "description": text, **rest, "$defs": definitions}


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
    names = {field.name: field.encode_name for field in fields(form)}
    texts: dict[str, str] = {}
    for owner in form.__mro__[: form.__mro__.index(Struct)]:
        (defined,) = ast.parse(inspect.getsource(owner)).body
        for field, below in pairwise(getattr(defined, "body", ())):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts.setdefault(names[name], " ".join(text.split()))
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
    for form in (form for form in _all_forms() if form.__name__ == key):
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
