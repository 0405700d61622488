"""A saved plan comes back as it was, or not at all."""

from __future__ import annotations

import json
from enum import Enum
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.model.decoding import InvalidPlanFile, decode
from reconciler.model.kind import Action
from reconciler.model.plan import (
    Change,
    FieldChange,
    Plan,
    PlanSource,
    SecretNote,
    SecretUse,
    digest_of,
    encode,
)
from reconciler.model.values import (
    JSON,
    MISSING,
    Address,
    JSONObject,
    Path,
    SecretRef,
    SecretSource,
)

SOURCE = PlanSource("staging", "org", "https://eu.example.com", "1.0")
EFFECTIVE = [action for action in Action if action is not Action.NO_OP]

texts = st.text(max_size=8)
words = st.text(min_size=1, max_size=8)
sources = st.builds(SecretSource, st.sampled_from(["env", "file", "exec", "literal"]), words)
references = st.builds(SecretRef, st.lists(texts | sources, min_size=1, max_size=3).map(tuple))
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-9, 9) | texts
keys = texts | st.sampled_from(["$secret", "$$secret", "$", "ref"])
values = st.recursive(
    scalars | references,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
paths = st.lists(words | st.integers(0, 9), min_size=1, max_size=3).map(tuple)
KNOWN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, texts),
    # An empty one of the optional fields is saved like none.
    (str | None, st.none() | words),
    (int, st.integers(1, 9)),
    (bool, st.booleans()),
    (type(None), st.none()),
    (JSON, st.just(MISSING) | values),
    (JSONObject, st.dictionaries(keys, values, max_size=3)),
    (Path, paths),
    (SecretRef, references),
    (Address, st.builds(Address, words.map(lambda text: text.replace(".", "_")), words)),
    (Action, st.sampled_from(EFFECTIVE)),
]


def drawn(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type. A new field of a plan is drawn without a change here."""
    for known, strategy in KNOWN:
        if hint == known:
            return strategy
    inner = get_args(hint)
    origin = get_origin(hint)
    if origin is UnionType:
        return st.one_of(*map(drawn, inner))
    if origin is tuple:
        return st.lists(drawn(inner[0]), max_size=2).map(tuple)
    if origin is not None:
        # Other mappings than values have ids as keys, which have no `$`.
        return st.dictionaries(st.text("09ab", max_size=8), texts, max_size=2)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    hints = get_type_hints(hint)
    names = set(hint.__struct_fields__) - getattr(hint, "internal", set())
    return st.builds(hint, **{name: drawn(hints[name]) for name in names})


def a_plan(*fields: FieldChange, **parts: Any) -> Plan:
    change = Change(
        Address("batch_export", "lake"), Action.UPDATE, "Lake", live_id="e1", fields=fields, **parts
    )
    return Plan(SOURCE, (change,), created_at="2026-06-01T12:00:00Z")


def told(plan: Plan) -> Any:
    return json.loads(encode(plan))


def edited(plan: Plan, place: tuple[str | int, ...], value: Any) -> bytes:
    """Return a saved plan with another value in it, or without one."""
    content = inner = told(plan)
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    if value is MISSING:
        del inner[place[-1]]
    return orjson.dumps(content)


@given(drawn(Plan))
def test_every_plan_comes_back_as_it_was(plan: Plan) -> None:
    data = encode(plan)
    assert decode(data) == plan
    assert encode(decode(data)) == data


def test_the_bytes_do_not_depend_on_the_order_of_keys_and_show_the_id_and_digests() -> None:
    one = a_plan(body={"name": "n", "destination": {"type": "S3", "config": {"a": 1, "b": 2}}})
    two = a_plan(body={"destination": {"config": {"b": 2, "a": 1}, "type": "S3"}, "name": "n"})
    assert encode(one) == encode(two)
    assert encode(one).endswith(b"}\n")
    assert told(one)["plan_id"] == one.plan_id
    assert told(one)["changes"][0]["digest"] == digest_of(one.changes[0], one.source)


def test_a_secret_is_saved_as_its_reference() -> None:
    ref = SecretRef(("Bearer ", SecretSource("env", "KEY")))
    plan = a_plan(body={"token": ref}, secrets=(SecretNote(("token",), ref, SecretUse.UNREADABLE),))
    change = told(plan)["changes"][0]
    assert change["body"] == {
        "token": {"$secret": {"parts": ["Bearer ", {"source": "env", "argument": "KEY"}]}}
    }
    assert change["secrets"][0]["reference"] == "Bearer ${secret:env:KEY}"
    assert change["secrets"][0]["sent"] is False


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[]", b'{"a": 1}', b"[" * 5000])
def test_what_is_no_plan_is_told_so(data: bytes) -> None:
    with pytest.raises(InvalidPlanFile, match="not a plan file"):
        decode(data)


@pytest.mark.parametrize("version", [0, 2, "1"])
def test_a_plan_of_another_format_is_told_so(version: Any) -> None:
    with pytest.raises(InvalidPlanFile, match="unsupported format") as told_so:
        decode(edited(a_plan(), ("format_version",), version))
    assert told_so.value.hint


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("changes",), []),
        (("plan_id",), "0" * 64),
        (("summary", "delete"), 1),
        (("changes", 0, "live_id"), "e2"),
        (("changes", 0, "digest"), "0" * 64),
        (("changes", 0, "body"), {"name": "m"}),
        (("changes", 0, "destructive"), True),
        (("changes", 0, "extra"), 1),
        (("unchanged",), MISSING),
    ],
)
def test_an_edited_plan_is_refused(place: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(InvalidPlanFile, match="plan was edited or damaged"):
        decode(edited(a_plan(body={"name": "n"}), place, value))


def test_the_time_of_making_may_differ() -> None:
    plan = a_plan()
    assert decode(edited(plan, ("created_at",), "x")) == replace(plan, created_at="x")


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("changes",), MISSING, "object missing required field `changes`"),
        (("changes", 0, "action"), "destroy", "changes[0].action: invalid enum value 'destroy'"),
        (("changes", 0, "name"), 7, "changes[0].name: expected `str`, got `int`"),
        (("changes", 0, "fields", 0, "path"), [], "path: expected `array` of length >= 1"),
        (("changes", 0, "body"), {"a": {"$secret": "x"}}, "expected `object`, got `str`"),
        (("changes", 0, "address"), "x", "changes[0].address: 'x' is not an address"),
        (("source", "dialect"), "2020", "source.dialect: invalid enum value '2020'"),
    ],
)
def test_a_malformed_plan_is_reported_with_file_place_and_hint(
    place: tuple[str | int, ...], value: Any, problem: str
) -> None:
    plan = a_plan(FieldChange(("a",), 1, 2), body={"a": 2})
    with pytest.raises(InvalidPlanFile) as raised:
        decode(edited(plan, place, value), name="plan.json")
    assert raised.value.message.startswith("plan.json: plan was edited or damaged: ")
    assert problem in raised.value.message
    assert raised.value.hint
