"""Check values by JSON Schemas: errors as diagnostics, with the place of the field and a hint.

The body of a variant is checked against the schema of its tag, so that errors name its fields.
`annotated` finds the parts of a value whose schema has an `x-` word.
`converted` gives inputs, which are text, the types that a schema wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.files.yaml_document import TRUE_OR_FALSE, Input, Unknown, UnknownInput, UnknownText
from reconciler.kinds import kinds_by_collection
from reconciler.model.schemas import looks_secret, member_schema, schema, schema_names, types_of
from reconciler.model.settings import to_send_anyway
from reconciler.model.text import choice, joined, near_miss, nearest
from reconciler.model.values import (
    JSON,
    MISSING,
    PLAIN,
    Address,
    Path,
    SecretRef,
    holds_reference,
    leaves,
    map_leaves,
    mapping_of,
    path_text,
    references_in,
    value_at,
)
from reconciler.packaged import use_instead

_CHECKED = frozenset({"x-form", "x-open-enum", "x-placeholders", "x-url", "x-variants"})
"""The annotations that `check` checks."""
_MISREAD = frozenset({"type", "enum", "const"})
_URL = re.compile(r"\s*https?://[^/\s]", re.IGNORECASE)
PLACEHOLDER = "(secret)"
NOT_FILLED = "references are not filled in here: write the value itself"
_LONGEST = 60
_VARIABLE = r"\$\([A-Za-z_][\w.]*\)|\$[A-Z][A-Z0-9_]+|%[A-Z][A-Z0-9_]*%"
"""Placeholders of pipelines and shells, which are legal in the names of files."""
_PLAIN_NAME = re.compile(r"[\w/.-]*")
"""Text without braces and variables, the usual case."""
_NUMBER_HINT = "write a number, without quotes or a unit"
_TYPES = {
    "integer": ("a whole number", _NUMBER_HINT),
    "number": ("a number", _NUMBER_HINT),
    "boolean": ("a boolean", "write true or false, without quotes"),
    "array": ("a list", "write a list: `- item` lines, or [item, item]"),
    "object": ("a mapping", "write `name: value` lines below it, indented, without dashes"),
    "string": ("text", "write text, or `|` and indented lines"),
    "null": ("null", "write null"),
}
"""Each type in words, with the hint for a value of another type. The first one that fits counts."""
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_CONVERTED = frozenset({"integer", "number", "boolean"})
SECRET = "x-secret"  # noqa: S105 - a word of schemas
_HOLDS_SECRETS = "x-holds-secrets"
_MAY_BE_SECRET = {_HOLDS_SECRETS: True}
_HOLDERS = frozenset({dict, list})
_LOOKED_INTO = _HOLDERS | {SecretRef}
_NULLS = frozenset({"", "none", "null", "nil"})
_PUNCTUATION = re.compile(r"[\W_]+")
Part: TypeAlias = tuple[Path, Mapping[str, Any], JSON, Sequence[str]]
"""A part of a value: its path, its schema, the value, and the annotations that are asked for."""
Carriers: TypeAlias = Mapping[str, Sequence[tuple[Path, Mapping[str, Any]]]]
"""The paths inside a value by the annotation of their schema, each with the schema."""


class CheckContext(Struct, frozen=True):
    """What checks need besides the value.

    `subject` names the value in messages, with the tag of a variant in its body. `value_mark` and
    `key_mark` return the place of a path. `written` returns the value in the file, with its
    references. `carriers` collects the parts with one of the annotations `words`.
    """

    subject: Address | str
    value_mark: Callable[[Path], Mark]
    key_mark: Callable[[Path], Mark]
    problems: DiagnosticCollector
    written: Callable[[Path], JSON] = lambda _: MISSING
    tag: str | None = None
    words: frozenset[str] = frozenset()
    carriers: dict[str, list[tuple[Path, Mapping[str, Any]]]] = field(default_factory=dict)

    @property
    def all_words(self) -> frozenset[str]:
        """The annotations to find: those that checks need, and `words`."""
        return _all_words(self.words)

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

    def error_if_strict(self, code: str, path: Path, message: str, hint: str | None) -> None:
        """Report an error at a value, or a warning if its code is lenient."""
        report = self.warning if code in self.problems.lenient else self.error
        report(code, path, message, hint)

    def error_at_key(self, code: str, path: Path, message: str, hint: str | None = None) -> None:
        """Report an error at a key."""
        self.problems.error(code, message, at=self.key_mark(path), hint=hint)

    def missing(self, name: str, path: Path, *, reason: str = "", hint: str | None = None) -> None:
        """Report that a mapping lacks a field."""
        message = f"missing field '{name}' in {self.named(path)}{reason}"
        self.error_at_key("missing-field", path, message, hint or f"add `{name}:`")


@cache
def _all_words(words: frozenset[str]) -> frozenset[str]:
    # One object for equal sets, whose hash is known.
    return _CHECKED | words


def check(
    name: str, value: JSON, context: CheckContext, path: Path = (), *, plain: JSON = MISSING
) -> Collection[Path]:
    """Report all errors of a value by the schema `name`. `path` is the place of the value.

    `plain` is the value with text in place of what is text to a schema, if it is known.
    Return the paths of values that further checks should skip: of a wrong type, or not allowed.
    """
    errors_of = _validator(name)
    if errors_of is None:
        return ()
    misread: list[Path] = []
    plain = map_leaves(value, _plain_text, keep=PLAIN) if plain is MISSING else plain
    errors = errors_of(plain)
    violations = [_violation(name, value, error) for error in errors]
    mistyped = {violation.path for violation in violations if violation.keyword == "type"}
    for violation in violations:
        repeated = violation.keyword != "type" and violation.path in mistyped
        if not repeated and not _is_reported(violation):
            _report(violation, context, (*path, *violation.path))
            if violation.keyword in _MISREAD:
                misread.append(violation.path)
    _check_parts(name, (value, plain), context, path)
    return misread


def _check_parts(name: str, values: tuple[JSON, JSON], context: CheckContext, path: Path) -> None:
    """Check what JSON Schema cannot express, and collect the annotated parts."""
    value, plain = values
    for inside, node, item, own in parts(schema(name) or {}, value, context.all_words):
        place = (*path, *inside) if path else inside
        for word in own:
            if word in context.words:
                context.carriers.setdefault(word, []).append((place, node))
        if item.__class__ is str:
            _check_text(node, own, item, context, place)
            if "x-form" in own and item:
                holder = mapping_of(value_at(value, inside[:-1]))
                if not holder.get(node["x-form"].get("unless", "")):
                    _check_form(node["x-form"], item, context, place)
        elif item.__class__ is SecretRef and not holds_secrets(node):
            named = context.named(place)
            message = f"{named} is not a secret field: everyone with read access sees it"
            hint = "use ${env:NAME} or ${var:NAME} here"
            context.error("secret-in-plain-field", place, message, hint)
        elif "x-variants" in own and (body := body_of(node, item, place)) is not None:
            unless = node["x-variants"]["unless"]
            known = value_at(plain, body.path[len(path) :])
            _check_body(body, known, unless if item.get(unless) is None else None, context)


@cache
def _validator(name: str) -> Validator | None:
    node = schema(name)
    return validator_of(node) if node is not None else None


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


def _violation(name: str, value: JSON, error: Error) -> _Violation:
    """Return the violation behind an error of the validator. Composed schemas have no `$ref`."""
    node: Any = schema(name)
    (*above, keyword), path = error
    for part in above:
        node = node[part]
    return _Violation(str(keyword), node, value_at(value, path), path)


def _is_reported(violation: _Violation) -> bool:
    """Return whether the value is unknown: its error is reported already, or it may be valid."""
    if isinstance(violation.value, UnknownText):
        # An unknown input may be converted to the type that its field wants.
        is_input = isinstance(violation.value, UnknownInput)
        return violation.keyword != "type" or (is_input and converts_to(types_of(violation.node)))
    # A secret where no text is valid is reported as a secret in a plain field.
    return isinstance(violation.value, (Unknown, SecretRef))


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
            types = types_of(violation.node)
            message = f"{named} must be {type_words(types)}, not {shown(value)}"
            removed = use_instead(f"{path_text(path)}: {value}")
            hint = removed or type_hint(value, types, violation.node, context.written(path))
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
        removed = use_instead(path_text((*path, name)))
        hint = removed or _hint_to_move(name, violation) or choice(name, known)
        message = f"unknown field '{name}' in {context.named(path)}"
        context.error_at_key("unknown-field", (*path, name), message, hint)


def _intended(value: Mapping[str, Any], node: Mapping[str, Any]) -> set[str | None]:
    """Return the fields that unknown ones probably are: they are misspelt, not missing."""
    known = list(node.get("properties", {}))
    return {nearest(name, known) for name in value if name not in known}


def _hint_to_move(name: str, violation: _Violation) -> str | None:
    """Return a hint for a field that is one level too high, or in the wrong file."""
    node = violation.node
    if node.get("title") == "Workspace" and name in kinds_by_collection():
        return "write it in a resource file: any other YAML file in this folder"
    for holder in node.get("properties", {}):
        below = member_schema(node, violation.value, holder) or {}
        if name in below.get("properties", {}):
            return f"write it inside `{holder}:`"
    return None


def _check_body(body: Body, plain: JSON, unless: str | None, context: CheckContext) -> None:
    """Check the body of a variant by the schema of its tag.

    `unless` is the field that would make some of its fields optional, None if it is set.
    """
    name, members = body.schema, body.value
    if name not in schema_names() and SECRET in context.words:
        context.carriers.setdefault(SECRET, []).extend(secrets_by_name(body))
    if name is None or not isinstance(members, dict):
        return
    typed, node = replace(context, tag=body.tag), schema(name) or {}
    check(name, members, typed, body.path, plain=plain)
    for required in node.get("x-required-unless", ()) if unless is not None else ():
        if required not in members and required not in _intended(members, node):
            hint = f"add `{required}:`, or an `{unless}` that provides it"
            typed.missing(required, body.path, hint=hint)


def _check_form(form: Mapping[str, str], value: str, context: CheckContext, path: Path) -> None:
    """Report a text that no server of the destination accepts."""
    if re.fullmatch(form["pattern"], value) is None:
        given = "" if "@" in value else f", not {shown(value)}"  # It may contain a password.
        message = f"{context.named(path)} must {form['must']}{given}"
        context.error("bad-form", path, message, form["hint"])


def _check_text(
    node: Mapping[str, Any], words: Sequence[str], value: str, context: CheckContext, path: Path
) -> None:
    if "x-open-enum" in words:
        if value in node.get("x-feature-flag", ()):
            named = context.named(path)
            message = f"'{value}' for {named} requires a feature that not every organization has"
            context.warning("feature-flag", path, message)
        elif value not in node["x-open-enum"]:
            _report_unknown_text(node, value, context, path)
    if "x-url" in words and node["x-url"] and value.strip() and not _URL.match(value):
        given = "" if "@" in value else f", not '{value}'"  # It may contain a password.
        message = f"{context.named(path)} must begin with http:// or https://{given}"
        hint = "write it like https://example.com/path"
        context.error_if_strict("bad-url", path, message, hint)
    if "x-placeholders" in words and not _PLAIN_NAME.fullmatch(value):
        _check_placeholders(node["x-placeholders"], value, context, path)


def _report_unknown_text(
    node: Mapping[str, Any], value: str, context: CheckContext, path: Path
) -> None:
    """Report an unknown value. A misspelt one is an error, others may be new."""
    named, known, fix = context.named(path), node["x-open-enum"], spelling(node, value)
    message = f"unknown value '{value}' for {named}"
    if fix is not None:
        message = f"invalid value '{value}' for {named}"
        context.error_if_strict("misspelt-value", path, message, fix)
    elif close := near_miss(value, known):
        hint = joined(f"did you mean '{close}'?", to_send_anyway("unknown-value"))
        context.error_if_strict("unknown-value", path, message, hint)
    else:
        accept = "if the service has it, set `ignore_warnings: [unknown-value]` in reconciler.yaml"
        hint = joined(choice(value, known, "known"), accept)
        context.warning("unknown-value", path, f"{message}; the service decides", hint)


def _check_placeholders(
    known: Sequence[str], value: str, context: CheckContext, path: Path
) -> None:
    """Report the braces that the service does not fill in, which makes every run fail."""
    from string import Formatter

    code, named = "unknown-placeholder", context.named(path)
    if (variable := re.search(_VARIABLE, value)) is not None:
        message = f"{variable[0]} in {named} is not replaced: it becomes a part of every name"
        hint = "use ${env:NAME}, and set NAME in the pipeline"
        context.warning(code, path, message, hint)
    try:
        # The service formats the text as Python does (service.md, 1.3).
        names = {name: None for _, name, _, _ in Formatter().parse(value) if name is not None}
    except ValueError:
        hint = "write {{ and }} for literal braces, and {year} for a placeholder"
        context.warning(code, path, f"unbalanced brace in {named}: runs fail", hint)
        return
    for name in names:
        if name not in known:
            message = f"unknown placeholder {{{name}}} in {named}: runs fail"
            hint = choice(f"{{{name}}}", [f"{{{other}}}" for other in known], "placeholders")
            context.warning(code, path, message, hint)


Error: TypeAlias = tuple[Path, Path]
"""An error: the path to the keyword in the schema, and the path to the value."""
Validator: TypeAlias = Callable[[JSON], Sequence[Error]]
"""Return the errors of a value by a compiled schema."""


def validator_of(node: Mapping[str, Any]) -> Validator:
    """Return what yields the errors of a value, by jsonschema-rs, or by jsonschema without it."""
    # Imported here, since it takes 45 ms and some commands need no validator. jsonschema is pure
    # Python, and takes 1.7 s where the other one takes 0.03 s.
    try:
        from jsonschema_rs import Draft202012Validator as Compiled

        path_to_value = "instance_path"
    except ModuleNotFoundError:
        from jsonschema import Draft202012Validator as Compiled  # type: ignore[import-untyped,no-redef]

        path_to_value = "path"
    compiled: Any = Compiled(dict(node))

    def errors(value: JSON) -> Sequence[Error]:
        violations = () if compiled.is_valid(value) else compiled.iter_errors(value)
        # For jsonschema, the path of an error in `then` includes `if`, which is not its parent.
        return [
            (
                tuple(part for part in error.schema_path if part != "if"),
                tuple(getattr(error, path_to_value)),
            )
            for error in violations
        ]

    return errors


def shown(value: JSON) -> str:
    """Return a value for a message, without its content if that is long or secret."""
    if isinstance(value, Input):
        return f"{shown(str(value))} from {value.reference}"
    if isinstance(value, UnknownText):
        return "text from an environment variable"
    if isinstance(value, str):
        return "text" if len(value) > _LONGEST else f"'{value}'"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    words: dict[type, str] = {dict: "a mapping", list: "a list"}
    return words.get(type(value), str(value))


def word(value: JSON) -> str:
    """Return an allowed value as it is written."""
    return value if isinstance(value, str) else shown(value)


def shortened(text: str) -> str:
    """Return a name for a message, cut if it is too long."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def type_words(types: Sequence[str]) -> str:
    """Return the types that a field accepts, in words."""
    *words, last = (_TYPES[type_name][0] for type_name in types)
    return f"{', '.join(words)} or {last}" if words else last


def type_hint(value: JSON, wanted: Sequence[str], node: Mapping[str, Any], written: JSON) -> str:
    """Return a hint for a value of the wrong type.

    `node` is the schema of its field, `written` the value in the file, with its references.
    """
    if isinstance(value, str) and holds_reference(value):
        return NOT_FILLED
    if node.get("x-secret"):
        keeps = ", or remove the line: the service keeps its value, and cannot clear it"
        return f"write a reference such as ${{secret:env:NAME}}{keeps * (value is None)}"
    for keyword, words in (("enum", "allowed"), ("x-open-enum", "known")):
        if keyword in node:
            return f"{words}: {', '.join(map(word, node[keyword]))}"
    return _hint_by_type(value, wanted, node, written)


def _hint_by_type(
    value: JSON, wanted: Sequence[str], node: Mapping[str, Any], written: JSON
) -> str:
    if value is None:
        return "add a value (quote one that begins with #), or remove the line"
    if isinstance(value, Input):
        return f"set it to {'true or false' if 'boolean' in wanted else 'a plain number'}"
    if isinstance(value, str) and isinstance(written, str) and holds_reference(written):
        is_whole = [str(reference) for reference in references_in(written)] == [written]
        variable = "correct the variable: a value in quotes is text"
        return variable if is_whole else "use one reference to a variable as the whole value"
    if "string" in wanted and not isinstance(value, (list, dict)):
        return _hint_to_quote(value, node)
    if "string" in wanted and isinstance(value, dict) and list(value.values()) == [None]:
        return f"quote a value that begins with {{: '{{{next(iter(value))}}}'"
    return next(hint for name, (_, hint) in _TYPES.items() if name in wanted)


def _hint_to_quote(value: JSON, node: Mapping[str, Any]) -> str:
    if node.get("format") == "date-time":
        return "use ISO 8601, such as 2026-01-31T00:00:00Z"
    if "pattern" in node:
        return "write a whole number, or a percentage such as 20%"
    if "id" in node.get("properties", {}) and not isinstance(value, bool):
        return f"quote a key: '{value}'; for an undeclared project write {{id: {value}}}"
    # A decimal such as 1.10 has lost its last digit on the way here.
    return "quote it" if isinstance(value, float) else f"quote it: '{word(value)}'"


def range_words(keyword: str, value: JSON, node: Mapping[str, Any]) -> str:
    """Return what a value of the right type must be, by the keyword that it violates."""
    limit, text = node[keyword], shown(value)
    names = ", ".join(node.get("properties", {}))
    words = {
        "minimum": f"be at least {limit}, not {text}",
        "maximum": f"be at most {limit}, not {text}",
        "minLength": "not be empty" if limit == 1 else f"have at least {limit} characters",
        "maxLength": f"have at most {limit} characters",
        "pattern": f"be a whole number or a percentage such as 20%, not {text}",
        "minProperties": f"have one of {names}",
        "maxProperties": f"have only one of {names}",
    }
    return words.get(keyword, f"satisfy `{keyword}: {limit}`")


def converted(name: str, value: JSON) -> JSON:
    """Return a value with every input as what the schema of that name wants.

    An input that is not a number or a boolean stays, so that a check can report it.
    """
    return _converted(value, schema(name) or {})


def _converted(value: Any, node: Mapping[str, Any]) -> JSON:
    if value.__class__ is Input:
        return _typed(value, node)
    if not isinstance(value, (dict, list)):
        return value
    items = value.items() if isinstance(value, dict) else enumerate(value)
    changed: Any = None
    for key, item in items:
        if item.__class__ is str:
            continue
        new = _converted(item, member_schema(node, value, key) or {})
        if new is not item:
            changed = value.copy() if changed is None else changed
            changed[key] = new
    return value if changed is None else changed


def converts_to(types: Sequence[str]) -> bool:
    """Return whether a schema of these types converts inputs: not if it takes text."""
    return "string" not in types and not _CONVERTED.isdisjoint(types)


def _typed(value: Input, node: Mapping[str, Any]) -> JSON:
    types = types_of(node)
    if not converts_to(types):
        return str(value)
    if "boolean" in types and value.casefold() in TRUE_OR_FALSE:
        return TRUE_OR_FALSE[value.casefold()]
    if ("integer" in types or "number" in types) and _INTEGER.fullmatch(value):
        return int(value)
    if "number" in types and _NUMBER.fullmatch(value) and isfinite(float(value)):
        return float(value)
    return value


def spelling(node: Mapping[str, Any], value: str) -> str | None:
    """Return the hint for a value that no service accepts, None for one that may be new.

    `node` is a schema with an open enumeration.
    """
    plain = _plain(value)
    if "null" in node.get("type", ()) and plain in _NULLS:
        return "write null, without quotes"
    right = {_plain(known): known for known in node["x-open-enum"]}.get(plain)
    right = right or node.get("x-misnamed", {}).get(plain)
    return f"write '{right}'" if right is not None else None


def _plain(value: str) -> str:
    """Return a value without case, spaces and punctuation."""
    return _PUNCTUATION.sub("", value).casefold()


def holds_secrets(node: Mapping[str, Any]) -> bool:
    """Return whether a schema allows secrets."""
    return bool(node.get(SECRET) or node.get(_HOLDS_SECRETS))


def parts(node: Mapping[str, Any], value: JSON, words: frozenset[str]) -> Sequence[Part]:
    """Return a value, the mappings and lists in it, its secrets, and what has some annotations.

    Without parts that the schema does not allow, and without the bodies of variants.

    A part that no schema describes has a schema that only says whether it may hold secrets.
    """
    walked: list[Part] = [((), node, value, _members(node, words).itself[0])]
    for path, holder, inside, _ in walked:  # It grows meanwhile.
        if inside.__class__ not in _HOLDERS:
            continue
        known = _members(holder, words)
        rules, other = (known.rules, known.other) if inside.__class__ is dict else ({}, known.items)
        for name, member in inside.items() if inside.__class__ is dict else enumerate(inside):
            own, ordinary, below = rules.get(name, other)
            is_marked = own and not (member.__class__ is str and member in ordinary)
            if (is_marked or member.__class__ in _LOOKED_INTO) and below is not None:
                walked.append(((*path, name), below, member, own))
    return walked


_Rule: TypeAlias = tuple[Sequence[str], Collection[str], Mapping[str, Any] | None]
"""The words of a schema, the texts that need no check in spite of them, and the schema."""


class _Members(NamedTuple):
    """What a schema says about itself, about members by name, other ones, and all `items`.

    The schema itself is kept, so that no other one gets its id.
    """

    itself: _Rule
    rules: Mapping[str, _Rule]
    other: _Rule
    items: _Rule


_KNOWN: dict[tuple[int, frozenset[str]], _Members] = {}


def _members(node: Mapping[str, Any], words: frozenset[str]) -> _Members:
    """Return what a schema says about members. It is found out once: values are many."""
    known = _KNOWN.get((id(node), words))
    if known is None:
        other: Mapping[str, Any] = _MAY_BE_SECRET if holds_secrets(node) else {}
        schemas = dict(node.get("properties", {}))
        if "x-variants" in node:
            schemas[node["x-variants"]["body"]] = None
        is_closed = node.get("additionalProperties") is False
        known = _KNOWN[id(node), words] = _Members(
            _rule(node, words),
            {name: _rule(below, words) for name, below in schemas.items()},
            ((), (), None if is_closed else other),
            _rule(node.get("items") or other, words),
        )
    return known


def _rule(node: Mapping[str, Any] | None, words: frozenset[str]) -> _Rule:
    own = tuple(filter(words.__contains__, node or ()))
    if node is None or own != ("x-open-enum",):
        return own, (), node
    return own, frozenset(node["x-open-enum"]).difference(node.get("x-feature-flag", ())), node


class Body(NamedTuple):
    """The body of a variant: its path, the name of its schema, the variant, and the value.

    The name is None without a tag, and may be that of no schema.
    """

    path: Path
    schema: str | None
    tag: JSON
    value: JSON


def body_of(node: Mapping[str, Any], value: JSON, path: Path) -> Body | None:
    """Return the body of the variant in a value, None without one."""
    variants = node.get("x-variants")
    if variants is None or not isinstance(value, dict) or variants["body"] not in value:
        return None
    tag = value.get(variants["tag"])
    name = f"{variants['folder']}/{tag}" if tag.__class__ is str else None
    return Body((*path, variants["body"]), name, tag, value[variants["body"]])


def annotated(name: str, words: frozenset[str], value: JSON) -> Carriers:
    """Return the parts of a value whose schema has one of some annotations."""
    carriers: dict[str, list[tuple[Path, Mapping[str, Any]]]] = {}
    for path, node, inside, own in parts(schema(name) or {}, value, words):
        for word in own:
            carriers.setdefault(word, []).append((path, node))
        body = body_of(node, inside, path)
        if body is None:
            continue
        if body.schema in schema_names():
            for word, places in annotated(str(body.schema), words, body.value).items():
                below = [((*body.path, *deeper), part) for deeper, part in places]
                carriers.setdefault(word, []).extend(below)
        elif SECRET in words:
            carriers.setdefault(SECRET, []).extend(secrets_by_name(body))
    return carriers


def secrets_by_name(body: Body) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the fields that look secret, below a type that no schema describes."""
    for path, leaf in leaves(body.value, body.path):
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        if leaf.__class__ is not bool and looks_secret(name):
            yield path, {SECRET: True}
