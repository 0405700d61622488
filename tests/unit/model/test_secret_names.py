"""Test what the names of fields and of environment variables say about their values."""

from __future__ import annotations

import pytest

from reconciler.model.schemas import looks_secret, plain_names, secret_names


def test_no_schema_has_a_field_in_capitals() -> None:
    """`looks_secret` does not read the schemas for such a name."""
    assert [name for name in secret_names() | plain_names() if name.isupper()] == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AWS_SECRET_ACCESS_KEY", True),
        ("API_TOKEN", True),
        ("DB_PASSWORD", True),
        ("AWS_REGION", False),
        ("PRIMARY_KEY", False),
        ("TOKEN_URL", looks_secret("token_url")),
        ("password", True),
        ("bucket_name", False),
    ],
)
def test_a_name_says_whether_its_value_is_secret(name: str, expected: bool) -> None:
    assert looks_secret(name) is expected
