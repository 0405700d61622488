"""Settings of the documentation site: python -m sphinx -W --keep-going -n docs SITE."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from posixpath import normpath

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.version import __version__  # noqa: E402 - found beside this folder

project = "reconciler"
html_title = f"reconciler {__version__}"
html_theme = "furo"
extensions = ["myst_parser"]
# Anchors as forges make them, so that one link works here and there.
myst_heading_anchors = 6
# Examples with … are not valid JSON or YAML.
suppress_warnings = ["misc.highlighting_failure"]
html_show_sourcelink = False
html_copy_source = False

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_PAGE = re.compile(r"^- \[[^]]*\]\(([\w./-]+)\.md\)", re.MULTILINE)


def _navigation(_app: Sphinx, name: str, source: list[str]) -> None:
    """Add to an index the hidden table of contents that its lists of links describe."""
    if name not in ("index", "commands/README", "reference/README"):
        return
    _, *parts = _SECTION.split(source[0]) if name == "index" else ("", "", source[0])
    for caption, text in zip(parts[::2], parts[1::2], strict=True):
        pages = "\n".join(page for page in _PAGE.findall(text) if not page.startswith("../"))
        title = f":caption: {caption}\n" if caption else ""
        source[0] += f"\n```{{toctree}}\n:hidden:\n{title}\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect the navigation."""
    app.add_lexer("mermaid", TextLexer)
    app.connect("source-read", _navigation)
