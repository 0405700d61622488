"""`${file:PATH}` and `${secret:file:PATH}`: the content of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.errors import Mark, SecretUnavailable
from reconciler.model.resolved import FieldOrigin
from reconciler.model.values import JSON, SecretSource
from reconciler.providers.provider import FillContext, Provider, SecretContext, without_line_end


def _fill(path: str, context: FillContext) -> JSON:
    if context.is_outside(path):
        return context.refuse(
            "outside-workspace",
            f"{path} is outside the workspace",
            "move the file into the workspace; for secrets use ${secret:file:PATH}",
        )
    raw = context.read(path)
    try:
        if raw is not None:
            # Editors and checkouts add a byte order mark, CRLF and a final line break.
            return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
        reason = "no such file in the workspace"
    except UnicodeDecodeError:
        reason = "not UTF-8 text"
    return context.refuse(
        "unreadable-file",
        f"cannot read ${{file:{path}}}: {reason}",
        "paths are relative to the folder of reconciler.yaml",
    )


def _accepts(*_: object) -> bool:
    return True


def _look_up(source: SecretSource, context: SecretContext) -> str:
    path = Path(context.settings.folder, source.argument)
    try:
        return without_line_end(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SecretUnavailable(
            f"cannot read secret {source}: {reason}",
            hint=f"create the file {source.argument}, and make it readable",
        ) from None


def _origin(path: str, _: Mapping[str, str]) -> FieldOrigin:
    return FieldOrigin("file", Mark(path))


PROVIDER = Provider(
    "file", "PATH", fill=_fill, accepts=_accepts, look_up=_look_up, origin=_origin, position=3
)
