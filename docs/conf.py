"""Settings of the documentation site. CONTRIBUTING.md has the command that builds it."""  # noqa: INP001

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path
from posixpath import dirname, normpath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.version import REPOSITORY, __version__  # noqa: E402 - found beside this folder

project = "reconciler"
html_title = f"reconciler {__version__}"
html_theme = "furo"
if "OWNER" not in REPOSITORY:
    # Links to view and edit a page. The theme knows the addresses of some hosts only.
    html_theme_options = {
        "source_repository": REPOSITORY,
        "source_branch": "main",
        "source_directory": "docs/",
    }
html_static_path = ["_static"]
# A site of other pages has none.
html_extra_path = ["llms.txt"] if Path(__file__).with_name("llms.txt").exists() else []
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search.js"))
extensions = ["myst_parser", "sphinx_copybutton"]
# Copies the commands of an example, not its output.
copybutton_prompt_text = "$ "
myst_html_meta = {
    "description": "GitOps for data pipelines: plan and apply projects and batch exports from YAML"
}
# Lists of boxes to check, as on forges.
myst_enable_extensions = ["tasklist"]
# Anchors as forges make them, so that one link works here and there.
myst_heading_anchors = 6
# Typographic dashes would change options such as --dry-run.
smartquotes = False
# Examples with … are not valid JSON or YAML.
suppress_warnings = ["misc.highlighting_failure"]
html_show_sourcelink = False
html_copy_source = False

_INDEXES = ("index", "reference/README")
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^]]*\]\(([\w/-][\w./-]*)\.md\)", re.MULTILINE)
_CODES = {
    "consequences": re.compile(r"^(?P<codes>\*\*`[a-z0-9-]+`\*\*) ?[(:]", re.MULTILINE),
    "glossary": re.compile(r"^- (?P<codes>`[a-z_-]+`(?:, `[a-z_-]+`)*): ", re.MULTILINE),
    "reference/diagnostics": re.compile(r"^## (?P<codes>[a-z0-9-]+)$", re.MULTILINE),
}
"""How the entries of codes begin on the pages that have some."""
_CODE = re.compile(r"[a-z0-9_-]+")
_OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\.?/[^)\s#]*)(?:#[^)\s]*)?\)")


def _read(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add what forges do without: navigation, index terms, and addresses of the repository."""
    if name == "changelog":
        source[0] = _changelog()
    if name in _INDEXES:
        source[0] += _navigation(source[0])
    if name in _CODES:
        source[0] = _CODES[name].sub(_with_terms, source[0])
    source[0] = _OUTSIDE.sub(lambda link: _address(name, link), source[0])


def _with_terms(entry: re.Match[str]) -> str:
    """Return the start of an entry with its codes as index terms, which a search finds first."""
    terms = ", ".join(f"! {code}" for code in _CODE.findall(entry["codes"]))
    directive = f"```{{index}} {terms}\n```\n\n{entry[0]}"
    if not entry[0].startswith("- "):
        return directive
    return "- " + directive.replace("\n\n- ", "\n").replace("\n", "\n  ")


def _navigation(text: str) -> str:
    """Return a hidden table of contents for each list of pages in an index."""
    captions = ["", *_SECTION.findall(text)]
    tables = []
    for caption, part in zip(captions, _SECTION.split(text)[::2], strict=True):
        pages = "\n".join(_PAGE.findall(part))
        if pages:
            title = f":caption: {caption}\n" if caption else ""
            tables.append(f"\n```{{toctree}}\n:hidden:\n{title}\n{pages}\n```\n")
    return "".join(tables)


def _changelog() -> str:
    """Return the changes of every version, those that are not released yet first."""
    _, _, released = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("-->\n")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = ["---\nnosearch: true\n---\n# Changelog", "## Not released yet"]
    for kind in settings["tool"]["towncrier"]["type"]:
        files = sorted(ROOT.glob(f"changelog.d/*.{kind['directory']}.md"))
        texts = "\n\n".join(file.read_text(encoding="utf-8").strip() for file in files)
        entries = [f"- {entry}".replace("\n", "\n  ") for entry in texts.split("\n\n") if entry]
        parts += [f"### {kind['name']}", *entries] if entries else []
    if len(parts) == 2:
        parts.pop()
    return "\n\n".join([*parts, released])


def _address(name: str, link: re.Match[str]) -> str:
    """Return a link to a file outside of docs/ as an address of the forge, or as its path."""
    path = normpath(f"docs/{dirname(name)}/{link[2]}")
    if path.startswith("docs/"):
        return link[0]
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"{name}: {link[2]}")
    forge = os.environ.get("DOCS_REPOSITORY")
    return f"[{link[1]}]({forge}/{path})" if forge else f"{link[1]} (`{path}`)"


def setup(app: Sphinx) -> None:
    """Connect the reading of pages."""
    app.connect("source-read", _read)
