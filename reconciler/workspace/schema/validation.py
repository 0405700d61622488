"""JSON Schema errors as diagnostics: the field in the right place, and a hint.

A variant object (a destination) is checked against the schema of its tag's value, so that an error
names the field of that type, and never "not valid under any of the given schemas".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.model.json_tree import PLAIN, map_leaves
from reconciler.model.schema_files import schema, variant_schema
from reconciler.model.suggestion import choice, nearest
from reconciler.model.values import JSON, Path, SecretRef, path_text, value_at
from reconciler.workspace.hints import (
    PLACEHOLDER,
    range_words,
    shown,
    type_hint,
    types,
    word,
)
from reconciler.workspace.schema.annotations import (
    FREE,
    HOLDS_SECRETS,
    Annotated,
    OpenEnumeration,
    Variants,
    annotations_of,
)
from reconciler.workspace.schema.validators import Error, Validator, validator
from reconciler.workspace.yaml.document import Unknown, UnknownText

_LOOKED_INTO = frozenset({dict, list, SecretRef})


@dataclass(frozen=True, slots=True)
class Checked:
    """What is being checked: a word for messages, and how a path is found in the files."""

    subject: str
    value_mark: Callable[[Path], Mark]
    key_mark: Callable[[Path], Mark]


@cache
def _validator(name: str) -> Validator | None:
    known = schema(name)
    return validator(known) if known is not None else None


def check(
    name: str, value: JSON, checked: Checked, problems: DiagnosticCollector, path: Path = ()
) -> None:
    """Report all errors of a value by the schema `name`. `path` is where the value is."""
    compiled = _validator(name)
    if compiled is None:
        return
    plain = map_leaves(value, _plain_text, keep=PLAIN)
    if not compiled.is_valid(plain):
        findings = [_finding(name, value, error) for error in compiled.errors(plain)]
        mistyped = {mistake.path for mistake in findings if mistake.keyword == "type"}
        for finding in findings:
            again = finding.keyword != "type" and finding.path in mistyped
            if not again and not _is_reported(finding):
                _report(finding, checked, problems, (*path, *finding.path))
    _check_annotations(annotations_of(name), value, _Look(checked, problems, path), ())


def _plain_text(value: JSON) -> JSON:
    """Return text for what is text to a schema: secret references and unknown values."""
    if isinstance(value, SecretRef):
        return PLACEHOLDER
    return str(value) if isinstance(value, Unknown) else value


@dataclass(frozen=True, slots=True)
class _Finding:
    """What a keyword of a schema has against a value. `node` is the part that has the keyword."""

    keyword: str
    node: Mapping[str, Any]
    value: JSON
    path: Path

    @property
    def limit(self) -> Any:
        """What the keyword asks for."""
        return self.node[self.keyword]


def _finding(name: str, value: JSON, error: Error) -> _Finding:
    """The finding behind an error of the validator. Our schemas have no `$ref` on the way."""
    node: Any = schema(name)
    for part in error.schema_path[:-1]:
        node = node[part]
    path = error.value_path
    return _Finding(str(error.schema_path[-1]), node, value_at(value, path), path)


def _is_reported(finding: _Finding) -> bool:
    """Return whether the value is unknown: it is reported already, or may be right."""
    if isinstance(finding.value, UnknownText):
        return finding.keyword != "type"
    # A secret where no text fits is reported as a secret in a plain field.
    return isinstance(finding.value, (Unknown, SecretRef))


def _report(
    finding: _Finding, checked: Checked, problems: DiagnosticCollector, where: Path
) -> None:
    named = f"{path_text(where)} of {checked.subject}" if where else checked.subject
    match finding.keyword:
        case "additionalProperties":
            _report_unknown(finding, checked, problems, where)
        case "required":
            for name in finding.limit:
                if name not in finding.value and name not in _intended(finding.value, finding.node):
                    problems.error(
                        "missing-field",
                        f"{named} needs '{name}'",
                        at=checked.key_mark(where),
                        hint=f"add `{name}:`",
                    )
        case "type":
            wanted = finding.limit if isinstance(finding.limit, list) else [finding.limit]
            problems.error(
                "wrong-type",
                f"{named} is {shown(finding.value)}, and it takes {types(wanted)}",
                at=checked.value_mark(where),
                hint=type_hint(finding.value, wanted, finding.node),
            )
        case "enum" | "const":
            allowed = finding.limit if isinstance(finding.limit, list) else [finding.limit]
            problems.error(
                "not-allowed",
                f"{named} can't be {shown(finding.value)}",
                at=checked.value_mark(where),
                hint=choice(finding.value, [word(choice_value) for choice_value in allowed]),
            )
        case _:
            problems.error(
                "out-of-range",
                f"{named}: {range_words(finding.keyword, finding.value, finding.node)}",
                at=checked.value_mark(where),
            )


def _report_unknown(
    finding: _Finding, checked: Checked, problems: DiagnosticCollector, where: Path
) -> None:
    known = list(finding.node.get("properties", {}))
    for name in sorted(set(finding.value) - set(known)):
        inside = f" in {path_text(where)}" if where else ""
        problems.error(
            "unknown-field",
            f"unknown field '{name}'{inside} of {checked.subject}",
            at=checked.key_mark((*where, name)),
            hint=_place_of(name, finding) or choice(name, known),
        )


def _intended(value: Mapping[str, Any], node: Mapping[str, Any]) -> set[str | None]:
    """Return the fields that unknown ones probably are: they are misspelt, not missing."""
    known = list(node.get("properties", {}))
    return {nearest(name, known) for name in value if name not in known}


def _place_of(name: str, finding: _Finding) -> str | None:
    """Return a hint for a field that is one level too high."""
    variants = finding.node.get("x-variants")
    if variants is not None:
        inner = variant_schema(variants, finding.value.get(variants["tag"]))
        if name in inner.get("properties", {}):
            return f"write it inside `{variants['body']}:`"
    for field, below in finding.node.get("properties", {}).items():
        if name in below.get("properties", {}):
            return f"write it inside `{field}:`"
    return None


@dataclass(frozen=True, slots=True)
class _Look:
    """A value being looked through for what JSON Schema has no word for. `path` leads to it."""

    checked: Checked
    problems: DiagnosticCollector
    path: Path


def _check_annotations(part: Annotated, value: JSON, look: _Look, path: Path) -> None:
    """Open enumerations, secrets in fields that are none, variants. `path` is inside the value."""
    if isinstance(value, dict):
        _check_members(part, value, look, path)
    elif isinstance(value, list):
        below = part.items or _like(part)
        for position, item in enumerate(value):
            _check_annotations(below, item, look, (*path, position))
    elif isinstance(value, SecretRef):
        if not part.secret:
            _report_secret(look, (*look.path, *path))
    elif part.enumeration is not None and value.__class__ is str:
        _check_enumeration(part.enumeration, value, look, path)


def _check_members(part: Annotated, value: Mapping[str, Any], look: _Look, path: Path) -> None:
    body = None
    if part.variants is not None:
        body = part.variants.body
        _check_variant(part.variants, value, look, path)
    for name, item in value.items():
        kind = item.__class__
        if kind is str:
            if name in part.enumerations:
                _check_enumeration(part.enumerations[name], item, look, (*path, name))
            continue
        if kind not in _LOOKED_INTO or name == body:
            continue
        below = part.below.get(name)
        if below is None and part.open_below:
            # An unknown field is not reported as a secret too.
            below = _like(part)
        if below is not None:
            _check_annotations(below, item, look, (*path, name))


def _like(part: Annotated) -> Annotated:
    """For what a schema does not describe inside a part: secrets may be in what holds secrets."""
    return HOLDS_SECRETS if part.secret else FREE


def _report_secret(look: _Look, path: Path) -> None:
    look.problems.error(
        "secret-in-plain-field",
        f"{path_text(path)} of {look.checked.subject} is no secret field: the service shows "
        "what is in it to everybody who may read",
        at=look.checked.value_mark(path),
        hint="use ${env:NAME} or ${var:NAME} here",
    )


def _check_enumeration(values: OpenEnumeration, value: str, look: _Look, path: Path) -> None:
    where = (*look.path, *path)
    if value not in values.known:
        look.problems.warning(
            "unknown-value",
            f"{path_text(where)} of {look.checked.subject}: '{value}' is not a value known to this "
            "version; the service decides",
            at=look.checked.value_mark(where),
            hint=choice(value, values.known, "known"),
        )
    elif value in values.flagged:
        look.problems.warning(
            "feature-flag",
            f"{path_text(where)} of {look.checked.subject}: '{value}' needs a feature of the "
            "service that not every organization has",
            at=look.checked.value_mark(where),
        )


def _check_variant(variants: Variants, value: Mapping[str, Any], look: _Look, path: Path) -> None:
    name, body = variants.schema_of(value), value.get(variants.body)
    if name is None or not isinstance(body, dict):
        return
    subject = f"{look.checked.subject} ({value[variants.tag]})"
    typed = Checked(subject, look.checked.value_mark, look.checked.key_mark)
    inside = (*look.path, *path, variants.body)
    check(name, body, typed, look.problems, inside)
    if value.get(variants.unless) is None:
        _check_inline(name, body, typed, look.problems, inside)


def _check_inline(
    name: str, body: Mapping[str, Any], checked: Checked, problems: DiagnosticCollector, path: Path
) -> None:
    """Fields that are needed as long as nothing beside the body holds them."""
    node = schema(name) or {}
    for needed in node.get("x-required-unless", ()):
        if needed not in body and needed not in _intended(body, node):
            problems.error(
                "missing-field",
                f"{path_text(path)} of {checked.subject} needs '{needed}'",
                at=checked.key_mark(path),
                hint=f"add `{needed}:`, or an `integration` that holds it",
            )
