"""The policy as it is read from the files."""

from __future__ import annotations

import pytest

from reconciler.model.policy import Policy


@pytest.mark.parametrize(
    ("written", "withdraw"),
    [({}, True), ({"withdraw": "exports"}, True), ({"withdraw": "never"}, False)],
)
def test_exports_are_withdrawn_unless_the_policy_says_never(
    written: dict[str, str], *, withdraw: bool
) -> None:
    assert Policy.read(written, switches={}, marks={}).withdraw is withdraw
