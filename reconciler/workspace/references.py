"""Fill in `${var:x}`, `${env:X}`, `${file:P}`; `${secret:…}` stays a reference.

A secret is looked up by the client when a request needs it, so that checking and reviewing need
none. What may follow `${` is the matter of `reconciler.providers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from reconciler.errors import DiagnosticCollector, Mark
from reconciler.model.json_tree import map_leaves
from reconciler.model.reference import Reference, escaped_text, parts_of
from reconciler.model.suggestion import nearest
from reconciler.model.values import JSON, Path, SecretRef, SecretSource
from reconciler.providers import Filling, plain_names, plain_usage, providers, secret_usage
from reconciler.providers.env import NAME as ENV_NAME
from reconciler.workspace.sources import Source, leaves_workspace
from reconciler.workspace.yaml.document import Places, Unknown, UnknownText

_FAILED = Unknown()
"""Stands for a reference that can't be resolved. The error is reported already."""


@dataclass(slots=True)
class References:
    """What references can mean in one environment, and where errors go.

    `places` are those of the variables: an error inside a variable is reported there, and once.
    `assume_env` fills environment variables that are not set with a placeholder: then nothing
    depends on where the check runs.
    """

    variables: Mapping[str, JSON]
    environ: Mapping[str, str]
    source: Source
    problems: DiagnosticCollector
    places: Places
    allow_exec: bool = False
    assume_env: bool = False
    _expanding: list[str] = field(default_factory=list)
    _known: dict[str, JSON] = field(default_factory=dict)

    def resolved(self, value: JSON, place: Callable[[Path], Mark], path: Path = ()) -> JSON:
        """Return the value with every reference filled in; `Unknown` where one can't be.

        Parts without references are not copied: they are shared with what was given.
        """
        if isinstance(value, (dict, list)):
            return self._inside(value, place, path)
        if isinstance(value, str) and "${" in value:
            return self._text(value, lambda: place(path))
        return value

    def _inside(self, value: Any, place: Callable[[Path], Mark], path: Path) -> JSON:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        changed: Any = None
        for key, item in items:
            kind = item.__class__
            if kind is str:
                if "${" not in item:
                    continue
                filled = self._known.get(item)
            elif kind is dict or kind is list:
                filled = None
            else:
                continue
            if filled is None:
                filled = self.resolved(item, place, (*path, key))
            if filled is not item:
                changed = value.copy() if changed is None else changed
                changed[key] = filled
        return value if changed is None else changed

    def _text(self, text: str, at: Callable[[], Mark]) -> JSON:
        """Fill in a text. Results without errors are cached, since the same texts repeat."""
        before = len(self.problems.diagnostics)
        filled = self._filled(text, at)
        if len(self.problems.diagnostics) == before:
            self._known[text] = filled
        return filled

    def _filling(self, at: Callable[[], Mark]) -> Filling:
        return Filling(
            environ=self.environ,
            variables=self.variables,
            allow_exec=self.allow_exec,
            assume_env=self.assume_env,
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
        use = self._filling(at)
        for part in parts_of(text):
            if isinstance(part, str):
                parts.append(part)
            elif part.closed:
                parts.append(_value_of(part, use))
            else:
                return _refuse_unclosed(part, use)
        if any(isinstance(part, Unknown) and not isinstance(part, UnknownText) for part in parts):
            return _FAILED
        return parts[0] if len(parts) == 1 else _joined(parts, use)


def _value_of(reference: Reference, use: Filling) -> JSON:
    provider = providers().get(reference.provider)
    if reference.is_secret:
        if provider is None or provider.accepts is None or not reference.argument:
            return use.refuse(
                "unknown-reference",
                f"{reference} is not a secret reference",
                f"allowed: {', '.join(secret_usage())}",
            )
        accepted = provider.accepts(reference.argument, use)
        return SecretRef.of(provider.name, reference.argument) if accepted else _FAILED
    if provider is None or provider.fill is None or not reference.argument:
        suggestion = _suggestion(reference, use)
        suggestion = f"did you mean ${{{suggestion}}}? " if suggestion is not None else ""
        return use.refuse(
            "unknown-reference",
            f"{reference} is not a reference",
            f"{suggestion}allowed: {plain_usage()}, {secret_usage()[0]}; $${{ for a literal ${{",
        )
    return provider.fill(reference.argument, use)


def _suggestion(reference: Reference, use: Filling) -> str | None:
    """Return what a reference of an unknown form probably is."""
    inside = reference.inside
    variable = inside.removeprefix("vars.")
    if inside in use.variables or variable in use.variables:
        return f"var:{variable}"
    if ENV_NAME.match(inside) and inside.isupper():
        return f"env:{inside}"
    close = nearest(reference.provider, plain_names()) if reference.argument else None
    known = close is not None and close != reference.provider
    return f"{close}:{reference.argument}" if known else None


def _refuse_unclosed(reference: Reference, use: Filling) -> JSON:
    if reference.inside.startswith("{"):
        hint = "write ${env:NAME} and let the workflow set NAME: ${{ … }} is not filled in here"
    elif "${" in reference.inside.partition("}")[0]:
        hint = "one reference can't be inside another: let a variable hold the inner one"
    else:
        hint = "close it with }, or write $${ for a literal ${"
    return use.refuse("unclosed-reference", "a reference begins here and is not closed", hint)


def _joined(parts: list[JSON], use: Filling) -> JSON:
    pieces: list[str | SecretSource] = []
    for part in parts:
        if isinstance(part, SecretRef):
            pieces.extend(part.parts)
        elif isinstance(part, (dict, list)) or part is None:
            return use.refuse(
                "not-text",
                "a variable that is no text, number or boolean can't be inside text",
                "let the reference be the whole value",
            )
        else:
            pieces.append(str(part).lower() if isinstance(part, bool) else str(part))
    if any(isinstance(piece, SecretSource) for piece in pieces):
        return SecretRef(tuple(pieces))
    text = "".join(cast("list[str]", pieces))
    return UnknownText(text) if any(isinstance(part, UnknownText) for part in parts) else text


def escaped(value: JSON) -> JSON:
    """Return plain values as files write them: `${` is `$${`, so that it is no reference."""
    return map_leaves(value, lambda leaf: escaped_text(leaf) if isinstance(leaf, str) else leaf)
