"""The use case `explain`: look up a name in the generated reference. Reads no workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from reconciler.errors import BadUsage
from reconciler.kinds import all_kinds
from reconciler.model.address import nearest
from reconciler.model.schemas import known_schema
from reconciler.packaged import packaged

_ROW = re.compile(r"\| `(?P<name>[^`]+)`(?P<must>[^|]*)\| (?P<facts>.*) \|")
_RULE = re.compile(r"\*\*`(?P<name>[\w-]+)`\*\*(?P<text>.*)", re.DOTALL)
_CELL = re.compile(r" *(?<!\\)\| *")


class Entry(Struct, frozen=True):
    """What the reference says about a name. `facts` are the type, the default and the servers."""

    name: str
    text: str
    facts: Mapping[str, str] = {}


def explain(name: str) -> tuple[Entry, ...]:
    """Return the entries of a field, a code or a rule, each with those below it.

    The beginning of a path may be missing. Raises BadUsage for an unknown name.
    """
    known = _reference()
    wanted = name if name in known else re.sub(r"\benvironments\.[^.]+", "environments.*", name)
    names = [wanted] if wanted in known else [item for item in known if _ends(item, wanted)]
    below = [item for item in known if any(item.startswith(f"{top}.") for top in names or [wanted])]
    if not names and not below:
        words = {full: full for full in known} | {full.rpartition(".")[2]: full for full in known}
        close = nearest(name, words)
        hint = f"did you mean '{words[close]}'?" if close else "see docs/reference/"
        raise BadUsage(f"unknown name '{name}'", hint=hint)
    return tuple(known[item] for item in (*names, *below))


def overview() -> tuple[str, ...]:
    """Return the first words of the paths of fields."""
    fields = (name for name, entry in _reference().items() if entry.facts)
    return tuple(dict.fromkeys(name.partition(".")[0] for name in fields))


def _ends(full: str, wanted: str) -> bool:
    return full.endswith(f".{wanted}") and not full.startswith("environments.*.policy")


@cache
def _reference() -> Mapping[str, Entry]:
    entries = [
        entry for name, top in _pages() for entry in _fields(_text(f"reference/{name}"), top)
    ]
    entries += _sections(_text("reference/diagnostics"))
    entries += _rules(_text("consequences"))
    return {entry.name: entry for entry in entries}


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
            takes, default, servers, text = _CELL.split(row["facts"], 3)
            must = ", required" if "required" in row["must"] else ""
            facts = {"type": f"{takes}{must}", "default": default, "servers": servers}
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
