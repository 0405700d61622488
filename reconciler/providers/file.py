"""`${file:PATH}` and `${secret:file:PATH}`: the content of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.errors import Mark, SecretUnavailable
from reconciler.model.resolved import FieldOrigin
from reconciler.model.values import JSON, SecretSource
from reconciler.providers.provider import Filling, LookUp, Provider, without_line_end


def _fill(path: str, filling: Filling) -> JSON:
    if filling.is_outside(path):
        return filling.refuse(
            "outside-workspace",
            f"{path} is outside the workspace",
            "move the file into the workspace; for secrets use ${secret:file:PATH}",
        )
    raw = filling.read(path)
    try:
        if raw is not None:
            # What an editor or a checkout adds is not part of the text: the mark, CRLF, the end.
            return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
        reason = "there is no such file in the workspace"
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    return filling.refuse(
        "unreadable-file",
        f"${{file:{path}}} can't be read: {reason}",
        "paths begin at the folder of reconciler.yaml",
    )


def _accepts(path: str, filling: Filling) -> bool:
    del path, filling
    return True


def _look_up(source: SecretSource, place: LookUp) -> str:
    path = Path(place.settings.folder, source.argument)
    try:
        return without_line_end(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SecretUnavailable(
            f"secret {source} can't be read: {reason}",
            hint=f"create the file {source.argument}, readable by the one who applies",
        ) from None


def _origin(path: str, environ: Mapping[str, str]) -> FieldOrigin:
    del environ
    return FieldOrigin("file", Mark(path))


PROVIDER = Provider(
    "file",
    "PATH",
    fill=_fill,
    accepts=_accepts,
    look_up=_look_up,
    origin=_origin,
    position=3,
)
