"""Explanations as text and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from reconciler.model.explanation import Explanation, Mention
from reconciler.model.values import MISSING
from reconciler.render.options import DEFAULTS, RenderOptions
from reconciler.render.style import Colour, Style

_WIDEST_NAME = 44


def explanation_as_text(explanation: Explanation, options: RenderOptions = DEFAULTS) -> str:
    """Return the name, its meaning, its facts, what it can cause, an example and its children."""
    style = options.style
    topic = f"  ({explanation.topic})" if not explanation.takes else ""
    head = f"{style.paint(Colour.BOLD, explanation.path)}{topic}" if explanation.path else ""
    lines = [head] if head else []
    lines += style.wrapped(explanation.text, "  ", "  ")
    facts = list(_facts(explanation))
    if facts:
        width = max(len(name) for name, _ in facts)
        lines.append("")
        for name, text in facts:
            lines += style.wrapped(text, f"  {name:{width}}  ", " " * (width + 4))
    lines += _section("a change can cause", explanation.related, style)
    if explanation.example:
        lines += ["", style.paint(Colour.BOLD, "example")]
        lines += [f"  {line}" for line in explanation.example.splitlines()]
    lines += _section("below it" if explanation.path else "names", explanation.children, style)
    return "\n".join(lines) + "\n"


def explanation_as_json(explanation: Explanation, _: RenderOptions = DEFAULTS) -> str:
    """Return the JSON of an explanation."""
    # The forms take 30 ms to import, which other results do not need.
    from reconciler.model.codec.explanation import explanation_as_json as encoded

    return encoded(explanation)


def _facts(explanation: Explanation) -> Iterator[tuple[str, str]]:
    if explanation.takes:
        must = ", required" if explanation.required else ""
        yield "type", f"{explanation.takes}{must}"
    if explanation.default is not MISSING:
        yield "default", json.dumps(explanation.default, ensure_ascii=False)
    if explanation.values:
        shown = ", ".join(json.dumps(value) for value in explanation.values)
        yield "known values" if explanation.is_open else "values", shown
    if explanation.flagged:
        yield "behind a flag", ", ".join(explanation.flagged)
    if explanation.secret:
        yield "secret", "yes: write a reference such as ${secret:env:NAME}"
    if explanation.dialects:
        yield "servers", ", ".join(explanation.dialects)
    if explanation.fixed:
        yield "not in place", f"servers of {', '.join(explanation.fixed)} need a replacement"


def _section(title: str, mentions: Iterable[Mention], style: Style) -> list[str]:
    mentions = tuple(mentions)
    if not mentions:
        return []
    width = min(_WIDEST_NAME, max(len(mention.name) for mention in mentions))
    lines = ["", style.paint(Colour.BOLD, title)]
    for mention in mentions:
        lines += style.wrapped(
            mention.text or " ", f"  {mention.name:{width}}  ", " " * (width + 4)
        ) or [f"  {mention.name}"]
    return lines
