"""Walking JSON and changing its leaves, the syntax of references, and values of secrets."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reconciler.model.values import (
    PLAIN,
    Reference,
    SecretRef,
    SecretValue,
    is_only_references,
    leaves,
    map_leaves,
    mapped_leaves,
    text_parts,
    walk,
)

VALUE: dict[str, Any] = {"a": [1, {"b": "x"}], "c": {}, "d": SecretRef.of("env", "X")}


def test_everything_is_walked_containers_first() -> None:
    below = [("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c",), ("d",)]
    assert [path for path, _ in walk(VALUE)] == [(), *below]
    assert [path for path, _ in leaves(VALUE)] == [("a", 0), ("a", 1, "b"), ("d",)]
    assert [path for path, _ in mapped_leaves(VALUE)] == [("a",), ("c",), ("d",)]


def test_what_does_not_change_is_shared() -> None:
    changed = map_leaves(VALUE, lambda leaf: "s" if isinstance(leaf, SecretRef) else leaf)
    assert changed == {**VALUE, "d": "s"}
    assert changed["a"] is VALUE["a"]
    assert map_leaves(VALUE, lambda leaf: leaf) is VALUE
    assert map_leaves({"n": 1}, lambda _: pytest.fail("a plain leaf"), keep=PLAIN) == {"n": 1}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("plain", ["plain"]),
        ("a$${b}", ["a", "${", "b}"]),
        ("${var:x}/${secret:env:Y}", [Reference("var:x"), "/", Reference("secret:env:Y")]),
        ("x${env:A", ["x", Reference("env:A", closed=False)]),
    ],
)
def test_references_are_the_parts_of_a_text(text: str, parts: list[object]) -> None:
    assert list(text_parts(text)) == parts


def test_a_reference_knows_its_provider_and_argument() -> None:
    secret, plain = Reference("secret:exec:vault read: x"), Reference("env:A:-b:c")
    assert (secret.is_secret, secret.provider, secret.argument) == (True, "exec", "vault read: x")
    assert (plain.is_secret, plain.provider, plain.has_default) == (False, "env", True)
    assert plain.without_default("***") == "${env:A:-***}"
    assert not is_only_references(str(plain))
    assert is_only_references("${var:a}${var:b}")
    assert not is_only_references("${var:a} and more")


def test_a_secret_value_gives_nothing_away() -> None:
    secret = SecretValue("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {secret:>20}"
    for use in (pickle.dumps, hash, lambda value: value == "hunter2"):
        with pytest.raises(TypeError):
            use(secret)
