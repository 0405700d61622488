"""What a reviewer sees of a plan without scrolling, in each format."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler.model.plan import Plan
from reconciler.render import writer_of
from reconciler.render.options import COMMENT_LIMIT, RenderOptions, Style
from tests.support.limits import TIMEOUT

_FIRST_LINES, _LAST_LINES, _COLUMNS = 24, 12, 80
_MARKDOWN, _PAGE, _ANNOTATIONS = 2_000, 1_500, 10
_CHUNK = 10_000
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FRAMES = """<!doctype html>
<meta charset="utf-8">
<style>iframe { border: 0; display: block; width: 1280px; height: 800px }</style>
<body>FRAMES<script>
function seen(frame) {
  const page = frame.contentDocument, range = page.createRange(), words = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.parentElement.checkVisibility({visibilityProperty: true})) continue;
    for (const word of node.data.matchAll(/\\S+/g)) {
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const box = range.getBoundingClientRect();
      if (box.top >= 800) return words;
      if (box.bottom <= 800 && box.right <= 1280) words.push(word[0]);
    }
  }
  return words;
}
onload = () => {
  const pages = [...document.querySelectorAll("iframe")].map(frame => seen(frame).join(" "));
  document.body.replaceChildren(document.createElement("pre"));
  document.querySelector("pre").textContent = JSON.stringify(pages);
};
</script></body>
"""
_COMMAND = re.compile(r"::(?:error|warning|notice)\b.*")
_ESCAPES = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
_UNSEEN = frozenset({"head", "script", "style", "template"})
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})


def of_text(text: str) -> str:
    """Return the first and the last lines on a terminal of 80 columns."""
    rows = [row for line in text.splitlines() for row in _rows(line)]
    hidden = rows[_FIRST_LINES:-_LAST_LINES]
    return "\n".join([*rows[:_FIRST_LINES], *rows[_FIRST_LINES + len(hidden) :]])


def _rows(line: str) -> Iterator[str]:
    yield from (line[at : at + _COLUMNS] for at in range(0, max(1, len(line)), _COLUMNS))


def of_markdown(text: str) -> str:
    """Return the first characters of a comment, as they are written."""
    assert len(text) <= COMMENT_LIMIT
    return html.unescape(text[:_MARKDOWN]).replace("\\", "")


def of_annotations(text: str) -> str:
    """Return the first annotations."""
    shown = "\n".join(_COMMAND.findall(text)[:_ANNOTATIONS])
    for escape, character in _ESCAPES.items():
        shown = shown.replace(escape, character)
    return shown


def of_page(page: str) -> str:
    """Return the first characters that a page shows without a script."""
    reader = _Reader()
    # A page of 300 changes is read as far as it is seen.
    for at in range(0, len(page), _CHUNK):
        reader.feed(page[at : at + _CHUNK])
        text = " ".join("".join(reader.texts).split())
        if len(text) >= _PAGE:
            break
    return text[:_PAGE]


class _Reader(HTMLParser):
    """Collects visible text. `open` has the open elements, and whether each one is hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open = [("", False)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.texts.append(" ")
        if tag in _VOID:
            return
        names = {name for name, _ in attrs}
        hides = tag in _UNSEEN or "hidden" in names or (tag == "details" and "open" not in names)
        # The summary of a closed block is as visible as the block.
        around = self.open[-2] if tag == "summary" else self.open[-1]
        self.open.append((tag, hides or around[1]))

    def handle_endtag(self, tag: str) -> None:
        self.texts.append(" ")
        while len(self.open) > 1 and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self.open[-1][1]:
            self.texts.append(data)


def of_results(text: str) -> str:
    """Return the first results of code scanning: new places and violations."""
    return json.dumps(json.loads(text)["runs"][0]["results"][:_ANNOTATIONS])


def of_json(text: str) -> str:
    """Return everything: a program reads it."""
    return text


SEEN: Mapping[str, Callable[[str], str]] = {
    "text": of_text,
    "markdown": of_markdown,
    "github": of_annotations,
    "html": of_page,
    "sarif": of_results,
    "json": of_json,
}
"""What is seen at once of a plan, by format."""


def seen(plan: Plan) -> dict[str, str]:
    """Return what is seen at once of a plan, by format."""
    options = RenderOptions(style=Style(width=_COLUMNS))
    return {name: shown(writer_of(name, "plan")(plan, options)) for name, shown in SEEN.items()}


def viewports(pages: Sequence[str]) -> list[str]:
    """Return the text in the first viewport of each page, measured by Chromium."""
    frames = "".join(f'<iframe srcdoc="{html.escape(page)}"></iframe>' for page in pages)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "pages.html"
        file.write_text(_FRAMES.replace("FRAMES", frames), encoding="utf-8")
        browser = ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}")
        ended = subprocess.run(
            [str(CHROMIUM), *browser, "--dump-dom", file.as_uri()],
            capture_output=True,
            check=True,
            text=True,
            timeout=TIMEOUT,
        )
    return json.loads(html.unescape(ended.stdout.partition("<pre>")[2].partition("</pre>")[0]))


def missing(shown: tuple[str, ...], text: str) -> list[str]:
    """Return what a text does not show. Lines may end within a word."""
    there = "".join(text.replace("\u200b", "").split()).casefold()
    return [value for value in shown if "".join(value.split()).casefold() not in there]
