"""Point diagnostics at the variables behind a value, and report variables without a use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.model.values import Path, path_text
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Document, Layer, Places

_USE = re.compile(r"\$\{var:([^}]+)\}")


def variable_places(workspace: Workspace, environment: str) -> Places:
    """Return the places of variables: those of the environment above those of the workspace."""
    paths: tuple[Path, ...] = (("environments", environment, "vars"), ("vars",))
    return Places(tuple(Layer(workspace.document, path, path_text(path)) for path in paths))


def point_at_variables(
    problems: DiagnosticCollector,
    since: int,
    documents: Mapping[str, Document],
    variables: Places,
) -> None:
    """Add the places of variables to the diagnostics after the first `since` ones.

    `variables` are the places of variables in the environment that was checked.
    """
    for number, diagnostic in enumerate(problems.diagnostics[since:], since):
        places = tuple(_behind(diagnostic, documents, variables))
        if places:
            related = tuple(dict.fromkeys((*diagnostic.related, *places)))
            problems.diagnostics[number] = replace(diagnostic, related=related)


def _behind(
    diagnostic: Diagnostic, documents: Mapping[str, Document], variables: Places
) -> Iterator[tuple[Mark, str]]:
    at = diagnostic.at
    if at is None or at.file not in documents:
        return
    marked = documents[at.file].line(at.line)[at.column - 1 : at.column - 1 + at.length]
    for name in _USE.findall(marked):
        layer = variables.layer_of((name,))
        if layer is not None:
            place = layer.document.mark((*layer.path, name))
            if place != at:
                yield place, f"variable {name}"


def report_unused(
    workspace: Workspace, documents: Iterable[Document], problems: DiagnosticCollector
) -> None:
    """Report the variables that no file and no environment refers to, at their definitions."""
    defined: dict[str, list[Path]] = {}
    sections = [("environments", name, "vars") for name in workspace.environments]
    for section in (("vars",), *sections):
        for name in workspace.section(*section):
            defined.setdefault(name, []).append((*section, name))
    unused = dict(defined)
    for document in documents:
        if not unused:
            return
        for name in _USE.findall(document.text):
            unused.pop(name, None)
    for name, (first, *others) in unused.items():
        problems.warning(
            "unused-variable",
            f"variable '{name}' is not used",
            at=workspace.document.key_mark(first),
            related=tuple(
                (workspace.document.key_mark(path), f"also set here: {name}") for path in others
            ),
        )
