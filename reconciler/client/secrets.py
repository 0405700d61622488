"""Resolves secret references at the moment of sending, and masks what is known wherever it shows.

A reference that leads nowhere, or to nothing, is refused before any request: an empty or a
placeholder secret would be stored by the server (service-facts, trap 2).
"""

from __future__ import annotations

import base64
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from reconciler.errors import SecretUnavailable
from reconciler.model.connection import SecretSettings
from reconciler.model.values import JSON, SecretRef, SecretSource, SecretValue
from reconciler.model.wording import printable

MASK = "***"
EXEC_SECONDS = 10.0
SHORTEST_MASKED = 4
"""Shorter values would mask half of the output and tell what they are by that."""


class SecretResolver:
    """Finds secrets and remembers them for the run, so that each is looked up once."""

    def __init__(self, settings: SecretSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self._known: dict[SecretSource, SecretValue] = {}

    def resolve(self, ref: SecretRef) -> SecretValue:
        """The value. Raises SecretUnavailable, which names the reference and the way out."""
        parts = [
            part if isinstance(part, str) else self._value(part).reveal() for part in ref.parts
        ]
        return SecretValue("".join(parts))

    def fill(self, body: JSON) -> JSON:
        """The body with every reference replaced by its value, for the one request."""
        if isinstance(body, SecretRef):
            return self.resolve(body).reveal()
        if isinstance(body, Mapping):
            return {name: self.fill(value) for name, value in body.items()}
        if isinstance(body, (list, tuple)):
            return [self.fill(item) for item in body]
        return body

    def check(self, needed: Iterable[tuple[str, SecretRef]]) -> None:
        """Resolve all of them, each with a word on where it is needed.

        Raises SecretUnavailable that tells every one that is missing.
        """
        missing: dict[str, list[str]] = {}
        hints: dict[str, None] = {}
        for where, ref in needed:
            try:
                self.resolve(ref)
            except SecretUnavailable as error:
                missing.setdefault(error.message, []).append(where)
                hints[error.hint or ""] = None
        if missing:
            told = [f"{why}\n    needed by {', '.join(where)}" for why, where in missing.items()]
            raise SecretUnavailable("\n".join(told), hint="\n".join(each for each in hints if each))

    def mask(self, text: str) -> str:
        """The text with every known secret masked, plain, in base64 and URL-encoded."""
        for value in self._known.values():
            for form in _forms(value.reveal()):
                text = text.replace(form, MASK)
        return text

    def _value(self, source: SecretSource) -> SecretValue:
        if source not in self._known:
            found = _LOOKUPS[source.source](self, source)
            if not found.strip():
                raise SecretUnavailable(
                    f"secret {source} is empty", hint=f"give {source} a value before you apply"
                )
            self._known[source] = SecretValue(found)
        return self._known[source]

    def _from_env(self, source: SecretSource) -> str:
        value = self._environ.get(source.argument)
        if value is None:
            raise SecretUnavailable(
                f"secret {source} is not set",
                hint=f"set the environment variable {source.argument}",
            )
        return value

    def _from_file(self, source: SecretSource) -> str:
        path = Path(self._settings.folder, source.argument)
        try:
            # One newline at the end is the editor's, not the secret's.
            return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SecretUnavailable(
                f"secret {source} can't be read: {why}",
                hint=f"create the file {source.argument}, readable by the one who applies",
            ) from None

    def _from_exec(self, source: SecretSource) -> str:
        if not self._settings.allow_exec:
            raise SecretUnavailable(
                f"secret {source} may not be run",
                hint="set `policy: {allow_exec_secrets: true}` in reconciler.yaml",
            )
        try:
            ended = subprocess.run(  # noqa: S603 - the workspace allows it, and no shell is used
                shlex.split(source.argument),
                cwd=self._settings.folder,
                env=dict(self._environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=EXEC_SECONDS,
                check=True,
                text=True,
            )
        except (OSError, ValueError) as error:
            why = f"it can't be started ({type(error).__name__})"
        except subprocess.TimeoutExpired:
            why = f"it did not end within {EXEC_SECONDS:g} seconds"
        except subprocess.CalledProcessError as error:
            why = f"it ended with exit code {error.returncode}"
        else:
            return ended.stdout.removesuffix("\n").removesuffix("\r")
        # What the command printed may hold the secret: none of it is told.
        raise SecretUnavailable(
            f"secret {source}: {why}", hint=f"run it by hand to see why: {source.argument}"
        )

    def _from_files(self, source: SecretSource) -> str:
        literal = self._settings.literals.get(source.argument)
        if literal is None:
            raise SecretUnavailable(
                f"the literal secret of {source.argument} is no longer in the files",
                hint="make the plan again from these files",
            )
        return literal.reveal()


_LOOKUPS = {
    "env": SecretResolver._from_env,  # noqa: SLF001 - a table of its own methods
    "file": SecretResolver._from_file,  # noqa: SLF001
    "exec": SecretResolver._from_exec,  # noqa: SLF001
    "literal": SecretResolver._from_files,  # noqa: SLF001
}


def _forms(value: str) -> tuple[str, ...]:
    """The ways in which a secret may turn up, escaped as in our messages too, longest first."""
    if len(value) < SHORTEST_MASKED:
        return ()
    raw = value.encode()
    forms = {
        value,
        quote(value, safe=""),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(raw).decode().rstrip("="),
        value.replace("\n", "\\n"),
        printable(value),
        printable(value).replace("'", "\\'"),
    }
    return tuple(sorted(forms, key=lambda each: (-len(each), each)))
