"""Report what has no effect in a workspace, and what contradicts.

Comes after `resources` for one environment. Needs no network, and no more than `checks` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.errors import DiagnosticCollector
from reconciler.model.kind import Kind
from reconciler.model.resource import Resource
from reconciler.model.schema_files import schema
from reconciler.model.suggestion import choice
from reconciler.model.values import Path, path_text
from reconciler.workspace.checks.relations import ResolvedWorkspace, check_relations
from reconciler.workspace.declarations import Declaration
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Unknown

_OF_THE_RESOURCE = ("environments", "overrides")
_OF_ONE = ("id", "name")


def check_consistency(here: ResolvedWorkspace, problems: DiagnosticCollector) -> None:
    """Tell what has no effect, what contradicts, and what only goes together with other fields."""
    _check_default_environment(here.workspace, problems)
    _check_defaults(here.workspace, here.kinds, problems)
    _check_denied(here.workspace, here.kinds, problems)
    _check_scopes(here.workspace, here.kinds, problems)
    for declaration in here.declared.values():
        _check_listed(declaration, problems)
        _check_overrides(declaration, problems)
    for resource in here.desired.resources.values():
        _check_ignored(resource, here, problems)
    check_relations(here, problems)


def _check_default_environment(workspace: Workspace, problems: DiagnosticCollector) -> None:
    name, names = workspace.value.get("default"), workspace.environments
    if isinstance(name, str) and not isinstance(name, Unknown) and names and name not in names:
        problems.error(
            "unknown-environment",
            f"unknown environment '{name}' in `default`",
            at=workspace.mark(("default",)),
            hint=choice(name, names, "there are"),
        )


def _check_denied(
    workspace: Workspace, kinds: Mapping[str, Kind], problems: DiagnosticCollector
) -> None:
    """Ids of `policy.deny` that no rule has: they would refuse nothing."""
    known = tuple(consequence for kind in kinds.values() for consequence in kind.consequences)
    places: list[Path] = [("policy",)]
    places += [("environments", name, "policy") for name in workspace.environments]
    for place in places:
        denied = workspace.section(*map(str, place)).get("deny")
        for position, rule_id in enumerate(denied if isinstance(denied, list) else ()):
            if (
                isinstance(rule_id, str)
                and not isinstance(rule_id, Unknown)
                and rule_id not in known
            ):
                problems.error(
                    "not-allowed",
                    f"unknown consequence '{rule_id}' in {path_text((*place, 'deny'))}",
                    at=workspace.mark((*place, "deny", position)),
                    hint=choice(rule_id, known),
                )


def _check_defaults(
    workspace: Workspace, kinds: Mapping[str, Kind], problems: DiagnosticCollector
) -> None:
    for name, fields in workspace.section("defaults").items():
        path: Path = ("defaults", name)
        if name not in kinds:
            problems.error(
                "unknown-field",
                f"`defaults` has '{name}', which is no kind of resource",
                at=workspace.document.key_mark(path),
                hint=choice(name, kinds),
            )
        elif isinstance(fields, dict):
            _check_default_fields(workspace, kinds[name], fields, problems)


def _check_default_fields(
    workspace: Workspace, kind: Kind, fields: Mapping[str, object], problems: DiagnosticCollector
) -> None:
    known = (schema(kind.name) or {}).get("properties", {})
    # A mistake in a default is reported by the resource that takes it.
    reported = {(diagnostic.code, diagnostic.at) for diagnostic in problems.diagnostics}
    for field in fields:
        at = workspace.document.key_mark(("defaults", kind.name, field))
        if field in (*_OF_THE_RESOURCE, *_OF_ONE):
            problems.error(
                "not-a-default",
                f"'{field}' of `defaults.{kind.name}` can't be shared by all resources of a kind",
                at=at,
            )
        elif field not in known and ("unknown-field", at) not in reported:
            problems.error(
                "unknown-field",
                f"unknown field '{field}' in `defaults.{kind.name}`",
                at=at,
                hint=choice(field, known),
            )


def _check_scopes(
    workspace: Workspace, kinds: Mapping[str, Kind], problems: DiagnosticCollector
) -> None:
    """Scopes of `prune`: a kind, or the address of a resource that others are in."""
    paths: list[tuple[str, ...]] = [("policy", "prune")]
    paths += [
        ("environments", environment, "policy", "prune") for environment in workspace.environments
    ]
    for path in paths:
        for scope in workspace.section(*path):
            kind, _, key = scope.partition(".")
            if kind not in kinds or (not key and "." in scope):
                problems.error(
                    "unknown-field",
                    f"{path_text(path)} has the scope '{scope}', which is no kind of resource",
                    at=workspace.document.key_mark((*path, scope)),
                    hint=choice(scope, kinds),
                )


def _check_listed(declaration: Declaration, problems: DiagnosticCollector) -> None:
    if declaration.body.get("environments") == []:
        problems.warning(
            "no-effect",
            f"{declaration.address} is in no environment: the list is empty",
            at=declaration.document.mark((*declaration.path, "environments")),
            hint="name one, or remove the field to have it in all",
        )


def _check_overrides(declaration: Declaration, problems: DiagnosticCollector) -> None:
    overrides, listed = (declaration.body.get(name) for name in ("overrides", "environments"))
    for environment, fields in overrides.items() if isinstance(overrides, dict) else ():
        path = (*declaration.path, "overrides", environment)
        if isinstance(listed, list) and environment not in listed:
            problems.warning(
                "no-effect",
                f"{declaration.address} is not in environment {environment}: this override has "
                "no effect",
                at=declaration.document.key_mark(path),
                hint="add the environment to its list, or remove the override",
            )
        for field in _OF_THE_RESOURCE:
            if isinstance(fields, dict) and field in fields:
                problems.error(
                    "not-an-override",
                    f"'{field}' of {declaration.address} can't differ by environment",
                    at=declaration.document.key_mark((*path, field)),
                    hint=f"write `{field}` in the resource itself",
                )


def _check_ignored(
    resource: Resource, here: ResolvedWorkspace, problems: DiagnosticCollector
) -> None:
    """Paths of `ignore_changes` that begin with no field: nothing would be left alone."""
    for position, path in enumerate(resource.lifecycle.ignore_changes):
        known = (schema(resource.address.kind) or {}).get("properties", {})
        first = path.partition(".")[0]
        at = here.places[resource.address].near(("lifecycle", "ignore_changes", position))
        if not isinstance(path, Unknown) and first not in known and not first.isdigit():
            problems.error(
                "unknown-field",
                f"{resource.address} has no field '{first}' whose changes could be ignored",
                at=at,
                hint=choice(first, known),
            )
