"""HTML pages of one file, which need no network and run no code but their own.

An element with `data-state` is a row that the form of `filters` hides and shows. Live names are
plain text in Markdown, too.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape

from reconciler.model.text import printable, safe_output

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#60646c;--line:#dfe2e6;--soft:#f4f5f7;
--red:#c62a2f;--amber:#9a5b00;--blue:#0b68a8;--violet:#8e4ec6;--green:#217a43}
@media (prefers-color-scheme:dark){:root{--bg:#16181b;--fg:#eceef0;--dim:#a0a6ae;--line:#33373d;
--soft:#212429;--red:#ff8b8b;--amber:#f0b45a;--blue:#70b8ff;--violet:#d19dff;--green:#5bc983}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:90rem;padding:1rem;background:var(--bg);color:var(--fg);
font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:0}
h2{font-size:1.1rem;margin:1.2rem 0 .4rem}
header p{margin:.2rem 0;color:var(--dim)}
form{display:flex;flex-wrap:wrap;gap:.75rem 1.25rem;align-items:end;margin:1rem 0}
form[hidden]{display:none}
fieldset{display:flex;flex-wrap:wrap;gap:.5rem;border:0;margin:0;padding:0}
legend{padding:0}
form,legend{color:var(--dim)}
select,input[type=search],button{font:inherit;color:inherit;background:var(--soft);
border:1px solid var(--line);border-radius:6px;padding:.3rem .5rem;height:2.3rem}
select,input[type=search]{display:block;width:14rem;max-width:100%}
.tile{display:flex;align-items:center;gap:.4rem;height:2.3rem;border:1px solid var(--line);
border-radius:6px;padding:0 .6rem;cursor:pointer}
.tile input{margin:0}
table{border-collapse:collapse}
th,td{text-align:left;vertical-align:top}
pre{margin:0;white-space:pre-wrap}
.dim{color:var(--dim)}
.good{fill:var(--green)}
.bad{fill:var(--red)}
.open{fill:var(--dim)}
a{color:var(--blue)}
summary{cursor:pointer}
summary:hover{background:var(--soft)}
:focus-visible{outline:2px solid var(--blue);outline-offset:-2px}
"""

_SCRIPT = """
(() => {
  const form = document.querySelector("form");
  const rows = [...document.querySelectorAll("[data-state]")];
  const entries = rows.filter((row) => row.matches("details"));
  const status = document.getElementById("shown");
  const show = () => {
    const data = new FormData(form);
    const states = new Set(data.getAll("state"));
    const severity = data.get("severity") ?? "*";
    const parent = data.get("parent") ?? "*";
    const words = (data.get("text") ?? "").toLowerCase().split(/\\s+/);
    let shown = 0;
    for (const row of rows) {
      const own = row.dataset;
      row.hidden = !(states.has(own.state)
        && (severity === "*" || severity === own.severity)
        && (parent === "*" || own.parents.split("\\n").includes(parent))
        && words.every((word) => own.text.includes(word)));
      shown += !row.hidden;
    }
    status.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
  };
  const jump = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const entry = target?.closest(".entry");
    if (!entry) return;
    if (entry.hidden) { form.reset(); show(); }
    entry.open = true;
    target.scrollIntoView();
  };
  const fold = (open) => { for (const entry of entries) entry.open = open; };
  let before = [];
  addEventListener("beforeprint", () => {
    before = entries.map((entry) => entry.open);
    fold(true);
  });
  addEventListener("afterprint", () => {
    entries.forEach((entry, position) => { entry.open = before[position]; });
  });
  addEventListener("hashchange", jump);
  if (form) {
    form.hidden = false;
    form.addEventListener("input", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("expand")?.addEventListener("click", () => fold(true));
    document.getElementById("collapse")?.addEventListener("click", () => fold(false));
    show();
  }
  jump();
})();
"""
_CODE = re.compile("`([^`]+)`")
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\."
    r"|!(?=\d)|%(?=[\w\"'])|(?<=\bGH)-(?=\d)|(?<=\b[0-9a-f]{39})[0-9a-f]\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[@#-]|[!$&](?=\d)|[%~](?=[\w\"'])")
"""The sign of a mention, or of a link to an issue, a merge request, a milestone or a label."""


def page(title: str, body: Iterable[str], *, style: str) -> str:
    """Return a page that may load nothing and run only the script of the filters."""
    style = _STYLE + style
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; "
        f"script-src {_hash(_SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n',
            f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n",
            *body,
            f"<script>{_SCRIPT}</script>\n</body>\n</html>\n",
        )
    )


def filters(
    legend: str,
    boxes: Iterable[tuple[str, str]],
    lists: Iterable[tuple[str, str, Sequence[str]]],
    buttons: str = "",
) -> Iterator[str]:
    """Yield a form: a box for each state with its markup, and lists of values by label and name."""
    yield f'<form hidden role="search">\n<fieldset><legend>{legend}</legend>'
    for state, shown in boxes:
        box = f'<input type="checkbox" name="state" value="{text(state)}" checked>'
        yield f'<label class="tile">{box}{shown}</label>'
    yield "</fieldset>\n"
    for label, name, values in lists:
        options = "".join(
            f'<option value="{text(value)}">{text(value) or "none"}</option>' for value in values
        )
        yield f'<label>{label} <select name="{name}"><option value="*">all</option>{options}'
        yield "</select></label>\n"
    yield '<label>Text <input type="search" name="text" autocomplete="off"></label>\n'
    yield f'{buttons}</form>\n<p id="shown" role="status" class="dim"></p>\n'


def text(value: str) -> str:
    """Return text that is no markup, also inside an attribute, and no command of a CI runner."""
    return escape(printable(value)).replace("##", "&#35;#")


def marked(value: str) -> str:
    """Return a message, in which text between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", text(value))


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def marked_up(text: str) -> str:
    """Return a message, in which text between backticks is code."""
    pieces = _CODE.split(printable(text))
    return "".join(
        (code(piece) if position % 2 else inline(piece) or _between(position, pieces))
        for position, piece in enumerate(pieces)
    )


def _between(position: int, pieces: Sequence[str]) -> str:
    """Return what separates two pieces of code: adjacent backticks would not end the first."""
    return "&#8203;" if 0 < position < len(pieces) - 1 else ""


def code(text: str) -> str:
    """Return text as code, which has no markup in it; what would end code or a cell is escaped."""
    shown = printable(text)
    if not shown.strip() or "`" in shown or "|" in shown:
        return inline(shown)
    return f"`{shown}`"


def inline(text: str) -> str:
    """Return text in which nothing is read as markup, HTML, a link, a mention or a table cell."""
    return _SPECIAL.sub(_entity, printable(text))


def within(pieces: Iterator[str], space: int) -> tuple[list[str], int]:
    """Return the pieces that fit with a line end each, and how many are missing.

    They are returned as they are printed: what a CI runner would execute is longer then.
    """
    kept: list[str] = []
    for piece in map(safe_output, pieces):
        space -= len(piece) + 1
        if space < 0:
            return kept, 1 + sum(1 for _ in pieces)
        kept.append(piece)
    return kept, 0


def _entity(match: re.Match[str]) -> str:
    # Forges look for mentions, issues and commits after they decode entities. A zero-width space
    # breaks them: after a sign, and before the last digit of a commit.
    if match[0].isalnum():
        return f"&#8203;{match[0]}"
    broken = "&#8203;" if _REFERENCE.match(match.string, match.start()) else ""
    return f"&#{ord(match[0])};{broken}"
