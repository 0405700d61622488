"""The policy as it is read from the files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.settings import Limit, Policy

_limits = st.none() | st.builds(Limit, st.integers(0, 20), st.booleans())
_policies = st.builds(
    Policy,
    prune=st.booleans(),
    ignore=st.sampled_from([(), ("a*",), ("b*", "a*")]),
    max_deletes=_limits,
    max_changes=_limits,
    deletable=st.frozensets(st.just("project")),
    deny=st.sampled_from([(), ("history-lost",)]),
    attempt=st.sampled_from([(), ("query-required",), ("query-required", "not-accepted")]),
    allow_literal_secrets=st.booleans(),
    allow_exec_secrets=st.booleans(),
)


@given(_policies, _policies, st.integers(0, 30), st.integers(0, 30))
def test_security_25_the_stricter_policy_allows_nothing_that_the_trusted_one_does_not(
    own: Policy, trusted: Policy, count: int, total: int
) -> None:
    stricter = own.stricter(trusted)
    for name in ("max_deletes", "max_changes"):
        limit, allowed = getattr(stricter, name), getattr(trusted, name)
        if limit is None or limit.allows(count, total=total):
            assert allowed is None or allowed.allows(count, total=total)
    for name in ("prune", "allow_literal_secrets", "allow_exec_secrets"):
        assert getattr(stricter, name) is (getattr(own, name) and getattr(trusted, name))
    assert set(stricter.attempt) == {*own.attempt} & {*trusted.attempt}
    assert {*stricter.ignore, *stricter.deny} == {
        *own.ignore, *own.deny, *trusted.ignore, *trusted.deny
    }  # fmt: skip
    assert stricter.deletable == own.deletable & trusted.deletable
    assert own.stricter(own) == own


@pytest.mark.parametrize(
    ("own", "trusted", "expected"),
    [
        (Limit(5), None, Limit(5)),
        (Limit(99), None, None),
        (Limit(5, percent=True), None, None),
        (None, Limit(99), Limit(99)),
    ],
)
def test_a_file_does_not_raise_the_default_of_max_deletes_by_itself(
    own: Limit | None, trusted: Limit | None, expected: Limit | None
) -> None:
    strict = Policy(max_deletes=own).stricter(Policy(max_deletes=trusted))
    assert strict.max_deletes == expected
