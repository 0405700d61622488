"""Report contradictions in a workspace, and settings without effect, for one environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.diagnostics import DiagnosticCollector
from reconciler.model.address import Address, choice
from reconciler.model.kind import Kind
from reconciler.model.policy import POSSIBLE_DUPLICATE, UNKNOWN_VALUE
from reconciler.model.resource import Resource
from reconciler.model.schemas import schema
from reconciler.model.values import Path, path_text
from reconciler.workspace.checks.default_values import check_default_values
from reconciler.workspace.checks.relations import ResolvedWorkspace, check_relations
from reconciler.workspace.checks.rules import check_rule_words
from reconciler.workspace.declarations import Declaration
from reconciler.workspace.layers import EnvironmentContext
from reconciler.workspace.schema.validation import CheckContext
from reconciler.workspace.workspace_file import Workspace
from reconciler.workspace.yaml.document import Unknown

_PER_ENVIRONMENT = ("environments", "overrides")
_PER_RESOURCE = (*_PER_ENVIRONMENT, "id", "name")


def check_consistency(resolved: ResolvedWorkspace) -> None:
    """Report errors across the workspace and between its resources."""
    _check_default_environment(resolved.context.workspace, resolved.context.problems)
    _check_defaults(resolved)
    _check_policy(resolved)
    for declaration in resolved.declared.values():
        _check_environments(declaration, resolved.context.problems)
    for resource in resolved.desired.resources.values():
        if resource.lifecycle.ignore_changes:
            _check_ignored(resource, resolved)
    check_relations(resolved)


def _check_default_environment(workspace: Workspace, problems: DiagnosticCollector) -> None:
    name, names = workspace.value.get("default"), workspace.environments
    if isinstance(name, str) and not isinstance(name, Unknown) and names and name not in names:
        problems.error(
            "unknown-environment",
            f"unknown environment '{name}' in `default`",
            at=workspace.mark(("default",)),
            hint=choice(name, names, "environments"),
        )


def _check_defaults(resolved: ResolvedWorkspace) -> None:
    workspace = resolved.context.workspace
    for name, fields in workspace.section("defaults").items():
        if name not in resolved.context.kinds:
            resolved.context.problems.error(
                "unknown-field",
                f"unknown kind '{name}' in `defaults`",
                at=workspace.document.key_mark(("defaults", name)),
                hint=choice(name, resolved.context.kinds),
            )
        elif isinstance(fields, dict):
            _check_default_fields(resolved.context, name, fields)


def _check_default_fields(
    context: EnvironmentContext, kind: str, fields: Mapping[str, object]
) -> None:
    workspace, problems = context.workspace, context.problems
    known = (schema(kind) or {}).get("properties", {})
    # An error in a default is reported by the resources that use it.
    reported = {
        (diagnostic.code, diagnostic.at)
        for diagnostic in problems.diagnostics
        if problems.environment in (*diagnostic.environments, "")
    }
    if context.snapshots is None:  # An old mistake in a default does not prevent a plan.
        check_default_values(context.kinds[kind], context, reported, without=_PER_RESOURCE)
    for field in fields:
        at = workspace.document.key_mark(("defaults", kind, field))
        if field in _PER_RESOURCE:
            message = f"'{field}' is not allowed in `defaults.{kind}`"
            problems.error("not-a-default", message, at=at)
        elif field not in known and ("unknown-field", at) not in reported:
            message = f"unknown field '{field}' in `defaults.{kind}`"
            problems.error("unknown-field", message, at=at, hint=choice(field, known))


def _known_ids(key: str, kinds: Mapping[str, Kind]) -> tuple[str, ...]:
    """Return the ids that a key of the policy may list."""
    if key == "deny":
        return tuple(rule for kind in kinds.values() for rule in kind.consequences)
    return (
        *(known.id for kind in kinds.values() for known in kind.refusals),
        POSSIBLE_DUPLICATE,
        UNKNOWN_VALUE,
    )


def _check_policy(resolved: ResolvedWorkspace) -> None:
    """Report unknown ids in `deny`, `attempt` and `rules`, and unknown scopes of `prune`."""
    workspace, kinds, problems = (
        resolved.context.workspace,
        resolved.context.kinds,
        resolved.context.problems,
    )
    words = {"deny": "consequence", "attempt": "refusal"}
    document = workspace.document
    context = CheckContext("the workspace", document.mark, document.key_mark, problems)
    for path in workspace.policies:
        own = workspace.section(*path, "rules")
        if own:
            known_words = {"consequence": _known_ids("deny", kinds), "kind": tuple(kinds)}
            check_rule_words(own, known_words, context, (*path, "rules"))
        for key, word in words.items():
            listed = workspace.section(*path).get(key)
            known = _known_ids(key, kinds) if listed else ()
            for position, rule in enumerate(listed if isinstance(listed, list) else ()):
                is_text = isinstance(rule, str) and not isinstance(rule, Unknown)
                if is_text and rule not in known:
                    problems.error(
                        "not-allowed",
                        f"unknown {word} '{rule}' in {path_text((*path, key))}",
                        at=workspace.mark((*path, key, position)),
                        hint=choice(rule, known),
                    )
        for scope in workspace.section(*path, "prune"):
            code, scopes = _unknown_scope(scope, resolved)
            if code is not None:
                problems.error(
                    code,
                    f"unknown scope '{scope}' in {path_text((*path, 'prune'))}",
                    at=workspace.document.key_mark((*path, "prune", scope)),
                    hint=choice(scope, scopes),
                )


def _unknown_scope(scope: str, resolved: ResolvedWorkspace) -> tuple[str | None, Sequence[str]]:
    """Return the code of an unknown scope of `prune`, None for a known one, and the known ones."""
    kinds = resolved.context.kinds
    kind, dot, key = scope.partition(".")
    if kind not in kinds or (dot and not key):
        return "unknown-field", tuple(kinds)
    address = Address(kind, key)
    if not dot or address in resolved.declared or resolved.context.undetermined.about(address):
        return None, ()
    return "unknown-scope", [str(known) for known in resolved.declared if known.kind == kind]


def _check_environments(declaration: Declaration, problems: DiagnosticCollector) -> None:
    """Report overrides and lists of environments without effect."""
    body = declaration.body
    overrides, listed = body.get("overrides"), body.get("environments")
    if overrides is None and listed is None:
        return
    address, document = declaration.address, declaration.document
    if listed == []:
        problems.warning(
            "no-effect",
            f"{address} is in no environment: the list is empty",
            at=document.mark((*declaration.path, "environments")),
            hint="add an environment, or remove the field to include all",
        )
    for environment, fields in overrides.items() if isinstance(overrides, dict) else ():
        path: Path = (*declaration.path, "overrides", environment)
        if isinstance(listed, list) and environment not in listed:
            problems.warning(
                "no-effect",
                f"override without effect: {address} is not in environment {environment}",
                at=document.key_mark(path),
                hint=f"add {environment} to its `environments`, or remove the override",
            )
        for field in _PER_ENVIRONMENT:
            if isinstance(fields, dict) and field in fields:
                problems.error(
                    "not-an-override",
                    f"'{field}' is not allowed in an override of {address}",
                    at=document.key_mark((*path, field)),
                    hint=f"write `{field}` in the resource itself",
                )


def _check_ignored(resource: Resource, resolved: ResolvedWorkspace) -> None:
    """Report paths in `ignore_changes` that start with an unknown field."""
    for position, path in enumerate(resource.lifecycle.ignore_changes):
        known = (schema(resource.address.kind) or {}).get("properties", {})
        first = path.partition(".")[0]
        if not isinstance(path, Unknown) and first not in known and not first.isdigit():
            resolved.context.problems.error(
                "unknown-field",
                f"unknown field '{first}' in `ignore_changes` of {resource.address}",
                at=resolved.mark(resource, "lifecycle", "ignore_changes", position),
                hint=choice(first, known),
            )
