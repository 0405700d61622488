"""What differs from a plan that was shown. A hidden line of its comment has it as hashes.

Everybody may write such a line: it adds a sentence to a later plan, and decides nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias

from reconciler.model.kind import Action
from reconciler.model.plan import Plan, Severity, digest_of
from reconciler.model.text import several

_DIGITS = 8
_DANGER = "danger"
_LINE = re.compile(r"<!-- reconciler plan ([0-9a-f]{8})([ .a-z0-9]*) -->")
_ITEM = re.compile(r" ([a-z]+)\.([0-9a-f]{8})\.([0-9a-f]{8})")

_Items: TypeAlias = Mapping[tuple[str, str], str]
"""What changes do, by their action and the hash of their address. A danger is an item, too."""


def hidden_line(plan: Plan, root: str) -> str:
    """Return a line for a comment, without values. `root` is the workspace in its repository."""
    items = "".join(f" {word}.{at}.{digest}" for (word, at), digest in _items(plan).items())
    return f"<!-- reconciler plan {_place(plan, root)}{items} -->"


def differences(plan: Plan, root: str, shown: str) -> str | None:
    """Return how a plan differs from the last one in the text of comments, "" if it does not.

    None if the text has no plan of this environment and workspace.
    """
    lines = [match[2] for match in _LINE.finditer(shown) if match[1] == _place(plan, root)]
    if not lines:
        return None
    then = {(item[1], item[2]): item[3] for item in _ITEM.finditer(lines[-1])}
    now = _items(plan)
    more, fewer = (
        Counter(word for word, _ in new) for new in (now.keys() - then, then.keys() - now)
    )
    parts = [
        f"{count[action.value]:,} {sign} to {action.value}"
        for count, sign in ((more, "more"), (fewer, "fewer"))
        for action in Action
        if count[action.value]
    ]
    other = sum(now[item] != then[item] for item in now.keys() & then)
    parts += [f"{other:,} with other values"] if other else []
    for count, sign in ((more, "new"), (fewer, "former")):
        number = count[_DANGER]
        parts += [several(number, f"{sign} danger")] if number else []
    return ", ".join(parts)


def _items(plan: Plan) -> _Items:
    items = {}
    for change in plan.effective:
        at = change.action.value, _hash(str(change.address))
        items[at] = digest_of(change, plan.source)[:_DIGITS]
        for danger in change.consequences:
            if danger.severity is Severity.DANGER:
                items[_DANGER, _hash(f"{change.id} {danger.rule}")] = "0" * _DIGITS
    return items


def _place(plan: Plan, root: str) -> str:
    source = plan.source
    return _hash(f"{source.environment}\n{source.organization}\n{source.base_url}\n{root}")


def _hash(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
