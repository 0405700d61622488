"""`reconciler explain`: what the generated reference says about a name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

import click
from msgspec import Struct

from reconciler.commands.command import command, refuse_removed
from reconciler.commands.process import write_result
from reconciler.commands.program import COMMANDS
from reconciler.commands.screen import style_of
from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.schemas import known_schema
from reconciler.model.text import plain_name
from reconciler.packaged import packaged
from reconciler.render.options import Colour, Style

_ROW = re.compile(r"\| `(?P<name>[^`]+)`(?P<must>[^|]*)\| (?P<facts>.*) \|")
_RULE = re.compile(r"\*\*`(?P<name>[\w-]+)`\*\*(?P<text>.*)", re.DOTALL)
_MOST_SIMILAR = 3
_SIMILAR = 0.75
"""How many suggestions there are, and how similar they are at least."""
_CODES = re.compile(r"- (?P<names>`[\w-]+`(?:, `[\w-]+`)*): (?P<text>.*)")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
_CELL = re.compile(r" *(?<!\\)\| *")


@command(
    "explain",
    examples=(
        ("explain batch_export.destination.S3.prefix", "A field: type, default, servers"),
        ("explain policy", "What the policy of an environment can set"),
        ("explain history-lost", "A consequence"),
    ),
    page="docs/troubleshooting.md",
)
@click.argument("name", required=False, metavar="[NAME]")
def explain_command(name: str | None) -> None:
    """Print what the reference says about a field, a code, a consequence or a known refusal.

    NAME is a path of fields such as batch_export.destination.S3.prefix or policy.prune, or its end,
    or a code or id. Without NAME, list the first words of paths. Needs no workspace and no network.
    """
    if name is None:
        fields = (path for path, entry in _reference().items() if entry.facts)
        words = dict.fromkeys(path.partition(".")[0] for path in fields)
        write_result("".join(f"{word}\n" for word in words))
        return
    style = style_of(sys.stdout)
    entries = ("\n".join(_lines(entry, style)) for entry in explain(name))
    write_result("\n".join(entries) + "\n")


def _lines(entry: Entry, style: Style) -> Iterator[str]:
    yield style.paint(Colour.BOLD, entry.name)
    for paragraph in entry.text.split("\n"):
        yield from style.wrapped(paragraph, "  ", "  ") or [""]
    for name, text in entry.facts.items():
        yield from style.wrapped(text, f"  {name:7}  ", " " * 11) if text else ()


class Entry(Struct, frozen=True):
    """What the reference says about a name. `facts` are the type and the default."""

    name: str
    text: str
    facts: Mapping[str, str] = {}


def explain(name: str) -> tuple[Entry, ...]:
    """Return the entries of a field, a code or a rule, each with those below it.

    The beginning of a path may be missing. Raises BadUsage for an unknown name.
    """
    known = _reference()
    wanted = name if name in known else re.sub(r"\benvironments\.[^.]+", "environments.*", name)
    # These have the fields of those of the workspace.
    wanted = re.sub(r"^environments\.\*\.(policy|client)\.", r"\1.", wanted)
    names = [wanted] if wanted in known else [item for item in known if item.endswith(f".{wanted}")]
    below = [item for item in known if any(item.startswith(f"{top}.") for top in names or [wanted])]
    if not names and not below:
        refuse_removed(name, "words", "commands", "options")
        close = " or ".join(_similar(wanted, known))
        hint = f"did you mean {close}?" if close else "see docs/reference/"
        raise BadUsage(f"unknown name '{name}'", hint=hint)
    return tuple(known[item] for item in (*names, *below))


def _similar(name: str, known: Iterable[str]) -> Sequence[str]:
    """Return what is probably intended: ends of paths, their first words, and commands."""
    from difflib import get_close_matches

    words = {name: f"`reconciler {name} --help`" for name in COMMANDS}
    for full in known:
        parts = full.split(".")
        words.setdefault(plain_name(parts[0]), f"'{parts[0]}'")
        for first in range(len(parts)):
            words.setdefault(plain_name(".".join(parts[first:])), f"'{full}'")
    wanted = plain_name(name)
    if wanted in words:
        return [words[wanted]]
    alike = [word for word in words if word.count(".") == wanted.count(".")]
    longer = [word for word in alike if word.startswith(wanted)]
    close = get_close_matches(wanted, alike, _MOST_SIMILAR, _SIMILAR)
    return [*dict.fromkeys(words[word] for word in (*longer, *close))][:_MOST_SIMILAR]


@cache
def _reference() -> Mapping[str, Entry]:
    entries = [
        entry for name, top in _pages() for entry in _fields(_text(f"reference/{name}"), top)
    ]
    entries += _sections(_text("reference/diagnostics"))
    entries += _rules(_text("consequences"))
    known = {entry.name: entry for entry in entries}
    ends = {name.rpartition(".")[2] for name in known}
    codes = {entry.name: entry for entry in _codes(_text("glossary")) if entry.name not in ends}
    return {**known, **codes}


def _pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of fields, with what is before the names on them."""
    yield "workspace", ""
    yield "match", "policy.rules.*.match."
    for kind in all_kinds():
        yield kind.name, f"{kind.name}."
        for field, _ in kind.variants:
            folder = known_schema(kind.name)["properties"][field.name]["x-variants"]["folder"]
            yield folder, f"{kind.name}.{field.name}."


def _text(page: str) -> str:
    return (packaged("docs") / f"{page}.md").read_text(encoding="utf-8")


def _fields(page: str, top: str) -> Iterator[Entry]:
    """Yield the fields of a page, and its sections, which are types of destinations."""
    prefix = top
    for line in page.splitlines():
        if line.startswith("## "):
            prefix = f"{top}{line[3:]}."
        elif (row := _ROW.fullmatch(line)) is not None:
            takes, text = _CELL.split(row["facts"], 1)
            takes, _, default = takes.partition("; default ")
            must = ", required" if "required" in row["must"] else ""
            facts = {"type": f"{takes}{must}", "default": default}
            yield Entry(f"{prefix}{row['name']}", text, facts)
    yield from (Entry(f"{top}{item.name}", item.text) for item in _sections(page))


def _sections(page: str) -> Iterator[Entry]:
    for section in page.split("\n## ")[1:]:
        name, _, text = section.partition("\n")
        yield Entry(name, text.partition("\n|")[0].strip())


def _rules(page: str) -> Iterator[Entry]:
    for paragraph in page.split("\n\n"):
        if (rule := _RULE.fullmatch(paragraph.strip())) is not None:
            yield Entry(rule["name"], " ".join(rule["text"].removeprefix(":").split()))


def _codes(page: str) -> Iterator[Entry]:
    """Yield the codes of notes and violations. Fields of the same names have more to say."""
    for row in filter(None, map(_CODES.fullmatch, page.splitlines())):
        text = _LINK.sub(r"\1", row["text"])
        yield from (Entry(name, text) for name in re.findall(r"`([^`]+)`", row["names"]))
