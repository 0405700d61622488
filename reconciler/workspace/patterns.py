"""The patterns of `resources:`: which files they select, and what one that selects none means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import UnreadableFile
from reconciler.model.address import PathGlob, TooComplex, has_wildcard, nearest
from reconciler.workspace.limits import MAX_FILES, MAX_PATTERNS, MAX_WILDCARD_PATTERNS
from reconciler.workspace.sources import WORKSPACE_FILE, Source, is_passed_over, leaves_workspace
from reconciler.workspace.workspace_file import Workspace

_ALL_YAML = ("**/*.yaml", "**/*.yml")
_EXTENSIONS = (".yaml", ".yml")
_MOST_COMPARED = 1_000
"""Names that are compared to suggest one."""
_MOST_SUGGESTIONS = 20


def resource_globs(workspace: Workspace) -> tuple[str, ...]:
    """Return the patterns of resource files, `./` left out; by default every YAML file."""
    globs = workspace.value.get("resources")
    return tuple(_plain(str(glob)) for glob in globs) if isinstance(globs, list) else _ALL_YAML


def _plain(glob: str) -> str:
    first, *others = glob.split("/")
    parts = [part for part in others if part not in ("", ".")]
    return "/".join(parts if first == "." else [first, *parts])


def files_by_glob(source: Source, globs: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the resource files that each pattern matches. Patterns stay in the workspace.

    Raises TooComplex.
    """
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    return {glob: _matching(names, glob) for glob in globs if not leaves_workspace(glob)}


def _matching(names: Sequence[str], glob: str) -> list[str]:
    """Return the paths that a pattern matches. Upper case in extensions has no meaning."""
    pattern = PathGlob(_plain_extension(glob))
    return [name for name in names if pattern.matches(_plain_extension(name))]


def _plain_extension(name: str) -> str:
    if name.endswith(_EXTENSIONS):
        return name
    stem, dot, extension = name.rpartition(".")
    plain = f"{dot}{extension.lower()}"
    return f"{stem}{plain}" if plain in _EXTENSIONS else name


def selected_files(
    source: Source, workspace: Workspace, problems: DiagnosticCollector
) -> Sequence[str]:
    """Return the names of the resource files, sorted. Report errors in their patterns."""
    globs = resource_globs(workspace)
    at = workspace.mark(("resources",))
    wildcards = sum(map(has_wildcard, globs))
    if len(globs) > MAX_PATTERNS or wildcards > MAX_WILDCARD_PATTERNS:
        problems.error(
            "bad-pattern",
            f"{len(globs):,} patterns, {wildcards:,} with wildcards: the limits are "
            f"{MAX_PATTERNS:,} and {MAX_WILDCARD_PATTERNS}",
            at=at,
        )
        return ()
    try:
        matches = files_by_glob(source, globs)
    except TooComplex as error:
        problems.error("bad-pattern", error.message, at=at)
        return ()
    if isinstance(workspace.value.get("resources"), list):
        _check(matches, source, workspace, problems)
    names = sorted({name for selected in matches.values() for name in selected})
    if len(names) > MAX_FILES:
        message = f"{len(names):,} resource files: the limit is {MAX_FILES:,}"
        problems.error("workspace-too-large", message, at=at)
        return ()
    return names


def _check(
    matches: Mapping[str, Sequence[str]],
    source: Source,
    workspace: Workspace,
    problems: DiagnosticCollector,
) -> None:
    unmatched = 0
    written = workspace.value["resources"]
    for position, glob in enumerate(resource_globs(workspace)):
        at = workspace.mark(("resources", position))
        if leaves_workspace(glob):
            problems.error(
                "outside-workspace",
                f"'{glob}' is outside the workspace",
                at=at,
                hint="keep resource files below the folder of reconciler.yaml",
            )
        elif not matches[glob]:
            unmatched += 1
            hint = _hint(glob, source) if unmatched <= _MOST_SUGGESTIONS else None
            message = f"no file matches '{written[position]}'"
            problems.error("no-files", message, at=at, hint=hint)


def _hint(glob: str, source: Source) -> str | None:
    """Return why a pattern matches no file, or the pattern that was probably intended."""
    if "${" in glob:
        return "references are not filled in here: write the path itself"
    parts = glob.split("/")
    for end, part in enumerate(parts, 1):
        if has_wildcard(part):
            break
        folder = "/".join(parts[:end])
        if part.startswith("."):
            return f"files and folders whose names start with a dot, such as {part}, are not read"
        if end < len(parts) and is_passed_over(part):
            return f"folders with the name {part} are not read"
        if _exists(source, f"{folder}/{WORKSPACE_FILE}"):
            return f"{folder} is another workspace, with its own {WORKSPACE_FILE}: use -C {folder}"
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    for candidate in _candidates(glob, names):
        with suppress(TooComplex):
            if _matching(names, candidate):
                return f"did you mean '{candidate}'?"
    return None


def _exists(source: Source, name: str) -> bool:
    try:
        return source.read(name) is not None
    except UnreadableFile:
        return True


def _candidates(glob: str, names: Sequence[str]) -> Iterator[str]:
    """Yield patterns that are similar to one without a match."""
    folders = sorted({str(folder) for name in names for folder in PurePosixPath(name).parents[:-1]})
    yield glob.replace("\\", "/")
    if glob in folders or not glob:
        yield f"{glob}/**/*.yaml".lstrip("/")
        yield f"{glob}/**/*.yml".lstrip("/")
    for old, new in (_EXTENSIONS, _EXTENSIONS[::-1]):
        if glob.endswith(old):
            yield f"{glob.removesuffix(old)}{new}"
    if not has_wildcard(glob):
        beside = str(PurePosixPath(glob).parent)
        siblings = [name for name in names if str(PurePosixPath(name).parent) == beside]
        yield nearest(glob, (siblings or names)[:_MOST_COMPARED]) or ""
    parts = glob.split("/")
    fixed = next(number for number, part in enumerate([*parts, "*"]) if has_wildcard(part))
    fixed = min(fixed, len(parts) - 1)
    close = nearest("/".join(parts[:fixed]), folders[:_MOST_COMPARED]) if fixed else None
    if close is not None:
        yield "/".join([close, *parts[fixed:]])
    if not has_wildcard(parts[-1]):
        yield f"**/{parts[-1]}"
