"""JUnit XML, which most CI systems show as test results."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.diagnostics import Diagnostic, Level
from reconciler.model.plan import Plan
from reconciler.render.diagnostics import message_of
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.page import text as escaped
from reconciler.render.plan.violations import violations_of


def diagnostics_as_junit(
    diagnostics: Sequence[Diagnostic], options: RenderOptions = DEFAULTS
) -> str:
    """Return a test suite with a case for every diagnostic, or one that passes."""
    return _suite(f"reconciler {options.command}", options.passed, diagnostics, options)


def plan_as_junit(plan: Plan, options: RenderOptions = DEFAULTS) -> str:
    """Return a test suite with a case for every policy violation, or one that passes."""
    name = f"reconciler plan {plan.source.environment}"
    return _suite(name, "The policy allows the plan", violations_of(plan), options)


def _suite(
    name: str, passed: str, diagnostics: Sequence[Diagnostic], options: RenderOptions
) -> str:
    cases = [_case(name, diagnostic, options) for diagnostic in diagnostics]
    cases = cases or [f'    <testcase classname="{_text(name)}" name="{passed}"/>\n']
    failures = sum(diagnostic.level is Level.ERROR for diagnostic in diagnostics)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0" skipped="0"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites name="{_text(name)}" {counts}>\n  <testsuite name="{_text(name)}" {counts}>\n'
        f"{''.join(cases)}  </testsuite>\n</testsuites>\n"
    )


def _case(suite: str, diagnostic: Diagnostic, options: RenderOptions) -> str:
    """Return a case that fails for an error, and passes with a message otherwise."""
    at, message = diagnostic.at, message_of(diagnostic)
    path = options.repository_path(at.file) if at is not None else ""
    place = f' file="{_text(path)}" line="{at.line}"' if at is not None else ""
    where = f"{path}:{at.line}:{at.column}: " if at is not None else ""
    hint = f"\nhint: {_text(diagnostic.hint)}" if diagnostic.hint else ""
    full = f"{_text(f'{where}{message}')}{hint}"
    if diagnostic.level is Level.ERROR:
        kind, short = _text(diagnostic.code), _text(message)
        result = f'<failure type="{kind}" message="{short}">{full}</failure>'
    else:
        result = f"<system-out>{full}</system-out>"
    named = _text(f"{where}{diagnostic.code}")
    return (
        f'    <testcase classname="{_text(suite)}" name="{named}"{place}>\n'
        f"      {result}\n    </testcase>\n"
    )


def _text(text: str) -> str:
    """Return text that is no markup, and no command of a CI runner."""
    shown = escaped(text)
    return f"&#58;{shown[1:]}" if shown.startswith(":") else shown
