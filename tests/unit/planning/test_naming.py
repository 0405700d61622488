"""Objects are named by address, id, key, name or glob: the first of these that matches wins."""

from __future__ import annotations

import pytest

from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.values import Address
from reconciler.planning.select import Named, Names, kinds_named

WEB = Named(Address("project", "web"), ("1",), ("Web shop",))
LAKE = Named(Address("batch_export", "lake"), ("e1",), ("Events to the lake", "Old name"))
SEA = Named(Address("batch_export", "sea"), ("e2",), ("lake",))
SHARED = Named(Address("batch_export", "web"), ("e3",), ("Events [all]",))
HAND = Named(Address.of_unmanaged("batch_export", "e4"), ("e4",), ("Hand-made",))
EVERY = (WEB, LAKE, SEA, SHARED, HAND)
NAMES = Names(EVERY)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("batch_export.lake", [LAKE]),
        ("e1", [LAKE]),
        ("1", [WEB]),
        ("lake", [LAKE]),
        ("web", [SHARED, WEB]),
        ("Events to the lake", [LAKE]),
        ("Old name", [LAKE]),
        (" Web shop ", [WEB]),
        ("Events [all]", [SHARED]),
        ("batch_export.id:e4", [HAND]),
        ("id:e4", [HAND]),
        ("batch_export.*", [HAND, LAKE, SEA, SHARED]),
        ("*.web", [SHARED, WEB]),
        ("Events*", [LAKE, SHARED]),
        ("lak?", [LAKE, SEA]),
        ("Lake", []),
        ("e", []),
        ("", []),
    ],
)
def test_the_first_level_that_matches_wins(text: str, named: list[Named]) -> None:
    assert list(NAMES.matching(text)) == named


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("batch_export.lakee", "did you mean batch_export.lake?"),
        ("lakee", "did you mean batch_export.lake?"),
        ("batch_exports.lake", "did you mean batch_export.lake?"),
        ("LAKE", "did you mean batch_export.lake?"),
        ("Web shopp*", "did you mean project.web?"),
        ("hand-made", 'did you mean "Hand-made" (batch_export.id:e4)?'),
        ("batch_export.nope*", 'known: "Hand-made" (batch_export.id:e4), batch_export.lake, '),
        ("q", "write an address (kind.key), an id, a key, a name or a glob"),
        ("\x1b[2J", "write an address"),
    ],
)
def test_what_names_nothing_is_bad_usage_with_a_suggestion(text: str, hint: str) -> None:
    with pytest.raises(BadUsage, match=r"nothing matches .* \(--target\)") as caught:
        NAMES.named(text, "--target")
    assert hint in str(caught.value.hint)
    assert "\x1b" not in caught.value.message


def test_without_objects_there_is_no_suggestion() -> None:
    with pytest.raises(BadUsage, match="nothing matches 'web'") as caught:
        Names(()).one("web")
    assert "did you mean" not in str(caught.value.hint)


def test_an_argument_for_one_object_refuses_several() -> None:
    assert NAMES.one("lake") is LAKE
    assert NAMES.one("Events to*") is LAKE
    with pytest.raises(BadUsage, match="'web' matches 2 resources") as caught:
        NAMES.one("web")
    assert caught.value.hint == "use one of: batch_export.web, project.web"


def test_a_comma_list_is_split_only_if_nothing_has_the_whole_name() -> None:
    both = Named(Address("project", "x"), names=("lake, sea",))
    names = Names([*EVERY, both])
    assert names.split(["lake, sea"]) == ("lake, sea",)
    assert NAMES.split(["lake, sea", "web"]) == ("lake", "sea", "web")
    assert LAKE.may_match("sea,lake")
    assert LAKE.may_match("lak?")
    assert SHARED.may_match("Events [all]")
    assert not LAKE.may_match("sea,web")
    with pytest.raises(BadUsage, match="'lake,sea' matches 2 resources"):
        NAMES.one("lake,sea")
    with pytest.raises(BadUsage, match="nothing matches 'q' "):
        NAMES.named("lake,q", "--name")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("project", {"project"}),
        ("batch_exports", {"batch_export"}),
        ("projects,batch_export", {"batch_export", "project"}),
    ],
)
def test_kinds_are_named_by_name_and_collection(text: str, kinds: set[str]) -> None:
    assert kinds_named(text, all_kinds()) == kinds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("exports", "did you mean 'batch_export'?"),
        ("Project", "did you mean 'project'?"),
        ("dashboard", "kinds: project, batch_export"),
        ("project,", "kinds: project, batch_export"),
    ],
)
def test_an_unknown_kind_is_bad_usage(text: str, hint: str) -> None:
    with pytest.raises(BadUsage, match="unknown kind") as caught:
        kinds_named(text, all_kinds())
    assert caught.value.hint == hint
