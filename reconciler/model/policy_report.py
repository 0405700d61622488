"""What the rules of a policy have to say about saved plans."""

from __future__ import annotations

from msgspec import Struct

from reconciler.diagnostics import Diagnostic


class PolicyReport(Struct, frozen=True):
    """The violations (errors), warnings and unmet expectations of saved plans.

    `unused` are the ids of rules that no plan breaks.
    """

    plans: int
    rules: int
    diagnostics: tuple[Diagnostic, ...]
    unused: tuple[str, ...] = ()
