"""Fill in references such as `${var:x}`, by the providers. `${secret:…}` stays a reference.

The client looks up a secret when a request needs it: validation and plans need no secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from reconciler.errors import DiagnosticCollector, LoadingStopped, Mark
from reconciler.model.json_tree import map_leaves
from reconciler.model.reference import Reference, escaped_text, parts_of
from reconciler.model.suggestion import nearest
from reconciler.model.trust import Trusted
from reconciler.model.values import JSON, Path, SecretRef, SecretSource, SecretValue
from reconciler.providers import FillContext, plain_names, plain_usage, providers, secret_usage
from reconciler.providers.env import NAME as ENV_NAME
from reconciler.workspace.expansion import MAX_TEXT, TOO_DEEP, TOO_MANY, Expansion
from reconciler.workspace.sources import Source, leaves_workspace
from reconciler.workspace.yaml.document import Places, Unknown, UnknownText, is_misread

_FAILED = Unknown()
"""The value of a reference that cannot be resolved. The error is reported already."""


@dataclass(slots=True)
class References:
    """What references resolve to in one environment.

    `places` are those of variables: an error in a variable is reported there, once. `assume_env`
    gives unset environment variables an unknown value, so that checks do not depend on the machine.
    `literals` collects literal secrets; None where the policy forbids them. `declared` are the
    lists of the loaded files, `trusted` those that decide. `key_variables` are the environment
    variables with API keys. The files are those of a commit if `of_commit`.
    """

    variables: Mapping[str, JSON]
    environ: Mapping[str, str]
    source: Source
    problems: DiagnosticCollector
    places: Places
    allow_exec: bool = False
    assume_env: bool = False
    literals: dict[str, SecretValue] | None = None
    declared: Trusted = field(default_factory=Trusted)
    trusted: Trusted = field(default_factory=Trusted)
    key_variables: frozenset[str] = frozenset()
    for_api_key: bool = False
    of_commit: bool = False
    expansion: Expansion = field(default_factory=Expansion)
    _expanding: list[str] = field(default_factory=list)
    _cached: dict[str, JSON] = field(default_factory=dict)

    def resolved(self, value: JSON, place: Callable[[Path], Mark], path: Path = ()) -> JSON:
        """Return the value with every reference filled in, `Unknown` in place of invalid ones.

        Parts without references are shared with the given value, not copied.
        """
        if isinstance(value, (dict, list)):
            return self._inside(value, place, path)
        if isinstance(value, str) and "${" in value:
            return self._text(value, lambda: place(path))
        return value

    def for_key(self) -> References:
        """Return these references for the API key, which may come from other places."""
        return replace(self, for_api_key=True, _cached={})

    def literal(self, argument: str, value: JSON) -> SecretRef | None:
        """Return a reference to a literal secret, None if the policy forbids those."""
        if self.literals is None:
            return None
        self.literals[argument] = SecretValue(str(value))
        return SecretRef.of("literal", argument)

    def without_literals(self, argument: str, value: SecretRef) -> SecretRef | None:
        """Return a secret with references to its literal parts, None if the policy forbids those.

        Text without letters and digits separates secrets, and is no literal.
        """
        parts: list[str | SecretSource] = []
        for number, part in enumerate(value.parts):
            if isinstance(part, SecretSource) or not any(map(str.isalnum, part)):
                parts.append(part)
                continue
            literal = self.literal(f"{argument}[{number}]", part)
            if literal is None:
                return None
            parts += literal.parts
        return SecretRef(tuple(parts))

    def _inside(self, value: Any, place: Callable[[Path], Mark], path: Path) -> JSON:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        changed: Any = None
        for key, item in items:
            if item.__class__ is str and "${" not in item:
                continue
            filled = self.resolved(item, place, (*path, key))
            if filled is not item:
                changed = value.copy() if changed is None else changed
                changed[key] = filled
        return value if changed is None else changed

    def _text(self, text: str, at: Callable[[], Mark]) -> JSON:
        """Return a text with its references filled in, cached if without errors: texts repeat."""
        filled = self._cached.get(text)
        if filled is None:
            before = len(self.problems.diagnostics)
            try:
                filled = self._filled(text, at)
            except RecursionError:
                if self._expanding:
                    raise
                filled = self._too_large(text, TOO_DEEP, at)
            if len(self.problems.diagnostics) == before:
                self._cached[text] = filled
        reason = self.expansion.refused(filled)
        if self.expansion.is_exceeded:
            self.problems.error("too-large-value", TOO_MANY, at=at())
            raise LoadingStopped(TOO_MANY)
        return filled if reason is None else self._too_large(text, reason, at)

    def _too_large(self, text: str, reason: str, at: Callable[[], Mark]) -> JSON:
        """Report a text that expands to too much, once: variables repeat it."""
        self.problems.error("too-large-value", reason, at=at())
        self._cached[text] = _FAILED
        return _FAILED

    def _context(self, at: Callable[[], Mark]) -> FillContext:
        return FillContext(
            environ=self.environ,
            variables=self.variables,
            allow_exec=self.allow_exec,
            assume_env=self.assume_env,
            declared=self.declared,
            trusted=self.trusted,
            key_variables=self.key_variables,
            for_api_key=self.for_api_key,
            of_commit=self.of_commit,
            expanding=self._expanding,
            expand=self._expand,
            read=self.source.read,
            is_outside=leaves_workspace,
            unknown_text=UnknownText,
            report=lambda code, message, hint: self.problems.error(
                code, message, at=at(), hint=hint
            ),
            failed=_FAILED,
        )

    def _expand(self, name: str) -> JSON:
        self._expanding.append(name)
        try:
            return self.resolved(self.variables[name], lambda path: self.places.near((name, *path)))
        finally:
            self._expanding.pop()

    def _filled(self, text: str, at: Callable[[], Mark]) -> JSON:
        parts: list[JSON] = []
        context = self._context(at)
        length = 0
        for part in parts_of(text):
            length += len(parts[-1]) if parts and isinstance(parts[-1], str) else 0
            if length > MAX_TEXT:
                return self._too_large(
                    text, f"references expand to more than {MAX_TEXT:,} characters", at
                )
            if isinstance(part, str):
                parts.append(part)
            elif part.closed:
                parts.append(_value_of(part, context))
            else:
                return _refuse_unclosed(part, context)
        if any(map(is_misread, parts)):
            return _FAILED
        return parts[0] if len(parts) == 1 else _joined(parts, context)


def _value_of(reference: Reference, context: FillContext) -> JSON:
    provider = providers().get(reference.provider)
    if reference.is_secret:
        if provider is None or provider.accepts is None or not reference.argument:
            return context.refuse(
                "unknown-reference",
                f"unknown secret reference {reference}",
                f"allowed: {', '.join(secret_usage())}",
            )
        accepted = provider.accepts(reference.argument, context)
        return SecretRef.of(provider.name, reference.argument) if accepted else _FAILED
    if provider is None or provider.fill is None or not reference.argument:
        suggestion = _suggestion(reference, context)
        suggestion = f"did you mean ${{{suggestion}}}? " if suggestion is not None else ""
        return context.refuse(
            "unknown-reference",
            f"unknown reference {reference}",
            f"{suggestion}allowed: {plain_usage()}, {secret_usage()[0]}; $${{ for a literal ${{",
        )
    return provider.fill(reference.argument, context)


def _suggestion(reference: Reference, context: FillContext) -> str | None:
    """Return the reference that an unknown one is probably intended to be."""
    inside = reference.inside
    variable = inside.removeprefix("vars.")
    if inside in context.variables or variable in context.variables:
        return f"var:{variable}"
    if ENV_NAME.match(inside) and inside.isupper():
        return f"env:{inside}"
    close = nearest(reference.provider, plain_names()) if reference.argument else None
    known = close is not None and close != reference.provider
    return f"{close}:{reference.argument}" if known else None


def _refuse_unclosed(reference: Reference, context: FillContext) -> JSON:
    if reference.inside.startswith("{"):
        hint = "use ${env:NAME}, and set NAME in the workflow; ${{ … }} is not supported"
    elif "${" in reference.inside.partition("}")[0]:
        hint = "references cannot be nested; use a variable for the inner one"
    else:
        hint = "close it with }, or write $${ for a literal ${"
    return context.refuse("unclosed-reference", "unclosed reference", hint)


def _joined(parts: list[JSON], context: FillContext) -> JSON:
    pieces: list[str | SecretSource] = []
    for part in parts:
        if isinstance(part, SecretRef):
            pieces.extend(part.parts)
        elif isinstance(part, (dict, list)) or part is None:
            return context.refuse(
                "not-text",
                "a reference inside text must be text, a number or a boolean",
                "use the reference as the whole value",
            )
        else:
            pieces.append(str(part).lower() if isinstance(part, bool) else str(part))
    if any(isinstance(piece, SecretSource) for piece in pieces):
        return SecretRef(tuple(pieces))
    text = "".join(cast("list[str]", pieces))
    return UnknownText(text) if any(isinstance(part, UnknownText) for part in parts) else text


def escaped(value: JSON) -> JSON:
    """Return plain values as files write them, with `$${` in place of `${`."""
    return map_leaves(value, lambda leaf: escaped_text(leaf) if isinstance(leaf, str) else leaf)
