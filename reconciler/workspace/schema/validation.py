"""JSON Schema errors as diagnostics, with the place of the field and a hint.

The body of a variant is checked against the schema of its tag, so that errors name its fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.model.address import Address, choice, nearest
from reconciler.model.schemas import member_schema, schema
from reconciler.model.values import JSON, MISSING, Path, SecretRef, path_text, value_at
from reconciler.workspace.hints import PLACEHOLDER, range_words, shown, type_hint, type_words, word
from reconciler.workspace.inputs import converts_to
from reconciler.workspace.schema.annotations import Annotated, annotations_of
from reconciler.workspace.schema.outlines import Body, Foreign, Outline, outline
from reconciler.workspace.schema.shapes import shape_of
from reconciler.workspace.schema.texts import text_problems
from reconciler.workspace.schema.validators import Error, Validator, validator
from reconciler.workspace.yaml.document import Input, Unknown, UnknownInput, UnknownText

_MISREAD = frozenset({"type", "enum", "const"})


class CheckContext(Struct, frozen=True):
    """What checks need besides the value.

    `subject` names the value in messages, with the tag of a variant in its body. `value_mark` and
    `key_mark` return the place of a path. `written` returns the value in the file, with its
    references.
    """

    subject: Address | str
    value_mark: Callable[[Path], Mark]
    key_mark: Callable[[Path], Mark]
    problems: DiagnosticCollector
    written: Callable[[Path], JSON] = lambda _: MISSING
    tag: str | None = None

    def of_type(self, tag: str) -> CheckContext:
        """Return the context of the body of a variant."""
        return CheckContext(
            self.subject, self.value_mark, self.key_mark, self.problems, self.written, tag
        )

    def named(self, path: Path) -> str:
        """Return the words for a field in a message."""
        subject = str(self.subject) if self.tag is None else f"{self.subject} ({self.tag})"
        return f"{path_text(path)} of {subject}" if path else subject

    def error(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        """Report an error at a value."""
        self.problems.error(code, message, at=self.value_mark(path), hint=hint)

    def warning(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        """Report a warning at a value that the service may accept."""
        about = (str(self.subject), *path) if isinstance(self.subject, Address) else ()
        self.problems.warning(code, message, at=self.value_mark(path), hint=hint, about=about)

    def error_at_key(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        """Report an error at a key."""
        self.problems.error(code, message, at=self.key_mark(path), hint=hint)

    def missing(self, name: str, path: Path, *, reason: str = "", hint: str | None = None) -> None:
        """Report that a mapping lacks a field."""
        message = f"missing field '{name}' in {self.named(path)}{reason}"
        self.error_at_key("missing-field", path, message, hint or f"add `{name}:`")


@cache
def _validator(name: str) -> Validator | None:
    node = schema(name)
    return validator(node) if node is not None else None


def check(
    name: str, value: JSON, context: CheckContext, path: Path = (), *, parts: Outline | None = None
) -> Collection[Path]:
    """Report all errors of a value by the schema `name`. `path` is the place of the value.

    `parts` is the outline of the value, if it is known. Return the paths of values that further
    checks should skip: of a wrong type, or not allowed.
    """
    if parts is None:
        parts = outline(name, shape_of(value, annotations_of(name).tags))
    return _check(name, value, _plain(value, parts.foreign), parts, context, path)


def _check(
    name: str, value: JSON, plain: JSON, parts: Outline, context: CheckContext, path: Path
) -> Collection[Path]:
    """Check a value, which is `plain` to a schema."""
    compiled = _validator(name)
    if compiled is None:
        return ()
    misread: list[Path] = []
    if not compiled.is_valid(plain):
        violations = [_violation(name, value, error) for error in compiled.errors(plain)]
        mistyped = {violation.path for violation in violations if violation.keyword == "type"}
        for violation in violations:
            repeated = violation.keyword != "type" and violation.path in mistyped
            if not repeated and not _is_reported(violation):
                _report(violation, context, (*path, *violation.path))
                if violation.keyword in _MISREAD:
                    misread.append(violation.path)
    _check_outline(parts, value, plain, context, path)
    return misread


def _plain(value: JSON, foreign: Foreign) -> JSON:
    """Return a value with text in place of what is text to a schema, and no JSON."""
    if foreign is None:
        return _plain_text(value)
    if not foreign:
        return value
    changed = value.copy()
    for key, below in foreign.items():
        changed[key] = _plain(value[key], below)
    return changed


def _plain_text(value: JSON) -> JSON:
    """Return text for secret references, inputs and unknown values, which are text to a schema."""
    if isinstance(value, SecretRef):
        return PLACEHOLDER
    return str(value) if isinstance(value, (Unknown, Input)) else value


class _Violation(Struct, frozen=True):
    """A value that violates a keyword. `node` is the part of the schema with the keyword."""

    keyword: str
    node: Mapping[str, Any]
    value: JSON
    path: Path

    @property
    def types(self) -> Sequence[str]:
        """The types that the schema accepts."""
        types = self.node.get("type", ())
        return [types] if isinstance(types, str) else types


def _violation(name: str, value: JSON, error: Error) -> _Violation:
    """Return the violation behind an error of the validator. Composed schemas have no `$ref`."""
    node: Any = schema(name)
    for part in error.schema_path[:-1]:
        node = node[part]
    path = error.value_path
    return _Violation(str(error.schema_path[-1]), node, value_at(value, path), path)


def _is_reported(violation: _Violation) -> bool:
    """Return whether the value is unknown: its error is reported already, or it may be valid."""
    if isinstance(violation.value, UnknownText):
        return violation.keyword != "type" or _may_be_valid(violation)
    # A secret where no text is valid is reported as a secret in a plain field.
    return isinstance(violation.value, (Unknown, SecretRef))


def _may_be_valid(violation: _Violation) -> bool:
    """Return whether an unknown text may be converted to the type that its field wants."""
    return isinstance(violation.value, UnknownInput) and converts_to(violation.types)


def _report(violation: _Violation, context: CheckContext, path: Path) -> None:
    named, value = context.named(path), violation.value
    limit = violation.node[violation.keyword]
    match violation.keyword:
        case "additionalProperties":
            _report_unknown(violation, context, path)
        case "required":
            for name in limit:
                if name not in value and name not in _intended(value, violation.node):
                    context.missing(name, path)
        case "type":
            message = f"{named} must be {type_words(violation.types)}, not {shown(value)}"
            hint = type_hint(value, violation.types, violation.node, context.written(path))
            context.error("wrong-type", path, message, hint)
        case "enum" | "const":
            allowed = [word(item) for item in (limit if isinstance(limit, list) else [limit])]
            message = f"invalid value {shown(value)} for {named}"
            context.error("not-allowed", path, message, choice(value, allowed))
        case _:
            words = range_words(violation.keyword, value, violation.node)
            context.error("out-of-range", path, f"{named} must {words}")


def _report_unknown(violation: _Violation, context: CheckContext, path: Path) -> None:
    known = list(violation.node.get("properties", {}))
    for name in sorted(set(violation.value) - set(known)):
        hint = _hint_to_move(name, violation) or choice(name, known)
        message = f"unknown field '{name}' in {context.named(path)}"
        context.error_at_key("unknown-field", (*path, name), message, hint)


def _intended(value: Mapping[str, Any], node: Mapping[str, Any]) -> set[str | None]:
    """Return the fields that unknown ones probably are: they are misspelt, not missing."""
    known = list(node.get("properties", {}))
    return {nearest(name, known) for name in value if name not in known}


def _hint_to_move(name: str, violation: _Violation) -> str | None:
    """Return a hint for a field that is one level too high."""
    node = violation.node
    for holder in node.get("properties", {}):
        below = member_schema(node, violation.value, holder) or {}
        if name in below.get("properties", {}):
            return f"write it inside `{holder}:`"
    return None


def _check_outline(
    parts: Outline, value: JSON, plain: JSON, context: CheckContext, path: Path
) -> None:
    """Check what JSON Schema cannot express: texts, secrets and variants."""
    for inside, members in parts.texts:
        holder = value_at(value, inside) if inside else value
        for key, part in members:
            if holder[key] not in part.ordinary:
                _check_text(part, holder[key], context, (*path, *inside, key))
    for inside in parts.misplaced:
        at = (*path, *inside)
        message = f"{context.named(at)} is not a secret field: everyone with read access sees it"
        hint = "use ${env:NAME} or ${var:NAME} here"
        context.error("secret-in-plain-field", at, message, hint)
    for body in parts.bodies:
        _check_body(body, value, plain, context, path)


def _check_text(part: Annotated, value: str, context: CheckContext, path: Path) -> None:
    for problem in text_problems(part, value, context.named(path)):
        is_error = problem.is_error and problem.code not in context.problems.lenient
        report = context.error if is_error else context.warning
        report(problem.code, path, problem.message, problem.hint)


def _check_body(body: Body, value: JSON, plain: JSON, context: CheckContext, path: Path) -> None:
    """Check the body of a variant by the schema of its tag."""
    typed, at = context.of_type(body.tag), (*path, *body.path)
    members = value_at(value, body.path)
    _check(body.schema, members, value_at(plain, body.path), body.outline, typed, at)
    for required in body.lacks:
        if required not in _intended(members, schema(body.schema) or {}):
            hint = f"add `{required}:`, or an `{body.unless}` that provides it"
            typed.missing(required, at, hint=hint)
