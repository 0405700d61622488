"""The documentation site contains every page, and broken links fail its build."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.limits import TIMEOUT

DOCS = ROOT / "docs"
NEEDS_SPHINX = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("sphinx", "myst_parser", "furo", "sphinx_copybutton")),
    reason="needs the extra docs: pip install -e '.[docs]'",
)


def _conf() -> dict[str, object]:
    return runpy.run_path(str(DOCS / "conf.py"))


def test_every_page_is_in_the_navigation_once() -> None:
    conf = _conf()
    pages = ["index"]
    for index in conf["_INDEXES"]:
        folder = Path(index).parent
        tables = conf["_navigation"]((DOCS / f"{index}.md").read_text(encoding="utf-8"))
        entries = re.findall(r"^[\w./-]+$", tables, re.MULTILINE)
        pages += (str(folder / page) for page in entries)
    assert sorted(pages) == sorted(
        path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")
    )


def test_a_link_out_of_the_site_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = _conf()
    page = ["[a](../SECURITY.md#x) [b](git.md) [c](https://example.com)"]
    conf["_read"](None, "security", page)
    assert page == ["a (`SECURITY.md`) [b](git.md) [c](https://example.com)"]
    monkeypatch.setenv("DOCS_REPOSITORY", "https://forge.example/blob/main")
    page = ["[a](../SECURITY.md)"]
    conf["_read"](None, "security", page)
    assert page == ["[a](https://forge.example/blob/main/SECURITY.md)"]
    with pytest.raises(FileNotFoundError, match="security"):
        conf["_read"](None, "security", ["[a](../NONE.md)"])


@NEEDS_SPHINX
@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("page.md#a-heading", ""),
        ("page.md#another", "another"),
        ("none.md", "none"),
    ],
)
def test_a_broken_link_fails_the_build(link: str, problem: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("conf.py", "search.js"):
        shutil.copy(DOCS / name, docs)
    shutil.copytree(DOCS / "_static", docs / "_static")
    (docs / "index.md").write_text(f"# Site\n\n## Start\n\n- [Page](page.md)\n\n[x]({link})\n")
    (docs / "page.md").write_text("# Page\n\n## A heading\n")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-n", docs, tmp_path / "site"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert bool(built.returncode) is bool(problem), built.stderr
    assert problem in built.stderr
