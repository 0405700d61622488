"""HTML pages of one file, which need no network and run no code but their own.

`page` and `filters` are the parts of any page, and `as_html` makes one of a report. An element with
`data-state` is a row that the form of `filters` hides and shows.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape

from reconciler.model.text import printable
from reconciler.render.document import (
    Bar,
    Block,
    Cell,
    Chart,
    Document,
    Facts,
    Heading,
    Line,
    Row,
    Table,
)
from reconciler.render.options import Colour

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
_DOCUMENT_STYLE = """
table{margin:1rem 0}
th,td{padding:.3rem .9rem .3rem 0}
tbody{border-top:1px solid var(--line)}
thead th,.notes td{color:var(--dim);font-weight:400}
.group th{padding-top:1rem}
.red{color:var(--red)}
.amber{color:var(--amber)}
.blue{color:var(--blue)}
.violet{color:var(--violet)}
.green{color:var(--green)}
.charts{display:grid;gap:1rem 1.5rem;grid-template-columns:repeat(auto-fit,minmax(14rem,1fr))}
figure{margin:0}
figcaption{font-size:.85rem}
figure svg{width:100%;height:auto}
svg text{font:10px system-ui,sans-serif;fill:var(--dim)}
.axis{stroke:var(--line);fill:none}
@media (max-width:40rem){table,thead,tbody,tr,th,td{display:block}
thead{display:none}
td,th{padding:.05rem 0}
td[data-label]:not(:empty)::before{content:attr(data-label) " ";color:var(--dim)}}
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
_MOST_CHARTS = 1_000
"""The rows with charts: a page with more of them is slow."""
_CLASSES = {
    Colour.RED: "red",
    Colour.BOLD_RED: "red",
    Colour.YELLOW: "amber",
    Colour.CYAN: "blue",
    Colour.GREEN: "green",
    Colour.MAGENTA: "violet",
    Colour.DIM: "dim",
}
_WIDTH, _HEIGHT, _TOP, _BOTTOM = 300, 96, 16, 80
_STRIP_BAR, _STRIP_HEIGHT = 8, 20


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


def as_html(document: Document) -> str:
    """Return a page: the result, filters, then every block."""
    title = " ".join(cell.text for cell in document.heading)
    rows = [row for block in document.blocks if isinstance(block, Table) for row in block.rows]
    body = (
        f"<header><h1>{text(title)}</h1>\n<p>{_line(document.place)}</p>\n",
        f"<p><strong>{text(document.summary)}</strong></p></header>\n",
        *_filters([row for row in rows if row.state]),
        "<main>\n",
        *(part for block in document.blocks for part in _block(block)),
        *(f"<p>{marked(line)}</p>\n" for line in document.after if line),
        "</main>\n",
    )
    return page(title, body, style=_DOCUMENT_STYLE)


def _line(line: Line) -> str:
    return " ".join(map(_content, line))


def _filters(rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    signs = {row.state: row.sign for row in rows}
    boxes = (
        (state, f"<b>{count:,}</b> {signs[state]} {text(state.replace('-', ' '))}")
        for state, count in Counter(row.state for row in rows).items()
    )
    parents = sorted({row.parent for row in rows})
    lists = [("Project", "parent", parents)] if len(parents) > 1 else []
    yield from filters("State", boxes, lists)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Heading):
        yield f"<h2>{_line(block.line)}</h2>\n"
    elif isinstance(block, Table):
        yield from _table(block) if block.rows else ()
    elif isinstance(block, Facts):
        rows = "".join(
            f"<tr><th>{text(name)}</th>{_cell(cell)}</tr>\n" for name, cell in block.pairs
        )
        yield f"<table>\n<tbody>{rows}</tbody></table>\n" if rows else ""
    elif block.language:
        yield _code(block.lines)
    else:
        yield from (f"<p>{marked(line)}</p>\n" for line in block.lines)


def _code(lines: Sequence[str]) -> str:
    shown = "\n".join(map(text, lines))
    return f"<pre>{shown}</pre>\n"


def _table(table: Table) -> Iterator[str]:
    title = text(table.title.removesuffix(":"))
    if title:
        yield f"<details><summary>{title}</summary>\n" if table.folded else f"<h2>{title}</h2>\n"
    heads = "".join(f'<th scope="col">{text(column.title)}</th>' for column in table.columns)
    yield f"<table>\n<thead><tr><th></th>{heads}</tr></thead>\n"
    group = None
    for position, row in enumerate(table.rows):
        if row.group is not None and row.group != group:
            group = row.group
            name = f"{_line(group.name)} <small>{text(group.rest)}</small>"
            span = f'colspan="{len(table.columns) + 1}"'
            yield f'<tbody class="group"><tr><th {span}>{name}</th></tr></tbody>\n'
        yield from _row(row, table, with_charts=position < _MOST_CHARTS)
    yield "</table>\n"
    yield "</details>\n" if title and table.folded else ""


def _row(row: Row, table: Table, *, with_charts: bool) -> Iterator[str]:
    searched = " ".join((*(cell.text for cell in row.cells), row.parent)).casefold()
    attributes = f' data-state="{text(row.state)}" data-parents="{text(row.parent)}"'
    attributes += f' data-text="{text(searched)}"'
    yield f"<tbody{attributes if row.state else ''}>"
    sign = f'<td class="{_class(row.colour)}" title="{text(row.state)}">{text(row.sign)}</td>'
    labels = (column.title for column in table.columns)
    cells = "".join(_cell(cell, label) for cell, label in zip(row.cells, labels, strict=False))
    yield f"<tr>{sign}{cells}</tr>\n"
    about = "".join(f"<div>{marked(note)}</div>" for note in row.notes)
    if row.lines:
        about += _code(row.lines)
    charts = row.more() if with_charts else ()
    if charts:
        figures = "".join(map(_chart, charts))
        about += f'<details><summary>Charts</summary><div class="charts">{figures}</div></details>'
    if about:
        yield f'<tr class="notes"><td></td><td colspan="{len(table.columns)}">{about}</td></tr>\n'
    yield "</tbody>\n"


def _class(colour: Colour | None) -> str:
    return _CLASSES.get(colour, "") if colour is not None else ""


def _cell(cell: Cell, label: str = "") -> str:
    return f'<td class="{_class(cell.colour)}" data-label="{text(label)}">{_content(cell)}</td>'


def _content(cell: Cell) -> str:
    if cell.strip is not None and (bars := cell.strip()):
        return strip(bars)
    shown = f"<code>{text(cell.text)}</code>" if cell.code else text(cell.text)
    if cell.link is None or not cell.link.startswith(("https://", "http://")):
        return shown
    return f'<a href="{text(cell.link)}" rel="noreferrer">{shown}</a>'


def strip(bars: Sequence[Bar]) -> str:
    """Return bars as one small picture."""
    width = _STRIP_BAR * len(bars)
    shapes = "".join(_bars(bars, _STRIP_BAR, 0, _STRIP_HEIGHT))
    failed = sum(bar.kind == "bad" for bar in bars)
    label = f"{len(bars)} latest runs, {failed} failed"
    size = f'width="{width}" height="{_STRIP_HEIGHT}" viewBox="0 0 {width} {_STRIP_HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{label}">{shapes}</svg>'


def _chart(chart: Chart) -> str:
    """Return a titled picture with the largest value and the times of both ends."""
    most = max((bar.value or 0 for bar in chart.bars), default=0)
    first, last = map(text, chart.ends)
    return (
        f"<figure><figcaption>{text(chart.title)}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text(chart.title)}">'
        f'<text x="2" y="11">{text(chart.text(most))}</text>'
        f'<path class="axis" d="M0 {_BOTTOM}.5H{_WIDTH}"/>'
        f'<text x="2" y="{_HEIGHT - 4}">{first}</text>'
        f'<text x="{_WIDTH - 2}" y="{_HEIGHT - 4}" text-anchor="end">{last}</text>'
        f"{''.join(_bars(chart.bars, _WIDTH / max(len(chart.bars), 1), _TOP, _BOTTOM))}"
        "</svg></figure>"
    )


def _bars(bars: Sequence[Bar], step: float, top: int, bottom: int) -> Iterator[str]:
    most = max((bar.value or 0 for bar in bars), default=0)
    for position, bar in enumerate(bars):
        # A bar without a value is low, so that it is seen.
        height = max(2.0, (bottom - top) * bar.value / most) if bar.value and most else 3
        place = f'x="{position * step + 1:.1f}" y="{bottom - height:.1f}"'
        size = f'width="{step - 2:.1f}" height="{height:.1f}"'
        yield f'<rect class="{bar.kind}" {place} {size}><title>{text(bar.title)}</title></rect>'
