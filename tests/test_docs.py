"""The links, anchors and paths in the documentation exist."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted(
    chain.from_iterable(
        ROOT.glob(f"{folder}*.md") for folder in ("", "docs/**/", "changelog.d/", "examples/**/")
    )
)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_PATH = re.compile(r"`([\w./-]+/[\w.-]*\.(?:py|md|json|yaml)|[\w./-]+/)`")


def _prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors of the headings as GitHub makes them: a repeated one gets a number."""
    uses: Counter[str] = Counter()
    anchors = set()
    for heading in _HEADING.findall(_prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        anchors.add(f"{slug}-{uses[slug]}" if uses[slug] else slug)
        uses[slug] += 1
    return frozenset(anchors)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_CODE.sub("", _prose(page))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in _anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize(
    "name", ["CONTRIBUTING.md", "docs/inside/architecture.md", "docs/inside/maintaining.md"]
)
def test_every_path_of_the_repository_exists(name: str) -> None:
    """A path is relative to the root of the repository or of the package."""
    paths = _PATH.findall(_prose(ROOT / name))
    missing = [
        path
        for path in paths
        if not (ROOT / path).exists() and not (ROOT / "reconciler" / path).exists()
    ]
    assert paths
    assert not missing


def test_the_table_of_environment_variables_is_complete() -> None:
    """Every variable whose name begins as that of the tool is in docs/configuration.md."""
    texts = (path.read_text(encoding="utf-8") for path in (ROOT / "reconciler").rglob("*.py"))
    names = {name for text in texts for name in re.findall(r'"(RECONCILER_[A-Z_]+)"', text)}
    table = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    table = table.split("\n## Environment variables\n")[1].split("\n## ")[0]
    documented = set(re.findall(r"`(RECONCILER_[A-Z_]+)\*?`", table))
    assert documented == names
