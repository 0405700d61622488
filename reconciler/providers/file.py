"""`${file:PATH}` and `${secret:file:PATH}`: the content of a file."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath, PurePosixPath

from reconciler.diagnostics import Mark
from reconciler.errors import SecretUnavailable, UnreadableFile
from reconciler.model.values import JSON, FieldOrigin, SecretSource
from reconciler.providers.provider import FillContext, Provider, SecretContext, without_line_end

MOST_BYTES = 2**20
"""The largest file that a reference reads."""
_CONTAINER = "/run/secrets"
"""Where containers mount secrets. Folders below it may be for others: the token of the cluster."""
_OFFERED = re.compile(r"(?:\.\.[^/]+/)?[^/]+")
"""A file in it. In volumes of Kubernetes that is a link to a folder that starts with two dots."""
_TEMPORARY = {"RUNNER_TEMP": "", "CI_PROJECT_DIR": ".tmp", "AGENT_TEMPDIRECTORY": ""}
"""The temporary folder of the CI job, by a variable and what follows its value."""


def _fill(path: str, context: FillContext) -> JSON:
    if context.is_outside(path):
        hint = "move the file into the workspace; for secrets use ${secret:file:PATH}"
        return context.refuse("outside-workspace", f"{path} is outside the workspace", hint)
    if is_hidden(path):
        return context.refuse("hidden-file", *_hidden(path))
    reason = "no such file in the workspace"
    try:
        raw = context.rules.read(path)
        if raw is not None and len(raw) <= MOST_BYTES:
            # Editors and checkouts add a byte order mark, CRLF and a final line break.
            return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
        if raw is not None:
            reason = f"it has more than {MOST_BYTES >> 20} MB"
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    except UnreadableFile as error:
        hint = "use a regular file inside the workspace"
        return context.refuse("unreadable-file", error.message, hint)
    hint = "paths are relative to the folder of reconciler.yaml"
    return context.refuse("unreadable-file", f"cannot read ${{file:{path}}}: {reason}", hint)


def is_hidden(path: str) -> bool:
    """Return whether a part of a path starts with a dot."""
    return any(part.startswith(".") and part not in (".", "..") for part in path.split("/"))


def _hidden(path: str) -> tuple[str, str]:
    """Return the message about a hidden file, and its hint."""
    message = f"{path} is hidden, and hidden files may contain credentials"
    return message, "move the file to a path without parts that start with a dot"


def _accepts(path: str, context: FillContext) -> bool:
    """Return whether a path is allowed as it is written. Links are judged when it is read."""
    rules = context.rules
    if rules.of_commit:
        return True
    roots = _roots((*rules.declared.secret_files, *rules.trusted.secret_files), rules.environ)
    if any(_is_below(PurePosixPath(os.path.normpath(path)), root) for root in roots):
        return True
    is_outside = context.is_outside(path)
    if is_outside:
        message = f"{path} is outside the workspace and the folders of secrets"
        hint = f"add its folder to reconciler.yaml: `secret_files: [{PurePosixPath(path).parent}]`"
        context.report("outside-workspace", message, hint)
    elif is_hidden(path):
        context.report("hidden-file", *_hidden(path))
    return not (is_outside or is_hidden(path))


def _roots(listed: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    """Return the folders outside the workspace whose files may be read as secrets."""
    temporary = [environ[name] + suffix for name, suffix in _TEMPORARY.items() if environ.get(name)]
    return [os.path.normpath(root) for root in (*listed, _CONTAINER, *temporary)]


def _is_below(path: PurePath, folder: str) -> bool:
    """Return whether a file may be read as one of a folder of secrets."""
    if not path.is_relative_to(folder) or folder != _CONTAINER:
        return path.is_relative_to(folder)
    return _OFFERED.fullmatch(path.relative_to(folder).as_posix()) is not None


def _places(folder: Path, roots: Iterable[str]) -> Iterator[Path]:
    """Yield the folders of secrets. Relative ones are in the checkout, where links do not count."""
    for root in roots:
        place = (folder / root).resolve()
        if Path(root).is_absolute() or place == Path(os.path.normpath(folder / root)):
            yield place


def _canonical(path: str) -> str:
    """Return one text for all that mean one file."""
    return os.path.normpath(path).replace(os.sep, "/")


def _look_up(source: SecretSource, context: SecretContext) -> str:
    try:
        return without_line_end(_content(source.argument, context))
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        # Older Pythons raise RuntimeError for links in a circle.
        reason = "links in a circle" if isinstance(error, RuntimeError) else reason
        hint = f"create the file {source.argument}, and make it readable"
        raise SecretUnavailable(f"cannot read secret {source}: {reason}", hint=hint) from None


def _content(written: str, context: SecretContext) -> str:
    """Return the text of a file of secrets. Raises SecretUnavailable, OSError, RuntimeError."""
    folder = Path(context.settings.folder)
    path = (folder / written).resolve()
    roots = _roots(context.settings.trusted.secret_files, context.environ)
    inside = folder.resolve()
    if not any(_is_below(path, str(place)) for place in _places(inside, roots)):
        if not path.is_relative_to(inside):
            message = f"{written} is outside the workspace and the folders of secrets"
            hint = "add its folder to `secret_files:` of reconciler.yaml"
            raise SecretUnavailable(message, hint=hint)
        if is_hidden(path.relative_to(inside).as_posix()):
            message, hint = _hidden(written)
            raise SecretUnavailable(message, hint=hint)
    named = Path(os.path.normpath(inside / written))
    if named.is_relative_to(inside) and named != path:
        # Another name for a secret would hide that it is one that is known.
        raise SecretUnavailable(f"{written} is a link", hint="refer to the file itself")
    about = path.stat()
    if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_BYTES:
        message = f"{written} is not a regular file of at most {MOST_BYTES >> 20} MB"
        raise SecretUnavailable(message, hint="use a file that contains only the secret")
    return path.read_text(encoding="utf-8-sig")


def _origin(path: str, _: Mapping[str, str]) -> FieldOrigin:
    return FieldOrigin("file", Mark(path))


PROVIDER = Provider(
    "file",
    "PATH",
    fill=_fill,
    accepts=_accepts,
    canonical=_canonical,
    look_up=_look_up,
    effortless=True,
    from_outside=True,
    origin=_origin,
    position=3,
)
