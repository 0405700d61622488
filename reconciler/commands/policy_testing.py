"""The use case `policy test`: evaluate rules on saved plans, without a network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from reconciler.commands.files import read_file
from reconciler.commands.loading import deciding_tip, raise_errors
from reconciler.commands.options import WorkspaceOptions
from reconciler.commands.runtime import Runtime
from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.kinds import all_kinds
from reconciler.model.decoding import decode
from reconciler.model.plan import Plan
from reconciler.model.policy import (
    RULE_PREFIX,
    PolicyReport,
    PolicyRule,
    rules_of,
)
from reconciler.model.text import listed
from reconciler.planning.rules import RuleBreach, breaches, message_of
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.settings import Deciding
from reconciler.workspace.sources import WORKSPACE_FILE, FolderSource
from reconciler.workspace.workspace_file import (
    check_rule_words,
    check_rules,
    policy_of,
    read_workspace,
)
from reconciler.workspace.yaml.loader import parse

_RULES_SCHEMA = "policy/rules"
_MOST_PLACES = 20


class PolicyTestRequest(Struct, frozen=True):
    """The saved plans to test, and where the rules are: a file of rules, or a workspace."""

    plans: Sequence[Path]
    workspace: WorkspaceOptions
    rules: Path | None = None


class _RuleSet(Struct, frozen=True):
    """Rules with their places by code, and by file the ids of rules that its plan should break."""

    rules: Sequence[PolicyRule]
    marks: Mapping[str, Mark]
    expected: Mapping[str, tuple[frozenset[str], Mark]] = field(default_factory=dict)


def judge_plans(request: PolicyTestRequest, runtime: Runtime) -> PolicyReport:
    """Return what the rules say about saved plans.

    Of a workspace, the rules of the environment of each plan apply, and where it does not decide
    itself, those of the trusted branch too.

    Raises:
        InvalidConfiguration: with the errors in the rules.
        InvalidPlanFile: a file is not a plan.
        GitUnavailable: the trusted branch cannot be read.

    """
    plans = {path: decode(read_file(path), name=str(path)) for path in request.plans}
    problems = DiagnosticCollector(strict=request.workspace.strict)
    rules_for = _rules_for(request, runtime)
    ids: set[str] = set()
    broken_ids: set[str] = set()
    for path, plan in plans.items():
        rule_set = rules_for(plan)
        ids |= {rule.id for rule in rule_set.rules}
        broken = tuple(breaches(rule_set.rules, plan.changes, all_kinds()))
        broken_ids |= {breach.rule.id for breach in broken}
        expected = rule_set.expected.get(path.name)
        if expected is not None:
            _compare(path, broken, *expected, problems)
            continue
        problems.environment = plan.source.environment
        for breach in broken:
            _report(breach, rule_set.marks.get(breach.rule.code), problems)
        problems.environment = ""
    return PolicyReport(len(plans), len(ids), problems.in_order(), tuple(sorted(ids - broken_ids)))


def _rules_for(request: PolicyTestRequest, runtime: Runtime) -> Callable[[Plan], _RuleSet]:
    """Return the rules for a plan: those of a file, or those of its environment."""
    if request.rules is not None:
        rules = _of_file(request.rules)
        return lambda _: rules
    folder, problems = request.workspace.folder, DiagnosticCollector()
    source = FolderSource(folder)
    own = read_workspace(source, problems, folder=folder)
    raise_errors(problems, own.document)
    raw = source.read(WORKSPACE_FILE)
    tip = deciding_tip(request.workspace, runtime.environ, interactive=runtime.interactive)

    def of_environment(plan: Plan) -> _RuleSet:
        environment = plan.source.environment
        trusted = own if tip is None else tip.workspace(own, raw)
        deciding = Deciding(own, trusted, tip, environment)
        policy = policy_of(own, environment).stricter(deciding.policy)
        return _RuleSet(policy.rules, policy.marks)

    return of_environment


def _of_file(path: Path) -> _RuleSet:
    """Return the rules of a file. Raises InvalidConfiguration."""
    problems = DiagnosticCollector()
    document = parse(read_file(path), str(path), problems)
    context = CheckContext("the file", document.mark, document.key_mark, problems)
    value: Any = document.value
    if not problems.failed:
        if isinstance(value, dict):
            check(_RULES_SCHEMA, value, context)
            check_rules(value.get("rules"), context, ("rules",))
            check_rule_words(value.get("rules"), context, ("rules",))
        else:
            context.error("not-a-mapping", (), f"{path} must be a mapping", "start with `rules:`")
    raise_errors(problems, document)
    rules = rules_of(value["rules"])
    marks = {rule.code: document.key_mark(("rules", rule.id)) for rule in rules}
    expected = {
        name: (frozenset(ids), document.mark(("expect", name)))
        for name, ids in value.get("expect", {}).items()
    }
    return _RuleSet(rules, marks, expected)


def _compare(
    path: Path,
    broken: Sequence[RuleBreach],
    expected: Collection[str],
    at: Mark,
    problems: DiagnosticCollector,
) -> None:
    """Report rules that a plan should break and does not, and others that it breaks."""
    actual = {breach.rule.id for breach in broken}
    for name in sorted(set(expected) - actual):
        problems.error(RULE_PREFIX + name, f"{path} does not break rule '{name}'", at=at)
    for name in sorted(actual - set(expected)):
        message = f"{path} breaks rule '{name}', which is not expected"
        problems.error(RULE_PREFIX + name, message, at=at)


def _report(breach: RuleBreach, at: Mark | None, problems: DiagnosticCollector) -> None:
    """Report the changes that break a rule, or the rule if it limits their number."""
    rule = breach.rule
    report = problems.error if rule.denies else problems.warning
    if rule.more_than:
        places = [(change.at, str(change.address)) for change in breach.changes if change.at]
        addresses = listed([change.address for change in breach.changes], _MOST_PLACES)
        report(
            rule.code,
            f"{message_of(breach)} ({addresses})",
            at=at,
            hint=rule.hint,
            related=tuple(places[:_MOST_PLACES]),
        )
        return
    for change in breach.changes:
        related = ((at, f"rule {rule.id}"),) if at is not None and change.at is not None else ()
        message = f"{change.address} ({change.action.value}): {message_of(breach)}"
        report(rule.code, message, at=change.at or at, hint=rule.hint, related=related)
