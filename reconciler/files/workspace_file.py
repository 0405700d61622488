"""Read `reconciler.yaml`: environments, variables, defaults and policy."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cache
from os.path import normpath
from pathlib import Path as FolderPath
from typing import Any

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.errors import BadUsage, UnreadableFile
from reconciler.files.sources import Source, workspace_above
from reconciler.files.validation import NOT_FILLED, CheckContext, check, shortened
from reconciler.files.yaml_document import Document, Unknown
from reconciler.files.yaml_loader import Parse, parse
from reconciler.kinds import all_kinds, behaviour_of, kinds_by_name
from reconciler.model.kind import Action
from reconciler.model.settings import RULE_PREFIX, Policy
from reconciler.model.text import IMPLICIT_ENVIRONMENT, choice, fits_any
from reconciler.model.values import JSON, Path, holds_reference, leaves, mapping_of, value_at
from reconciler.paths import WORKSPACE_FILE

DEFAULTS = "defaults"
"""The key of default fields by kind, in resource files and in the workspace file."""
ANCHORS = "anchors"
"""The key whose value is ignored in both: a place for the YAML anchors of the file."""
_MISNAMED = "reconciler.yml"

MATCH_SCHEMA = "policy/match"
MAX_RULES = 200
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class Workspace(Struct, frozen=True):
    """The workspace file, parsed and checked. `value` is empty if it cannot be used."""

    document: Document
    value: Mapping[str, Any]

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments, in the order of the file."""
        return tuple(self.section("environments"))

    @property
    def policies(self) -> tuple[tuple[str, ...], ...]:
        """The paths of all policies: that of the workspace, then those of the environments."""
        names = self.environments
        return (("policy",), *(("environments", name, "policy") for name in names))

    @property
    def ignored_warnings(self) -> frozenset[str]:
        """The codes of warnings that are not reported."""
        written = self.value.get("ignore_warnings")
        return frozenset(map(str, written)) if isinstance(written, list) else frozenset()

    def section(self, *path: str) -> Mapping[str, Any]:
        """Return the mapping at a path, empty if there is none."""
        section = value_at(self.value, path)
        return section if isinstance(section, dict) else {}

    def mark(self, path: Path, part: str | None = None) -> Mark:
        """Return the place of a value, or of a reference in its text."""
        return self.document.mark(path, part)


def read_workspace(
    source: Source,
    problems: DiagnosticCollector,
    *,
    parse: Parse = parse,
    folder: FolderPath | None = None,
) -> Workspace:
    """Return the workspace of a source. A missing file is reported.

    `folder` is where to look for the one that was probably intended.
    """
    try:
        raw = source.read(WORKSPACE_FILE)
    except UnreadableFile as error:
        problems.error(error.code, error.message, at=Mark(WORKSPACE_FILE))
        return Workspace(Document(WORKSPACE_FILE, unread=True), {})
    if raw is None:
        hint = _where_it_is(source, folder) if folder is not None else None
        problems.error("no-workspace", f"no {WORKSPACE_FILE} in this folder", hint=hint)
        return Workspace(Document(WORKSPACE_FILE), {})
    return checked_workspace(raw, problems, parse)


def checked_workspace(raw: bytes, problems: DiagnosticCollector, parse: Parse = parse) -> Workspace:
    """Return the workspace of a file's content."""
    document = parse(raw, WORKSPACE_FILE, problems)
    if not isinstance(document.value, dict):
        if not document.unread and not isinstance(document.value, Unknown):
            message, hint = f"{WORKSPACE_FILE} must be a mapping", "start it with `version: 1`"
            problems.error("not-a-mapping", message, at=document.mark(()), hint=hint)
        return Workspace(document, {})
    context = CheckContext("the workspace", document.mark, document.key_mark, problems)
    check("workspace", document.value, context)
    workspace = Workspace(document, document.value)
    for path in workspace.policies:
        check_rules(workspace.section(*path, "rules"), context, (*path, "rules"))
    return workspace


def _where_it_is(source: Source, folder: FolderPath) -> str | None:
    with suppress(UnreadableFile):
        if source.read(_MISNAMED) is not None:
            return f"rename {_MISNAMED} to {WORKSPACE_FILE}"
    above = workspace_above(folder)
    return f"use -C {normpath(folder / above)}: it has one" if above is not None else None


def chosen_environment(workspace: Workspace, asked: str | None, environ: Mapping[str, str]) -> str:
    """Return the environment to work on. Raises BadUsage."""
    names = workspace.environments
    default = workspace.value.get("default")
    wanted = asked or environ.get("RECONCILER_ENVIRONMENT") or default
    if not names:
        return str(wanted or IMPLICIT_ENVIRONMENT)
    if wanted is default not in names and (default is not None or len(names) == 1):
        # An unknown default is reported as such: other errors show in any environment.
        return names[0]
    if wanted is None:
        message = f"no environment selected: this workspace has {', '.join(names)}"
        raise BadUsage(message, hint="select one with -e, or set `default:` in reconciler.yaml")
    if wanted not in names:
        hint = choice(wanted, names, "environments")
        if set(wanted) & set("*?["):
            hint = f"this command takes one environment: {', '.join(names)}"
        raise BadUsage(f"unknown environment '{wanted}'", hint=hint)
    return str(wanted)


def variables_of(workspace: Workspace, environment: str) -> Mapping[str, JSON]:
    """Return the variables of the workspace, those of the environment over them."""
    return {**workspace.section("vars"), **workspace.section("environments", environment, "vars")}


def policy_of(workspace: Workspace, environment: str) -> Policy:
    """Return the policy of the workspace, that of the environment over it.

    Keys replace each other. Rules do by id.
    """
    merged: dict[str, JSON] = {}
    rules: dict[str, JSON] = {}
    marks: dict[str, Mark] = {}
    for path in (("policy",), ("environments", environment, "policy")):
        section, own = workspace.section(*path), workspace.section(*path, "rules")
        merged |= section
        rules |= own
        marks |= {name: workspace.mark((*path, name)) for name in section}
        key_mark = workspace.document.key_mark
        marks |= {f"{RULE_PREFIX}{name}": key_mark((*path, "rules", name)) for name in own}
    switches = {kind.name: kind.deletion_switch for kind in all_kinds() if kind.deletion_switch}
    return Policy.read({**merged, "rules": rules}, switches=switches, marks=marks)


def declares(workspace: Workspace, environment: str) -> bool:
    """Return whether a workspace file declares an environment."""
    return bool(workspace.value) and environment in (workspace.environments or (environment,))


@cache
def _known_words() -> Mapping[str, Collection[str]]:
    """Return the words of tests that are the same for all kinds."""
    from reconciler.model.plan import Severity

    return {
        "action": tuple(action.value for action in Action if action is not Action.NO_OP),
        "severity": tuple(severity.value for severity in Severity),
    }


def consequence_ids() -> tuple[str, ...]:
    """Return the ids of all consequences. The behaviours of kinds are imported."""
    return tuple(rule.id for kind in all_kinds() for rule in behaviour_of(kind).rules)


def check_rules(rules: JSON, context: CheckContext, path: Path) -> None:
    """Report the errors in the rules of one policy that its schema cannot express."""
    rules = mapping_of(rules)
    if len(rules) > MAX_RULES:
        context.error("out-of-range", path, f"{len(rules):,} rules: the limit is {MAX_RULES}")
    for name, rule in rules.items():
        place = (*path, str(name))
        if not _ID.fullmatch(str(name)):
            message = f"invalid id of a rule '{shortened(str(name))}'"
            context.error_at_key("bad-key", place, message)
        if isinstance(rule, dict):
            _check_references(rule, context, place)
            match, inside = rule.get("match"), (*place, "match")
            if isinstance(match, dict):
                check(MATCH_SCHEMA, match, context, inside)
                _check_words(match, _known_words(), context, inside)


def check_rule_words(rules: JSON, context: CheckContext, path: Path) -> None:
    """Report unknown kinds and consequences in the rules of one policy.

    The behaviours of kinds are imported if there are rules.
    """
    if not rules:
        return
    known = {"consequence": consequence_ids(), "kind": tuple(kinds_by_name())}
    for name, rule in mapping_of(rules).items():
        match = mapping_of(mapping_of(rule).get("match"))
        _check_words(match, known, context, (*path, str(name), "match"))


def _check_references(rule: JSON, context: CheckContext, path: Path) -> None:
    for place, text in leaves(rule, path):
        if isinstance(text, str) and not isinstance(text, Unknown) and holds_reference(text):
            message = f"reference in {context.named(place)}"
            context.error("not-allowed", place, message, NOT_FILLED)


def _check_words(
    match: Mapping[str, Any],
    known: Mapping[str, Collection[str]],
    context: CheckContext,
    path: Path,
) -> None:
    for name, words in known.items():
        written = match.get(name, ())
        for glob in written if isinstance(written, list) else (written,):
            is_text = isinstance(glob, str) and not isinstance(glob, Unknown)
            text = glob.removeprefix("!") if is_text else ""
            if is_text and not any(fits_any(word, (text,)) for word in words):
                message = f"unknown {name} '{shortened(text)}' in {context.named((*path, name))}"
                context.error("not-allowed", (*path, name), message, choice(text, tuple(words)))
