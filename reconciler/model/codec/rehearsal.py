"""The public JSON of a rehearsal."""

from __future__ import annotations

from typing import Literal

from reconciler.model.action import Action
from reconciler.model.codec.base import AddressText, Count, Form, PlaceForm, copied, optional
from reconciler.model.codec.text import json_text
from reconciler.model.dialect import Dialect
from reconciler.model.rehearsal import Outcome, Problem, Rehearsal

FORMAT_VERSION: Literal[1] = 1


class ProblemForm(Form, frozen=True, kw_only=True):
    """A change that would not be made."""

    address: AddressText
    action: Action
    name: str
    outcome: Outcome
    message: str
    """With the words of the service."""
    at: PlaceForm | None
    hint: str | None

    @classmethod
    def of(cls, problem: Problem) -> ProblemForm:
        """Return the form of a problem."""
        at = optional(PlaceForm, problem.at)
        return copied(cls, problem, address=str(problem.address), at=at)


class LeftForm(Form, frozen=True, kw_only=True):
    """A change that a second plan would still make."""

    address: AddressText
    action: Action


class KillForm(Form, frozen=True, kw_only=True):
    """A run that was killed after its n-th write, and a second run."""

    number: Count
    write: str
    """Method and path of that write."""
    problem: str
    """How the end state differs, empty if it does not."""


class RehearsalForm(Form, frozen=True, kw_only=True):
    """How the plan of now would be applied."""

    format_version: Literal[1]
    environment: str
    base_url: str
    organization: str
    dialect: Dialect | None
    dialect_known: bool
    """Whether live state shows the dialect."""
    changes: Count
    violations: tuple[str, ...]
    """Of the policy. With any, nothing is rehearsed."""
    problems: tuple[ProblemForm, ...]
    left: tuple[LeftForm, ...]
    calls: Count
    """Of an apply, planning and verification included."""
    writes: Count
    seconds: float
    """How long the calls take under the rate limit."""
    assumed: tuple[str, ...]
    """What must exist for the plan, and live state does not show."""
    kills: tuple[KillForm, ...] | None
    """Null unless they were requested."""
    exit_code: Count


def rehearsal_as_json(rehearsal: Rehearsal) -> str:
    """Return the JSON of a rehearsal."""
    left = (LeftForm(address=str(address), action=action) for address, action in rehearsal.left)
    kills = rehearsal.kills
    return json_text(
        copied(
            RehearsalForm,
            rehearsal,
            format_version=FORMAT_VERSION,
            violations=tuple(refusal.message for refusal in rehearsal.refusals),
            problems=tuple(map(ProblemForm.of, rehearsal.problems)),
            left=tuple(left),
            kills=None if kills is None else tuple(copied(KillForm, kill) for kill in kills),
            exit_code=int(rehearsal.exit_code),
        )
    )
