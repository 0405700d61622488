"""A search finds the heading that answers a question first, and the entry of a code."""

from __future__ import annotations

import math
import re
import runpy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from reconciler.errors import codes
from reconciler.kinds import all_kinds, behaviour_of
from tests.conftest import ROOT
from tests.docs.questions import QUESTIONS
from tests.unit.render.test_codes_in_docs import codes_of_plans

DOCS = ROOT / "docs"
REFERENCE = ("reference", "commands", "api", "consequences", "glossary")
SHELVES = {"use": 1.0, "reference": 0.7, "inside": 0.5}
"""Weights of the shelves in docs/search.js, the first of which ranks highest."""

INDEX_TERM = 100 / 60
"""The score of an index term by that of a heading with all words of a search and no others."""

_FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_IGNORED = re.compile(
    r"a|an|and|at|do|does|for|from|i|in|is|it|its|me|my|not|of|s|that|the|this|to|too|what|why"
)
_STEM = 5
"""Number of letters by which words without a final s are the same: `delete` and `deletion`."""


@dataclass(frozen=True)
class Section:
    """A heading, or an entry with index terms."""

    place: str
    shelf: str
    heading: frozenset[str] = frozenset()
    terms: frozenset[str] = frozenset()


def stems(text: str) -> frozenset[str]:
    """Return the words that a search compares."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    singular = (word.removesuffix("s") for word in words if not _IGNORED.fullmatch(word))
    return frozenset(word[:_STEM] for word in singular)


def shelf_of(page: Path) -> str:
    """Return the shelf of a page, by its folder or name."""
    first = page.with_suffix("").parts[0]
    if first == "inside":
        return "inside"
    return "reference" if first in REFERENCE else "use"


def sections_of(page: Path) -> Iterator[Section]:
    """Yield the sections of a page below docs/."""
    text = _FENCED.sub("", (DOCS / page).read_text(encoding="utf-8"))
    for heading in _HEADING.findall(text):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        yield Section(f"{page.as_posix()}#{anchor}", shelf_of(page), stems(heading))


@cache
def sections() -> tuple[Section, ...]:
    pages = (path.relative_to(DOCS) for path in sorted(DOCS.rglob("*.md")))
    return tuple(section for page in pages for section in sections_of(page))


@cache
def entries() -> tuple[Section, ...]:
    """Return the entries to which docs/conf.py adds index terms."""
    conf = runpy.run_path(str(DOCS / "conf.py"))
    return tuple(
        Section(f"{page}.md", shelf_of(Path(page)), terms=frozenset(terms))
        for page, pattern in conf["_CODES"].items()
        for entry in pattern.finditer((DOCS / f"{page}.md").read_text(encoding="utf-8"))
        if (terms := conf["_CODE"].findall(entry["codes"]))
    )


@cache
def weight_of(stem: str) -> float:
    """Return how rare a word is: the logarithm of the share of headings without it."""
    count = sum(stem in section.heading for section in sections())
    return math.log((1 + len(sections())) / (1 + count))


def weigh(words: Iterable[str]) -> float:
    """Return the weight of some words."""
    return sum(map(weight_of, set(words)))


def rank(question: str) -> list[Section]:
    """Return the sections for the words of a question, the best first, as docs/search.js does."""
    words = stems(question)

    def score(section: Section) -> float:
        if section.terms:
            return INDEX_TERM * (question in section.terms) * SHELVES[section.shelf]
        common = weigh(word for word in words if word in section.heading)
        length = weigh(words) + weigh(section.heading)
        return 2 * common / length * SHELVES[section.shelf]

    return sorted((*sections(), *entries()), key=score, reverse=True)


@pytest.mark.parametrize("question", QUESTIONS)
def test_issue_35_a_search_finds_the_answer_first(question: str) -> None:
    assert [section.place for section in rank(question)[:1]] == [QUESTIONS[question]]


PAGES = {
    **dict.fromkeys(codes_of_plans(), "glossary.md"),
    **{
        rule.id: "consequences.md"
        for kind in all_kinds()
        for rule in (*behaviour_of(kind).rules, *behaviour_of(kind).refusals)
    },
    **dict.fromkeys(codes(), "reference/diagnostics.md"),
}
"""The page with the entry of each code."""


@pytest.mark.parametrize("code", PAGES)
def test_a_search_for_a_code_finds_its_entry_first(code: str) -> None:
    first = rank(code)[0]
    assert (first.place, code in first.terms) == (PAGES[code], True)
