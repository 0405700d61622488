"""A report as a value: a heading, tables, facts and lines. Each report command builds one.

It is written as text and Markdown here, and as a page by `html.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, TypeAlias
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from reconciler.diagnostics import OfEnvironment
from reconciler.model.text import named, printable, safe_output, several, shortened
from reconciler.model.values import Address
from reconciler.render.options import PLAIN, Colour, RenderOptions, Style, padded, width_of

_MARGIN = 300
"""Characters of Markdown for the heads of tables and for the counts of what is missing."""
_LONGEST_LINE = 500
_LONGEST_NAME, _LONGEST_ADDRESS = 80, 48
"""In the first column of a table. An address is pasted into commands."""
_IN_ADDRESS = "%:/?#@!$&*+,;=~-._[]"
"""Signs of an address that end neither a link nor a cell."""

CODE = re.compile("`([^`]+)`")
_SPECIAL = re.compile(
    r"[\\`*\[\]#|~<>@$&]|:(?=\S)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|(?<=www)\."
    r"|!(?=\d)|%(?=[\w\"'])|(?<=\bGH)-(?=\d)|(?<=\b[0-9a-f]{39})[0-9a-f]\b",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[@#-]|[!$&](?=\d)|[%~](?=[\w\"'])")
"""The sign of a mention, or of a link to an issue, a merge request, a milestone or a label."""


class Bar(Struct, frozen=True):
    """A bar of a strip: its height, None for a run without one, `good`, `bad` or `open`."""

    value: float | None
    kind: str
    title: str


class Cell(Struct, frozen=True):
    """Text, or code. `strip` is what pages show instead of the text."""

    text: str
    colour: Colour | None = None
    code: bool = False
    link: str | None = None
    strip: tuple[Bar, ...] = ()


Line: TypeAlias = tuple[Cell, ...]


class Column(Struct, frozen=True):
    """A column, and what text has around its cells. Cells of a padded one have equal widths.

    `page_only`: neither text nor Markdown has it.
    """

    title: str
    before: str = "  "
    after: str = ""
    padded: bool = True
    page_only: bool = False


def unpadded(titles: Mapping[str, str]) -> tuple[Column, ...]:
    """Return columns without equal widths, by title, with what text has before their cells."""
    return tuple(Column(title, before, padded=False) for title, before in titles.items())


class Group(Struct, frozen=True):
    """What some rows are about, and more that only text says."""

    name: Line
    rest: str = ""
    sign: str = ""


class Row(Struct, frozen=True):
    """Cells, a sign before them, notes, and lines that are shown as they are.

    `state` and `parent` are what pages filter by.
    """

    cells: tuple[Cell, ...]
    sign: str = ""
    colour: Colour | None = None
    group: Group | None = None
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    state: str = ""
    parent: str = ""


class Table(Struct, frozen=True):
    """Rows of cells.

    headed, indent, below
        In text: whether there are headings, where lines begin, and where notes below them do.
    beside
        In text, notes are in the line of their row if there is space.
    wraps
        In text, the last column takes several lines. Notes do then, or if they are `beside`.
    optional
        The columns that a narrow terminal leaves out, the first one first.
    noun
        What a row is, for the count of those that do not fit into Markdown.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    headed: bool = True
    indent: int = 0
    below: int = 4
    beside: bool = False
    wraps: bool = False
    optional: tuple[int, ...] = ()
    noun: str = "row"


class Facts(Struct, frozen=True):
    """Names with values. `attached`: in text, no empty line is before them."""

    pairs: tuple[tuple[str, Cell], ...]
    indent: int = 2
    attached: bool = False


class Lines(Struct, frozen=True):
    """Lines of text. `language`: they are code, such as yaml or diff, and escaped already."""

    lines: tuple[str, ...]
    attached: bool = False
    language: str = ""


class Heading(Struct, frozen=True):
    """A line above the blocks of a part."""

    line: Line


Block: TypeAlias = Table | Facts | Lines | Heading


class Document(Struct, frozen=True):
    """A report: what it is about, its blocks, its result in a sentence, and notes below that.

    `where` is the first line of text. Without one, text begins with the blocks.
    """

    heading: Line
    where: Line = ()
    blocks: tuple[Block, ...] = ()
    summary: str = ""
    after: tuple[str, ...] = ()

    @property
    def place(self) -> Line:
        """The first line of text, unless the heading contains it."""
        return () if self.heading[-len(self.where) :] == self.where else self.where


def reports_document(
    title: str, reports: Sequence[OfEnvironment[Any]], document_of: Callable[[Any], Document]
) -> Document:
    """Return the documents of all environments as one."""
    documents = {
        item.environment: document_of(item.result) for item in reports if item.result is not None
    }
    parts = [block for item in reports for block in _part(item, documents.get(item.environment))]
    failed = Cell("error", Colour.RED)
    totals = tuple(
        (name, Cell(documents[name].summary) if name in documents else failed)
        for name in (item.environment for item in reports)
    )
    count = several(len(reports), "environment")
    failures = len(reports) - len(documents)
    heading = Heading((Cell(f"{count}, {failures} with an error" if failures else count),))
    end = heading, Facts(totals, attached=True)
    return Document((Cell(f"{title} of {count}"),), (), (*parts, *end))


def _part(item: OfEnvironment[Any], document: Document | None) -> Iterator[Block]:
    if document is None:
        yield Heading((Cell(f"Environment {item.environment}"),))
        yield Lines(tuple(f"error: {problem}" for problem in item.problems), attached=True)
        return
    yield Heading(document.where)
    yield from document.blocks
    yield Lines(tuple(filter(None, (document.summary, *document.after))))


def label_of(address: Address, name: str) -> str:
    """Return the address of a resource, or the name in quotes of what no resource claims."""
    if address.is_unmanaged:
        return named(shortened(name, _LONGEST_NAME))
    return shortened(str(address), _LONGEST_ADDRESS)


def without_terminal(options: RenderOptions, *, page: bool = False) -> RenderOptions:
    """Return the options of a document that no terminal shows. A page has everything."""
    return replace(options, style=PLAIN, verbose=options.verbose or page)


def as_text(document: Document, options: RenderOptions) -> str:
    """Return a report for a terminal."""
    style = options.style
    parts = [*_where(document.where, style)]
    for block in document.blocks:
        lines = list(_block(block, options))
        if lines and parts and not (isinstance(block, Facts | Lines) and block.attached):
            parts.append("")
        parts += lines
    end = [*filter(None, (document.summary, *document.after))]
    parts += ["", *map(printable, end)] if end and parts else map(printable, end)
    return "".join(f"{part}\n" for part in parts)


def _where(line: Line, style: Style) -> Iterator[str]:
    shown = _line(line, replace(style, colour=False))
    if width_of(shown) > style.width:
        yield from style.on_terminal(shown, "", " " * 4)
    elif line:
        yield _line(line, style)


def _line(line: Line, style: Style) -> str:
    return " ".join(style.paint(cell.colour, printable(cell.text)) for cell in line)


def _block(block: Block, options: RenderOptions) -> Iterator[str]:
    if isinstance(block, Heading):
        yield _line(block.line, options.style)
    elif isinstance(block, Lines):
        yield from block.lines if block.language else map(printable, block.lines)
    elif isinstance(block, Facts):
        yield from _facts(block, options.style)
    elif block.rows:
        yield from filter(None, (printable(block.title),))
        yield from _TextTable(block, options).lines()


def _facts(facts: Facts, style: Style) -> Iterator[str]:
    width = max((width_of(printable(name)) for name, _ in facts.pairs), default=0)
    for name, cell in facts.pairs:
        prefix = f"{' ' * facts.indent}{padded(printable(name), width)}  "
        value = printable(cell.text)
        first, *more = style.wrapped(value, prefix, " " * len(prefix)) or [prefix]
        yield (prefix + style.paint(cell.colour, first[len(prefix) :])).rstrip()
        yield from more


class _TextTable:
    """A table as lines of text."""

    def __init__(self, table: Table, options: RenderOptions) -> None:
        self.table, self.style, self.links = table, options.style, options.links
        self.grid = [[printable(cell.text) for cell in row.cells] for row in table.rows]
        self.margin = table.indent + 2 * any(row.sign for row in table.rows)
        rows = [[column.title for column in table.columns], *self.grid]
        sized = rows if table.headed else self.grid
        self.widths = [max(map(width_of, cells)) for cells in zip(*sized, strict=True)]
        self.shown = [n for n, column in enumerate(table.columns) if not column.page_only]
        note = len("note") if table.beside and table.headed else -2
        for place in table.optional:
            if self.margin + sum(self.widths[n] + 2 for n in self.shown) + note <= self.style.width:
                break
            self.shown.remove(place)

    def lines(self) -> Iterator[str]:
        """Yield the headings and the rows, below the line of their group."""
        if self.table.headed:
            titles = [Cell(column.title) for column in self.table.columns]
            note = "  note" if self.table.beside else ""
            head = f"{' ' * self.margin}{self._cells(titles)}{note}"
            yield self.style.paint(Colour.DIM, head.rstrip())
        for position, (group, rows) in enumerate(groupby(self.table.rows, attrgetter("group"))):
            if group is not None:
                yield from [""] if position else []
                sign = f"  {self.style.paint(Colour.YELLOW, group.sign)} " if group.sign else ""
                yield f"{sign}{_line(group.name, self.style)}{printable(group.rest)}"
            for row in rows:
                yield from self._row(row)

    def _row(self, row: Row) -> Iterator[str]:
        sign = f"{self.style.paint(row.colour, row.sign)} " if row.sign else ""
        start = f"{' ' * self.table.indent}{sign}"
        notes = [printable(note) for note in row.notes if note]
        beside = "; ".join(notes)
        plain = f"{' ' * self.margin}{self._cells(row.cells, painted=False)}"
        if self.table.wraps:
            yield from self._wrapped(row, start)
        elif self.table.beside and width_of(f"{plain}  {beside}") <= self.style.width:
            yield f"{start}{self._cells(row.cells)}  {beside}".rstrip()
            notes = []
        else:
            yield f"{start}{self._cells(row.cells)}".rstrip()
            notes = [beside] if self.table.beside else notes
        below = " " * (self._last_column() if self.table.wraps else self.table.below)
        for note in notes:
            yield from self.style.wrapped(note, below, below)
        yield from (f"{' ' * (self.table.indent + 2)}{printable(line)}" for line in row.lines)
        links = [cell.link for cell in row.cells if cell.link and self.links]
        yield from (f"{below}{printable(link)}" for link in links)

    def _last_column(self) -> int:
        return self.margin + sum(self.widths[place] + 2 for place in self.shown[:-1])

    def _wrapped(self, row: Row, start: str) -> Iterator[str]:
        head = self._cells(row.cells[:-1])
        indent = " " * self._last_column()
        # A message of several lines is one paragraph here.
        text = " ".join(row.cells[-1].text.split())
        lines = self.style.wrapped(printable(text), indent, indent)
        first = lines[0][len(indent) :] if lines else ""
        yield f"{start}{head}  {first}".rstrip()
        yield from lines[1:]

    def _cells(self, cells: Sequence[Cell], *, painted: bool = True) -> str:
        line = ""
        for place in [n for n in self.shown if n < len(cells)]:
            cell, column = cells[place], self.table.columns[place]
            text = printable(cell.text)
            if text or column.padded:
                space = self.widths[place] - width_of(text) if column.padded else 0
                shown = self.style.paint(cell.colour, text) if painted else text
                line += (column.before if line else "") + shown + (column.after if text else "")
                line += " " * space
        return line


def as_markdown(document: Document, options: RenderOptions) -> str:
    """Return a report for a comment of a forge. Rows that do not fit are counted."""
    head = [f"### {_marked(document.heading)}"]
    head += ["", _marked(document.place)] if document.place else []
    head += ["", f"**{short_markup(document.summary)}**"] if document.summary else []
    end = [line for text in document.after if text for line in ("", short_markup(text))]
    pieces = [*filter(None, (_piece(block, options) for block in document.blocks))]
    used = [*head, *end, *(line for piece in pieces for line in (*piece.before, *piece.after))]
    space = options.limit - sum(len(line) + 1 for line in used) - _MARGIN
    body: list[str] = []
    for piece in pieces:
        kept, missing = within(piece.rows, space)
        space -= sum(len(line) + 1 for line in kept)
        body += [*piece.before, *kept, *piece.after]
        if missing:
            body += ["", f"… and {missing:,} more {piece.noun}{'s' if missing > 1 else ''}"]
    return "".join(f"{line}\n" for line in [*head, *body, *end])


def _marked(line: Line) -> str:
    shown = ((cell.code, shortened(cell.text, _LONGEST_LINE)) for cell in line if cell.text)
    return " ".join((code if is_code else inline)(text) for is_code, text in shown)


class _Piece(Struct, frozen=True):
    """A block as lines: those around its rows, and what a row is. Rows may be left out."""

    rows: Iterator[str] = iter(())
    before: Sequence[str] = ()
    after: Sequence[str] = ()
    noun: str = "line"


def _piece(block: Block, options: RenderOptions) -> _Piece | None:
    """Return a block as lines, None for an empty one."""
    if isinstance(block, Heading):
        return _Piece(before=("", f"#### {_marked(block.line)}"))
    if isinstance(block, Table):
        return _table_piece(block, options) if block.rows else None
    if isinstance(block, Facts):
        rows = (f"| {inline(name)} | {_markdown_cell(cell)} |" for name, cell in block.pairs)
        return _Piece(rows, ("", "| | |", "|---|---|")) if block.pairs else None
    if not block.lines:
        return None
    if block.language:
        fence = "`" * (3 + max((line.count("`") for line in block.lines), default=0))
        return _Piece(iter(block.lines), ("", f"{fence}{block.language}"), (fence,))
    return _Piece((f"{short_markup(line)}  " for line in block.lines), ("",))


def _table_piece(table: Table, options: RenderOptions) -> _Piece:
    title = inline(table.title.removesuffix(":"))
    before = ["", f"**{title}**"] if title else []
    signed, noted = (any(getattr(row, name) for row in table.rows) for name in ("sign", "notes"))
    titles = [""] * signed + ["resource"] * any(row.group for row in table.rows)
    titles += [column.title for column in table.columns if not column.page_only]
    titles += ["note"] * noted
    before += ["", _cells_line(map(inline, titles)), "|" + "---|" * len(titles)]
    return _Piece(_rows(table, options, signed=signed, noted=noted), before, noun=table.noun)


def _rows(table: Table, options: RenderOptions, *, signed: bool, noted: bool) -> Iterator[str]:
    for row in table.rows:
        cells = [row.sign] if signed else []
        cells += [_marked(row.group.name)] if row.group is not None else []
        cells += [
            _markdown_cell(cell, links=options.links)
            for cell, column in zip(row.cells, table.columns, strict=True)
            if not column.page_only
        ]
        yield _cells_line([*cells, *([marked_up("; ".join(row.notes))] if noted else [])])


def _cells_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell, *, links: bool = False) -> str:
    text = (code if cell.code else inline)(cell.text)
    if not (links and cell.link):
        return text
    return link(text, cell.link)


def link(text: str, page: str) -> str:
    """Return a link with marked up text. Nothing in the address ends it or begins a title."""
    return f"[{text}]({quote(page, safe=_IN_ADDRESS)})"


def marked_up(text: str) -> str:
    """Return a message, in which text between backticks is code."""
    pieces = CODE.split(printable(text))
    # Something separates two pieces of code: adjacent backticks would not end the first.
    between = range(1, len(pieces) - 1)
    return "".join(
        (code(piece) if at % 2 else inline(piece) or ("&#8203;" if at in between else ""))
        for at, piece in enumerate(pieces)
    )


def short_markup(text: str) -> str:
    """Return a message as `marked_up` does, shortened to a line."""
    return marked_up(shortened(text, _LONGEST_LINE))


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
