"""Report errors inside the rules of `policy.rules`, whose expressions nest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any

from reconciler.model.address import choice, fits_any
from reconciler.model.values import JSON, Path, holds_reference, leaves
from reconciler.workspace.hints import NOT_FILLED, shortened
from reconciler.workspace.schema.validation import CheckContext, check
from reconciler.workspace.yaml.document import Unknown

MATCH_SCHEMA = "policy/match"
MAX_RULES = 200
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@cache
def _known_words() -> Mapping[str, Collection[str]]:
    """Return the words of tests that are the same for all kinds."""
    from reconciler.model.action import Action
    from reconciler.model.change import Severity

    return {
        "action": tuple(action.value for action in Action if action is not Action.NO_OP),
        "severity": tuple(severity.value for severity in Severity),
    }


def check_rules(rules: JSON, context: CheckContext, path: Path) -> None:
    """Report the errors in the rules of one policy that its schema cannot express."""
    if not isinstance(rules, Mapping):
        return
    if len(rules) > MAX_RULES:
        context.error("out-of-range", path, f"{len(rules):,} rules: the limit is {MAX_RULES}")
    for name, rule in rules.items():
        place = (*path, str(name))
        if not _ID.fullmatch(str(name)):
            message = f"invalid id of a rule '{shortened(str(name))}'"
            context.error_at_key("bad-key", place, message)
        if isinstance(rule, dict):
            _check_references(rule, context, place)
            for match, inside in _nested(rule.get("match"), (*place, "match")):
                check(MATCH_SCHEMA, match, context, inside)
                _check_words(match, _known_words(), context, inside)


def check_rule_words(
    rules: JSON, known: Mapping[str, Collection[str]], context: CheckContext, path: Path
) -> None:
    """Report unknown words, such as those of consequences. `known` are the words of each test."""
    for name, rule in rules.items() if isinstance(rules, Mapping) else ():
        written = rule.get("match") if isinstance(rule, Mapping) else None
        for match, inside in _nested(written, (*path, str(name), "match")):
            _check_words(match, known, context, inside)


def _nested(match: JSON, path: Path) -> Iterator[tuple[Mapping[str, Any], Path]]:
    """Yield an expression and those inside, with their paths. Files are at most 60 levels deep."""
    if not isinstance(match, dict):
        return
    yield match, path
    yield from _nested(match.get("not"), (*path, "not"))
    for name in ("all", "any"):
        parts = match.get(name)
        for position, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from _nested(part, (*path, name, position))


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
            if is_text and not any(fits_any(word, (glob,)) for word in words):
                message = f"unknown {name} '{shortened(glob)}' in {context.named((*path, name))}"
                context.error("not-allowed", (*path, name), message, choice(glob, tuple(words)))
