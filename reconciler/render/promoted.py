"""The result of a promotion."""

from __future__ import annotations

from reconciler.model.promoted import Promoted
from reconciler.model.text import listed, printable, several

_MOST_LISTED = 10


def promotion_summary(promoted: Promoted) -> str:
    """Return what was promoted, or that nothing is to promote, and what is left."""
    first, second = printable(promoted.first), printable(promoted.second)
    counts = {
        f"changed in {second}": promoted.edited,
        f"added to {second}": promoted.added,
        f"taken out of {second}": promoted.removed,
    }
    parts = [f"{several(len(items), 'resource')} {verb}" for verb, items in counts.items() if items]
    verb = "Promoted" if promoted.written else "Would promote"
    lines = [f"{verb} {first} to {second}: {', '.join(parts)}"]
    if not promoted.texts:
        lines = [f"Nothing to promote: {second} differs from {first} only as intended"]
    if promoted.left:
        names = listed([item.address for item in promoted.left], _MOST_LISTED)
        lines.append(f"note: only in {second}, and left there: {printable(names)} (see --prune)")
    return "".join(f"{line}\n" for line in lines)
