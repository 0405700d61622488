"""`${var:x}`, `${env:X}`, `${file:P}` are filled in; `${secret:…}` stays a reference.

A secret is looked up by the client when a request needs it, so that checking and reviewing need
none. `$${` is a literal `${`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from reconciler.config.document import Places, Unknown, UnknownText
from reconciler.config.sources import Source, leaves_workspace
from reconciler.config.wording import choice, nearest
from reconciler.errors import Mark, Problems
from reconciler.model.values import JSON, Path, SecretRef, SecretSource, SecretSourceName

_KINDS = ("var", "env", "file", "secret")
_SECRET_SOURCES = ("env", "file", "exec")
_REFERENCE = re.compile(r"\$\$\{|\$\{([^{}]*)(\}?)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*$")


_FAILED = Unknown()
"""What a reference that leads nowhere stands for. The problem has been told."""


def _is_text(value: str) -> bool:
    """False for what a system makes of bytes that are not UTF-8: no JSON can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class References:
    """What references can mean in one environment, and where complaints go.

    `places` are those of the variables: what is wrong inside one is told there, and once.
    `assume_env` fills environment variables that are not set with a placeholder: then nothing
    depends on where the check runs.
    """

    variables: Mapping[str, JSON]
    environ: Mapping[str, str]
    source: Source
    problems: Problems
    places: Places
    allow_exec: bool = False
    assume_env: bool = False
    _resolving: list[str] = field(default_factory=list)
    _known: dict[str, JSON] = field(default_factory=dict)

    def resolved(self, value: JSON, place: Callable[[Path], Mark], path: Path = ()) -> JSON:
        """The value with every reference filled in; `Unknown` where one leads nowhere.

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
        """Remembers what the text came to, if there was nothing to tell: the same ones repeat."""
        told = len(self.problems.found)
        filled = self._filled(text, at)
        if len(self.problems.found) == told:
            self._known[text] = filled
        return filled

    def _filled(self, text: str, at: Callable[[], Mark]) -> JSON:
        parts: list[JSON] = []
        end = 0
        for match in _REFERENCE.finditer(text):
            if match.start() > end:
                parts.append(text[end : match.start()])
            end = match.end()
            if match[0] == "$${":
                parts.append("${")
            elif not match[2]:
                self._tell_unclosed(text[match.start() :], at)
                return _FAILED
            else:
                parts.append(self._reference(match[1], at))
        if end < len(text):
            parts.append(text[end:])
        if any(isinstance(each, Unknown) and not isinstance(each, UnknownText) for each in parts):
            return _FAILED
        if len(parts) == 1:
            return parts[0]
        return self._joined(parts, at)

    def _tell_unclosed(self, text: str, at: Callable[[], Mark]) -> None:
        if text.startswith("${{"):
            hint = "write ${env:NAME} and let the workflow set NAME: ${{ … }} is not filled in here"
        elif "${" in text[2:].partition("}")[0]:
            hint = "one reference can't stand inside another: let a variable hold the inner one"
        else:
            hint = "close it with }, or write $${ for a literal ${"
        self.problems.error(
            "unclosed-reference", "a reference begins here and is not closed", at=at(), hint=hint
        )

    def _joined(self, parts: list[JSON], at: Callable[[], Mark]) -> JSON:
        pieces: list[str | SecretSource] = []
        for part in parts:
            if isinstance(part, SecretRef):
                pieces.extend(part.parts)
            elif isinstance(part, (dict, list)) or part is None:
                self.problems.error(
                    "not-text",
                    "a variable that is no text, number or boolean can't stand inside text",
                    at=at(),
                    hint="let the reference be the whole value",
                )
                return _FAILED
            else:
                pieces.append(str(part).lower() if isinstance(part, bool) else str(part))
        if any(isinstance(piece, SecretSource) for piece in pieces):
            return SecretRef(tuple(pieces))
        text = "".join(cast("list[str]", pieces))
        return UnknownText(text) if any(isinstance(each, UnknownText) for each in parts) else text

    def _reference(self, inside: str, at: Callable[[], Mark]) -> JSON:
        kind, colon, argument = inside.partition(":")
        lookups = {
            "var": self._variable,
            "env": self._environment,
            "file": self._file,
            "secret": self._secret,
        }
        lookup = lookups.get(kind)
        if lookup is None or not colon or not argument:
            meant = self._meant(kind, argument, inside)
            meant = f"did you mean ${{{meant}}}? " if meant is not None else ""
            self.problems.error(
                "unknown-reference",
                f"${{{inside}}} is not a reference",
                at=at(),
                hint=f"{meant}allowed: ${{var:NAME}}, ${{env:NAME}}, ${{file:PATH}}, "
                "${secret:env:NAME}; $${ for a literal ${",
            )
            return _FAILED
        return lookup(argument, at)

    def _meant(self, kind: str, argument: str, inside: str) -> str | None:
        """What a reference that is none was probably meant to be."""
        if inside in self.variables or inside.removeprefix("vars.") in self.variables:
            return f"var:{inside.removeprefix('vars.')}"
        if _ENV_NAME.match(inside) and inside.isupper():
            return f"env:{inside}"
        close = nearest(kind, _KINDS) if argument else None
        return f"{close}:{argument}" if close is not None and close != kind else None

    def _variable(self, name: str, at: Callable[[], Mark]) -> JSON:
        if name in self._resolving:
            circle = " → ".join([*self._resolving, name])
            self.problems.error(
                "variable-cycle",
                f"the variable {name} needs itself: {circle}",
                at=at(),
                hint="give one of them a value of its own",
            )
            return _FAILED
        if name not in self.variables:
            if ":-" in name:
                hint = "a variable has no default here: give it a value in `vars:`"
            else:
                hint = choice(name, sorted(self.variables) or ["none"], "variables here")
            self.problems.error(
                "unknown-variable",
                f"there is no variable '{name}'",
                at=at(),
                hint=hint,
            )
            return _FAILED
        self._resolving.append(name)
        try:
            return self.resolved(self.variables[name], lambda path: self.places.near((name, *path)))
        finally:
            self._resolving.pop()

    def _environment(self, argument: str, at: Callable[[], Mark]) -> JSON:
        name, dash, default = argument.partition(":-")
        if not _ENV_NAME.match(name):
            self._bad_name(name, at)
            return _FAILED
        value = self.environ.get(name)
        if value is not None and (value or not dash):
            return value if _is_text(value) else self._odd_variable(name, at)
        if dash:
            return default
        if self.assume_env:
            return UnknownText(f"({name})")
        self.problems.error(
            "unset-environment-variable",
            f"the environment variable {name} is not set",
            at=at(),
            hint=f"set it, or give a default: ${{env:{name}:-default}}",
        )
        return _FAILED

    def _odd_variable(self, name: str, at: Callable[[], Mark]) -> JSON:
        self.problems.error(
            "not-text",
            f"the value of the environment variable {name} is not UTF-8 text",
            at=at(),
            hint="set it again",
        )
        return _FAILED

    def _bad_name(self, name: str, at: Callable[[], Mark]) -> None:
        self.problems.error(
            "bad-reference",
            f"'{name}' is not the name of an environment variable",
            at=at(),
            hint="names have letters, digits and _ only; a default goes after :- as in "
            "${env:NAME:-default}",
        )

    def _file(self, argument: str, at: Callable[[], Mark]) -> JSON:
        if leaves_workspace(argument):
            self.problems.error(
                "outside-workspace",
                f"{argument} is outside the workspace",
                at=at(),
                hint="move the file into the workspace; for secrets use ${secret:file:PATH}",
            )
            return _FAILED
        raw = self.source.read(argument)
        try:
            if raw is not None:
                # What an editor or a checkout adds is not the text's: the mark, CRLF, the last end.
                return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
            why = "there is no such file in the workspace"
        except UnicodeDecodeError:
            why = "it is not UTF-8 text"
        self.problems.error(
            "unreadable-file",
            f"${{file:{argument}}} can't be read: {why}",
            at=at(),
            hint="paths begin at the folder of reconciler.yaml",
        )
        return _FAILED

    def _secret(self, argument: str, at: Callable[[], Mark]) -> JSON:
        source, _, rest = argument.partition(":")
        if source not in _SECRET_SOURCES or not rest:
            self.problems.error(
                "unknown-reference",
                f"${{secret:{argument}}} is not a secret reference",
                at=at(),
                hint="allowed: ${secret:env:NAME}, ${secret:file:PATH}, ${secret:exec:COMMAND}",
            )
            return _FAILED
        if source == "env" and ":-" in rest:
            # What follows may be a secret: it is not told.
            self.problems.error(
                "bad-reference",
                f"${{secret:env:{rest.partition(':-')[0]}}} has a default, and a secret has none",
                at=at(),
                hint="remove it, and set the variable where it is needed",
            )
            return _FAILED
        if source == "env" and not _ENV_NAME.match(rest):
            self._bad_name(rest, at)
            return _FAILED
        if source == "exec" and not self.allow_exec:
            self.problems.error(
                "exec-not-allowed",
                "this workspace does not allow secrets from commands",
                at=at(),
                hint="set `policy: {allow_exec_secrets: true}` in reconciler.yaml",
            )
            return _FAILED
        return SecretRef.of(cast("SecretSourceName", source), rest)


def references_in(text: str) -> tuple[str, ...]:
    """What stands between `${` and `}` of each reference in a text, in order; `$${` is none."""
    return tuple(match[1] for match in _REFERENCE.finditer(text) if match[2])


def escaped(value: JSON) -> JSON:
    """Plain values as files write them: `${` is `$${`, so that it is no reference."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: escaped(item) for key, item in value.items()}
    if isinstance(value, list):
        return [escaped(item) for item in value]
    return value
