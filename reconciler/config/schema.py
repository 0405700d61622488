"""JSON Schema findings as diagnostics: the field in the right place, and the way out.

A variant object (a destination) is checked against the schema of its tag's value, so that an error
names the field of that type, and never "not valid under any of the given schemas".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from reconciler.config.document import Unknown, UnknownText
from reconciler.config.schema_files import schema
from reconciler.errors import Mark, Problems
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text, value_at

_PLACEHOLDER = "(secret)"
_ALWAYS_TEXT = "${env:…} is always text, a variable keeps its type"
_TYPE_WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """What is being checked: a word for messages, and how a path is found in the files."""

    subject: str
    value_mark: Callable[[Path], Mark]
    key_mark: Callable[[Path], Mark]


@cache
def _validator(name: str) -> Draft202012Validator | None:
    found = schema(name)
    return Draft202012Validator(found) if found is not None else None


def check(name: str, value: JSON, checked: Checked, problems: Problems, path: Path = ()) -> None:
    """Everything that the schema `name` has against a value. `path` is where the value stands."""
    validator = _validator(name)
    if validator is None:
        return
    plain = _without_references(value)
    if not validator.is_valid(plain):
        for error in validator.iter_errors(plain):
            _tell(error, checked, problems, path)
    _check_annotations(schema(name) or {}, value, checked, problems, path)


def _without_references(value: JSON) -> JSON:
    """Secret references are text to a schema."""
    if isinstance(value, SecretRef):
        return _PLACEHOLDER
    if isinstance(value, dict):
        return {key: _without_references(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_references(item) for item in value]
    return value


def _tell(error: Any, checked: Checked, problems: Problems, path: Path) -> None:
    if _told_already(error.instance, error.validator):
        return
    where = (*path, *error.absolute_path)
    named = f"{path_text(where)} of {checked.subject}" if where else checked.subject
    match error.validator:
        case "additionalProperties":
            _tell_unknown(error, checked, problems, where)
        case "required":
            for name in error.validator_value:
                if name not in error.instance:
                    problems.error(
                        "missing-field",
                        f"{named} needs '{name}'",
                        at=checked.key_mark(where),
                        hint=f"add `{name}:`",
                    )
        case "type":
            wanted = error.validator_value
            wanted = wanted if isinstance(wanted, list) else [wanted]
            words = " or ".join(_TYPE_WORDS[each] for each in wanted)
            problems.error(
                "wrong-type",
                f"{named} is {_shown(error.instance)}, and it takes {words}",
                at=checked.value_mark(where),
                hint=_type_hint(error.instance, wanted),
            )
        case "enum" | "const":
            allowed = error.validator_value
            allowed = allowed if isinstance(allowed, list) else [allowed]
            problems.error(
                "not-allowed",
                f"{named} can't be {_shown(error.instance)}",
                at=checked.value_mark(where),
                hint=_allowed(error.instance, [str(each) for each in allowed]),
            )
        case _:
            problems.error(
                "out-of-range",
                f"{named}: {_plain_words(error)}",
                at=checked.value_mark(where),
            )


def _told_already(value: Any, validator: str) -> bool:
    """Whether the value is not known: what is wrong with it has been told, or may be right."""
    if isinstance(value, UnknownText):
        return validator != "type"
    return isinstance(value, Unknown)


def _plain_words(error: Any) -> str:
    limit, value = error.validator_value, _shown(error.instance)
    words = {
        "minimum": f"{value} is less than {limit}",
        "maximum": f"{value} is more than {limit}",
        "minLength": "it is empty" if limit == 1 else f"it has less than {limit} characters",
        "maxLength": f"it has more than {limit} characters",
        "pattern": f"{value} has another form than is expected, such as 20%",
        "minProperties": "it is empty",
        "maxProperties": f"it takes one of {', '.join(error.schema.get('properties', {}))}",
    }
    return words.get(str(error.validator), "the value does not fit")


def _tell_unknown(error: Any, checked: Checked, problems: Problems, where: Path) -> None:
    known = list(error.schema.get("properties", {}))
    for name in sorted(set(error.instance) - set(known)):
        inside = f" in {path_text(where)}" if where else ""
        problems.error(
            "unknown-field",
            f"unknown field '{name}'{inside} of {checked.subject}",
            at=checked.key_mark((*where, name)),
            hint=_allowed(name, known),
        )


def _allowed(given: Any, known: list[str]) -> str:
    close = get_close_matches(str(given), known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else f"allowed: {', '.join(known)}"


def _shown(value: Any) -> str:
    """A value in a message, without its content where that might be long or a secret."""
    if isinstance(value, str):
        return "text" if len(value) > 60 else f"'{value}'"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return {None: "null", True: "true", False: "false"}.get(value, str(value))


def _type_hint(value: Any, wanted: list[str]) -> str | None:
    if "string" in wanted and "object" in wanted and isinstance(value, int):
        return f"a key is quoted: '{value}'; for what is not declared write {{id: {value}}}"
    if "string" in wanted and isinstance(value, (bool, int, float)):
        return f"quote it: '{str(value).lower() if isinstance(value, bool) else value}'"
    if isinstance(value, str) and ("integer" in wanted or "number" in wanted):
        plain = value.strip().lstrip("+-").replace(".", "", 1).isdigit()
        return f"remove the quotes; {_ALWAYS_TEXT}" if plain else None
    if isinstance(value, str) and "boolean" in wanted:
        return f"write true or false, without quotes; {_ALWAYS_TEXT}"
    if "array" in wanted and isinstance(value, str):
        return f"write a list: [{value}]"
    return None


def _check_annotations(
    node: Mapping[str, Any], value: JSON, checked: Checked, problems: Problems, path: Path
) -> None:
    """What JSON Schema has no word for: open enumerations, secrets, variants."""
    if isinstance(value, dict):
        _check_variant(node, value, checked, problems, path)
        for name, below in node.get("properties", {}).items():
            if name in value:
                _check_annotations(below, value[name], checked, problems, (*path, name))
        if node.get("x-holds-secrets"):
            return
    elif isinstance(value, SecretRef):
        if not node.get("x-secret") and not node.get("x-holds-secrets"):
            problems.error(
                "secret-in-plain-field",
                f"{path_text(path)} of {checked.subject} is no secret field: the service shows "
                "what is in it to everybody who may read",
                at=checked.value_mark(path),
                hint="use ${env:NAME} or ${var:NAME} here",
            )
    else:
        _check_enumeration(node, value, checked, problems, path)


def _check_enumeration(
    node: Mapping[str, Any], value: JSON, checked: Checked, problems: Problems, path: Path
) -> None:
    known = node.get("x-open-enum")
    if not isinstance(value, str) or isinstance(value, Unknown) or known is None:
        return
    if value not in known:
        problems.warning(
            "unknown-value",
            f"{path_text(path)} of {checked.subject}: '{value}' is not a value known to this "
            "version; the service decides",
            at=checked.value_mark(path),
            hint=_allowed(value, known).replace("allowed", "known"),
        )
    elif value in node.get("x-feature-flag", ()):
        problems.warning(
            "feature-flag",
            f"{path_text(path)} of {checked.subject}: '{value}' needs a feature of the service "
            "that not every organization has",
            at=checked.value_mark(path),
        )


def _check_variant(
    node: Mapping[str, Any],
    value: Mapping[str, Any],
    checked: Checked,
    problems: Problems,
    path: Path,
) -> None:
    variants = node.get("x-variants")
    if variants is None:
        return
    tag, body = value.get(variants["tag"]), value.get(variants["body"])
    if isinstance(tag, str) and isinstance(body, dict):
        typed = Checked(f"{checked.subject} ({tag})", checked.value_mark, checked.key_mark)
        inside = (*path, variants["body"])
        check(f"{variants['folder']}/{tag}", body, typed, problems, inside)
        if value.get(variants["unless"]) is None:
            _check_inline(f"{variants['folder']}/{tag}", body, typed, problems, inside)


def _check_inline(
    name: str, body: Mapping[str, Any], checked: Checked, problems: Problems, path: Path
) -> None:
    """Fields that are needed as long as nothing beside the body holds them."""
    for needed in (schema(name) or {}).get("x-required-unless", ()):
        if needed not in body:
            problems.error(
                "missing-field",
                f"{path_text(path)} of {checked.subject} needs '{needed}'",
                at=checked.key_mark(path),
                hint=f"add `{needed}:`, or an `integration` that holds it",
            )


def annotated(name: str, annotation: str, value: JSON) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Paths inside a value whose schema carries an annotation, variants followed."""
    root = schema(name)
    if root is not None:
        yield from _annotated(root, annotation, value, ())


def _annotated(
    node: Mapping[str, Any], annotation: str, value: JSON, path: Path
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if annotation in node:
        yield path, node
    if not isinstance(value, dict):
        return
    for name, below in node.get("properties", {}).items():
        if name in value:
            yield from _annotated(below, annotation, value[name], (*path, name))
    variants = node.get("x-variants")
    if variants is not None:
        inner = schema(f"{variants['folder']}/{value.get(variants['tag'])}")
        body = value_at(value, (variants["body"],))
        if inner is not None and body is not MISSING:
            yield from _annotated(inner, annotation, body, (*path, variants["body"]))
