"""Fill in references such as `${var:x}`, by the providers. `${secret:…}` stays a reference.

The client looks up a secret when a request needs it: validation and plans need no secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import LoadingStopped
from reconciler.files.validation import converted
from reconciler.files.yaml_document import (
    Input,
    Places,
    Unknown,
    UnknownInput,
    UnknownText,
    is_misread,
)
from reconciler.model.schemas import may_hold_credential
from reconciler.model.settings import API_KEY, Readable
from reconciler.model.text import joined, nearest
from reconciler.model.values import (
    JSON,
    PLAIN,
    SECRET,
    UNSET,
    JSONObject,
    Path,
    Reference,
    SecretRef,
    SecretSource,
    SecretValue,
    escaped_text,
    map_leaves,
    mapping_of,
    references_in,
    text_parts,
    with_default,
)
from reconciler.paths import (
    MAX_DEPTH,
    MAX_EXPANDED,
    MAX_REFERENCE,
    MAX_TOTAL_EXPANDED,
    leaves_workspace,
)
from reconciler.providers import plain_names, plain_usage, providers, secret_usage
from reconciler.providers.env import NAME as ENV_NAME
from reconciler.providers.provider import Accepts, Fill, FillContext, FillRules
from reconciler.providers.var import PROVIDER as VARIABLES

_CHARACTERS = 100
"""Characters of a text that count as one value."""
MAX_TEXT = MAX_EXPANDED * _CHARACTERS
TOO_MANY = f"references expand to more than {MAX_TOTAL_EXPANDED:,} values in total"
TOO_DEEP = f"variables refer to each other more than {MAX_DEPTH} levels deep"
_FAILED = Unknown()
"""The value of a reference that cannot be resolved. The error is reported already."""
_UNSET_HINT = (
    f"write {UNSET} for a field that `defaults` or the resource set, to leave it unmanaged"
)
_SEPARATOR = re.compile(r"\s*[:.]\s*")
_Mark: TypeAlias = Callable[[str | None], Mark]
"""Return the place of a text, or of a reference in it."""


class Expansion(Struct):
    """What the references of an environment expand to, counted where it is used.

    Lists and mappings are shared, not copied: they are small in memory and huge for all that walks
    through them. Their sizes are remembered, so counting does not walk through them either.
    """

    total: int = 0
    may_hold: bool = False
    """Whether a value may be an address with a credential."""
    _sizes: dict[int, tuple[JSON, int, int]] = field(default_factory=dict)

    def count(self, size: int) -> bool:
        """Count values. Return whether all references together expand to too many."""
        self.total += min(MAX_EXPANDED, size)
        return self.total > MAX_TOTAL_EXPANDED

    def measured(self, value: JSON) -> tuple[int, int]:
        """Return the number of values and the levels of a value."""
        if isinstance(value, str):
            return 1 + len(value) // _CHARACTERS, 0
        if not isinstance(value, (dict, list)):
            return 1, 0
        known = self._sizes.get(id(value))
        if known is None:
            items = value.values() if isinstance(value, dict) else value
            below = [self.measured(item) for item in items]
            size = 1 + sum(size for size, _ in below)
            depth = 1 + max((depth for _, depth in below), default=0)
            # The value is kept too: another one could have its id otherwise.
            known = self._sizes[id(value)] = (value, size, depth)
        return known[1:]


class Place(Protocol):
    """Return the place of a value, or of a reference in its text."""

    def __call__(self, path: Path, part: str | None = None, /) -> Mark: ...  # noqa: D102


class References(FillRules, kw_only=True):
    """What references resolve to in one environment.

    `places` are those of variables: an error in a variable is reported there, once. `literals`
    collects literal secrets; None where the policy forbids them. `has_inputs` is set by the first
    input. `_cached` are the values of texts with references, and their sizes.
    """

    problems: DiagnosticCollector
    places: Places
    literals: dict[str, SecretValue] | None = None
    has_inputs: bool = False
    expansion: Expansion = field(default_factory=Expansion)
    _cached: dict[str, tuple[JSON, int]] = field(default_factory=dict)

    def resolved(self, value: JSON, place: Place, path: Path = ()) -> JSON:
        """Return the value with every reference filled in, `Unknown` in place of invalid ones.

        Parts without references are shared with the given value, not copied.
        """
        filled = self.with_inputs(value, place, path)
        if not self.has_inputs:
            return filled
        return map_leaves(filled, lambda leaf: str(leaf) if leaf.__class__ is Input else leaf)

    def with_inputs(self, value: JSON, place: Place, path: Path = ()) -> JSON:
        """Return the resolved value, with inputs whose type depends on the schema."""
        if isinstance(value, (dict, list)):
            return self._inside(value, place, path)
        if isinstance(value, str) and "${" in value:
            return self._text(value, place, path)
        return value

    def typed(self, kind: str, fields: JSONObject, place: Place) -> Any:
        """Return resolved fields of a kind, with inputs as the types that its schema wants."""
        filled = self.with_inputs(fields, place)
        return converted(kind, filled) if self.has_inputs else filled

    def for_key(self) -> References:
        """Return these references for the API key, which may come from other places."""
        return replace(self, for_api_key=True, _cached={})

    def quiet(self, text: str) -> JSON:
        """Return a text with its references filled in. What is wrong is reported elsewhere."""
        own = replace(self, problems=DiagnosticCollector(), _cached={})
        return own.resolved(text, lambda path, part=None: Mark(""))  # noqa: ARG005

    def literal(self, argument: str, value: JSON) -> SecretRef | None:
        """Return a reference to a literal secret, None if the policy forbids those."""
        if self.literals is None:
            return None
        self.literals[argument] = SecretValue(str(value))
        return SecretRef.of("literal", argument)

    def _inside(self, value: Any, place: Place, path: Path) -> JSON:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        changed: Any = None
        for key, item in items:
            if item.__class__ is str:
                if "${" not in item:
                    continue
            elif item.__class__ in PLAIN:
                continue
            is_unset = item == UNSET and isinstance(value, dict) and not self.expanding
            inside = (*path, key)
            filled = None if is_unset else self.with_inputs(item, place, inside)
            if filled is not item:
                changed = value.copy() if changed is None else changed
                changed[key] = filled
            if is_unset:
                message = f"no lower layer sets '{key}': the service keeps its value"
                hint = "remove the line after the next apply"
                self.problems.note("no-effect", message, at=place((*path, key)), hint=hint)
                del changed[key]
        return value if changed is None else changed

    def _text(self, text: str, place: Place, path: Path) -> JSON:
        """Return a text with its references filled in, cached if without errors: texts repeat."""
        filled, size = self._cached.get(text) or self._measured(text, place, path)
        if self.expansion.count(size):
            self.problems.error("too-large-value", TOO_MANY, at=place(path))
            raise LoadingStopped(TOO_MANY)
        return filled

    def _measured(self, text: str, place: Place, path: Path) -> tuple[JSON, int]:
        """Return a text with its references filled in, and its size."""
        before = len(self.problems.diagnostics)
        try:
            filled = self._filled(text, lambda part: place(path, part))
        except RecursionError:
            if self.expanding:
                raise
            filled = self._too_large(text, TOO_DEEP, place(path))
        size, depth = self.expansion.measured(filled)
        if size > MAX_EXPANDED:
            reason = f"reference expands to more than {MAX_EXPANDED:,} values"
            filled = self._too_large(text, reason, place(path))
        elif depth > MAX_DEPTH:
            filled = self._too_large(text, TOO_DEEP, place(path))
        self.expansion.may_hold = self.expansion.may_hold or may_hold_credential(str(filled))
        if len(self.problems.diagnostics) == before:
            self._cached[text] = filled, size
        return filled, size

    def _too_large(self, text: str, reason: str, at: Mark) -> JSON:
        """Report a text that expands to too much, once: variables repeat it."""
        self.problems.error("too-large-value", reason, at=at)
        self._cached[text] = _FAILED, 1
        return _FAILED

    def _context(self, at: _Mark, part: str | None) -> FillContext:
        return FillContext(
            rules=self,
            expand=self._expand,
            is_outside=leaves_workspace,
            unknown_text=UnknownText,
            report=lambda code, message, hint: self.problems.error(
                code, message, at=at(part), hint=hint
            ),
            failed=_FAILED,
        )

    def _expand(self, name: str) -> JSON:
        self.expanding.append(name)
        try:
            return self.with_inputs(
                self.variables[name],
                lambda path, part=None: self.places.near((name, *path), part),
            )
        finally:
            self.expanding.pop()

    def _filled(self, text: str, at: _Mark) -> JSON:
        parts: list[JSON] = []
        contexts: list[FillContext | None] = []
        length = 0
        for part in text_parts(text):
            length += len(parts[-1]) if parts and isinstance(parts[-1], str) else 0
            if length > MAX_TEXT:
                reason = f"references expand to more than {MAX_TEXT:,} characters"
                return self._too_large(text, reason, at(None))
            if isinstance(part, str):
                parts.append(part)
                contexts.append(None)
                continue
            written = part.start
            context = self._context(at, None if written == text else written)
            if not part.closed:
                return _refuse_unclosed(part, context)
            value = _value_of(part, context)
            parts.append(self._input(value, part) if written == text else value)
            contexts.append(context)
        if any(map(is_misread, parts)):
            return _FAILED
        return parts[0] if len(parts) == 1 else _joined(parts, contexts)

    def _input(self, value: JSON, reference: Reference) -> JSON:
        """Return the value of a whole text, marked as an input if it comes from outside."""
        provider = providers().get(reference.provider)
        if provider is None or not provider.from_outside or reference.is_secret:
            return value
        self.has_inputs = True
        if isinstance(value, UnknownText):
            return UnknownInput(value)
        name, _ = with_default(reference.inside)
        return Input.of(value, f"${{{name}}}") if value.__class__ is str else value


def _value_of(reference: Reference, context: FillContext) -> JSON:
    provider = providers().get(reference.provider)
    kind, usage = "reference", f"{plain_usage()}, {secret_usage()[0]}; $${{ for a literal ${{"
    if reference.is_secret:
        kind, usage = "secret reference", ", ".join(secret_usage())
    use: Accepts | Fill | None = None
    if provider is not None:
        use = provider.accepts if reference.is_secret else provider.fill
    if len(reference.without_default("")) > MAX_REFERENCE:
        message = f"a reference has more than {MAX_REFERENCE:,} characters"
        return context.refuse("bad-reference", message, "use a shorter name or path")
    if str(reference) == UNSET:
        return context.refuse("misplaced-unset", f"{UNSET} is not allowed here", _UNSET_HINT)
    if provider is None or use is None or not reference.argument:
        close = None if reference.is_secret else _suggestion(reference, context)
        hint = joined(f"did you mean {close}?" if close else None, f"allowed: {usage}")
        return context.refuse("unknown-reference", f"unknown {kind} {reference}", hint)
    value = use(reference.argument, context)
    if not reference.is_secret:
        return value
    argument = provider.canonical(reference.argument)
    return SecretRef.of(provider.name, argument) if value else _FAILED


def _suggestion(reference: Reference, context: FillContext) -> str | None:
    """Return the reference that an unknown one is probably intended to be."""
    # The separator is often a dot or has spaces around it: ${var.bucket}, ${ var: bucket }.
    word, _, rest = (part.strip() for part in _SEPARATOR.sub(":", reference.inside).partition(":"))
    if not rest:
        if f"${{{word.lower()}}}" == UNSET:
            return UNSET
        if word in context.rules.variables:
            return f"${{{VARIABLES.name}:{word}}}"
        is_variable = ENV_NAME.match(word) and word.isupper()
        return f"${{env:{word}}}, or for a secret ${{secret:env:{word}}}" if is_variable else None
    close = nearest(word, plain_names())
    if SECRET in (word, close):
        rest = _SEPARATOR.sub(":", rest)
    suggestion = f"${{{close}:{rest}}}"
    return suggestion if close is not None and suggestion != str(reference) else None


def _refuse_unclosed(reference: Reference, context: FillContext) -> JSON:
    before, brace, _ = reference.inside.partition("{")
    if brace and before and "\n" not in before and "${" not in reference.inside.partition("}")[0]:
        hint = "use ${var:NAME}, and set the value in `vars:`"
        return context.refuse("bad-reference", "a reference must not contain {", hint)
    hint = "close it with }, or write $${ for a literal ${"
    if brace and not before:
        hint = "use ${env:NAME}, and set NAME in the workflow; ${{ … }} is not supported"
    elif "${" in reference.inside.partition("}")[0]:
        hint = "references cannot be nested; use a variable for the inner one"
    return context.refuse("unclosed-reference", "unclosed reference", hint)


def _joined(parts: Sequence[JSON], contexts: Sequence[FillContext | None]) -> JSON:
    pieces: list[str | SecretSource] = []
    for part, context in zip(parts, contexts, strict=True):
        if isinstance(part, SecretRef):
            pieces.extend(part.parts)
            continue
        if context is not None and not isinstance(part, (str, int)):
            message = "a reference inside text must be text, a number or a boolean"
            hint = "use the reference as the whole value"
            if isinstance(part, float):
                # 1.10 is read as 1.1, and 0.00001 as 1e-05.
                message = f"a number with a decimal point inside text, read as {part}"
                hint = "quote the number where it is defined, so that it stays as it is written"
            return context.refuse("not-text", message, hint)
        pieces.append(str(part).lower() if isinstance(part, bool) else str(part))
    if any(isinstance(piece, SecretSource) for piece in pieces):
        return SecretRef(tuple(pieces))
    text = "".join(cast("list[str]", pieces))
    return UnknownText(text) if any(isinstance(part, UnknownText) for part in parts) else text


def escaped(value: JSON) -> JSON:
    """Return plain values as files write them, with `$${` in place of `${`."""
    return map_leaves(value, lambda leaf: escaped_text(leaf) if isinstance(leaf, str) else leaf)


def readable_of(workspace: Mapping[str, Any], *, allow_exec: bool) -> Readable:
    """Return what references may read by a workspace file."""
    return Readable(
        env=frozenset(_texts(workspace.get("env"))),
        secrets=frozenset(_texts(workspace.get("secrets"))),
        secret_files=tuple(_texts(workspace.get("secret_files"))),
        allow_exec=allow_exec,
    )


def key_variables(workspace: Mapping[str, Any]) -> frozenset[str]:
    """Return the environment variables with API keys and headers of all environments."""
    entries = [mapping_of(entry) for entry in mapping_of(workspace.get("environments")).values()]
    clients = (mapping_of(entry.get("client")) for entry in (workspace, *entries))
    headers = (value for item in clients for value in mapping_of(item.get("headers")).values())
    values = (*(entry.get("api_key") for entry in entries), *headers)
    texts = (value for value in values if isinstance(value, str))
    references = (reference for text in texts for reference in references_in(text))
    names = (
        reference.argument.partition(":-")[0]
        for reference in references
        if reference.provider == "env"
    )
    return frozenset({API_KEY, *names})


def _texts(value: JSON) -> list[str]:
    """Return the texts of a list. Other values are reported by the schema."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
