"""A workspace of one project and one export, and what is told about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.files.loading import Loaded, LoadOptions, load, load_all
from reconciler.model.values import Address
from tests.support.cli import write

LAKE = Address("batch_export", "lake")
VERSION = "version: 1\n"
PROJECT = "projects:\n  web: {name: Web}\n"


def lake(**fields: str) -> str:
    """Return a file with an export and its project. The fields replace and add to the usual ones.

    The export begins in line 4, and has `name` in line 6.
    """
    usual = {"project": "web", "name": "Lake", "interval": "hour", "destination": "{type: NoOp}"}
    lines = [f"    {name}: {value}\n" for name, value in {**usual, **fields}.items()]
    return f"{PROJECT}batch_exports:\n  lake:\n{''.join(lines)}"


def s3(more: str = "", prefix: str = "p/") -> str:
    return f"{{type: S3, config: {{bucket_name: b, region: r, prefix: '{prefix}'{more}}}}}"


def told(
    folder: Path, text: str, settings: str = VERSION, environ: Mapping[str, str] | None = None
) -> tuple[Diagnostic, ...]:
    """Return what `validate` tells about a file, over all environments."""
    files = {"reconciler.yaml": settings, "a.yaml": text}
    return load_all(write(folder, files), environ=environ or {})


def loaded(
    folder: Path,
    text: str,
    settings: str = VERSION,
    environ: Mapping[str, str] | None = None,
    environment: str | None = None,
) -> Loaded:
    """Return a workspace with a file, for one environment."""
    write(folder, {"reconciler.yaml": settings, "a.yaml": text})
    return load(folder, environment=environment, environ=environ or {}, options=LoadOptions())


def problems(
    folder: Path, text: str, settings: str = VERSION, environ: Mapping[str, str] | None = None
) -> list[Diagnostic]:
    """Return what is wrong with a file for one environment, without unused variables."""
    try:
        found = loaded(folder, text, settings, environ).diagnostics
    except InvalidConfiguration as invalid:
        found = invalid.diagnostics
    return [each for each in found if each.code != "unused-variable"]


def codes(found: tuple[Diagnostic, ...] | list[Diagnostic]) -> list[str]:
    return [each.code for each in found]
