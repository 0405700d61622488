"""Write what is generated from schemas and commands: pages of docs/, and schemas/editor/.

Run it after every change of a schema or an option. Pages are committed, and a test compares them;
schemas/editor/ is not: hatch_build.py writes it for an installed package.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from posixpath import relpath
from textwrap import dedent, fill
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reconciler.errors import codes  # noqa: E402
from reconciler.kinds import all_kinds, behaviour_of  # noqa: E402
from reconciler.kinds.behaviour import KnownRefusal, Rule  # noqa: E402
from reconciler.model.kind import Kind  # noqa: E402
from reconciler.model.plan import Effect, Severity  # noqa: E402
from reconciler.model.schemas import known_schema  # noqa: E402 - found beside this folder
from scripts.command_pages import command_pages, title_of  # noqa: E402
from scripts.editor_schemas import (  # noqa: E402
    editor_files,
    servers_of,
    tags_of,
    typed_fields,
    types_in,
)
from tests.corpus.cases import CASES  # noqa: E402

Schema = dict[str, Any]

_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "array": "list",
    "object": "mapping",
    "null": "null",
}
_REPORT = re.compile(r"^\S.* \[([a-z0-9-]+)\]\n((?: .*\n)*)", re.MULTILINE)
_SHOWN = re.compile(r"^ *(?:\d+ \|.*|\^+)\n", re.MULTILINE)
_NOTE = "<!-- Generated from schemas/ by scripts/reference.py: change it there. -->\n"
_DIAGNOSTICS_HEAD = """\
<!-- Generated from reconciler/codes.toml and tests/corpus/ by scripts/reference.py. -->

# Diagnostics

What every command reports about files. Codes are stable.
"""
_CONSEQUENCES_HEAD = """\
<!-- Generated from reconciler/kinds/ by scripts/reference.py: change it there. -->

# Consequences and known refusals

A plan shows what follows from each change. Ids are stable: `policy.deny` makes a consequence a
refusal.

A change that this version of the server is known to refuse is a policy violation: nothing is sent.
If the server accepts it nevertheless, name the id in `policy.attempt`, or omit the resource with
`--exclude`.
"""
_RANKING_HEAD = """
Plans show dangers first, then warnings, then notes; those of one severity in this order. A rule may
rank a change higher: another bucket ranks above another prefix.

"""
_REFUSALS_HEAD = "### Known refusals\n"
_DECISIONS_HEAD = """
### Fields

Which fields can have a consequence. Others affect only pages of the service.

| consequence | fields |
|---|---|
"""
_SEVERITIES = {Severity.DANGER: "danger", Severity.WARNING: "warning", Severity.INFO: "note"}
_SAME_AT_TOP = ("policy", "client")
"""Fields of an environment with the same fields as those of the workspace."""
_HEAD = "| field | takes | |\n|---|---|---|\n"


def generated(kinds: Sequence[Kind]) -> Mapping[str, str]:
    """Return the text of every generated page by its path in the repository."""
    files = {"docs/reference/workspace.md": _page("workspace", "`reconciler.yaml`")}
    files["docs/reference/match.md"] = _page("policy/match", "The `match` of a rule of the policy.")
    for kind in kinds:
        where = f"An entry of `{kind.collection}:` in a resource file."
        files[f"docs/reference/{kind.name}.md"] = _page(kind.name, where)
        for field, node in typed_fields(kind).items():
            page = _types_page(kind, field, node)
            files[f"docs/reference/{node['x-variants']['folder']}.md"] = page
    files["docs/consequences.md"] = _consequences_page(kinds)
    files["docs/reference/diagnostics.md"] = _diagnostics_page()
    files["docs/reference/README.md"] = _index(files)
    return {**files, **command_pages()}


def _consequences_page(kinds: Sequence[Kind]) -> str:
    """Return the page of every rule and known refusal, with its meaning."""
    parts = [_CONSEQUENCES_HEAD, *_ranking(kinds)]
    for kind in reversed(kinds):
        parts.append(f"\n## {known_schema(kind.name)['title']}s\n")
        rules, refusals = behaviour_of(kind).rules, behaviour_of(kind).refusals
        parts += (_rule_entry(rule, f" ({_severity(rule)})") for rule in rules)
        if kind.name == "project":
            parts += _decisions(kind)
        if refusals:
            parts.append(f"\n{_REFUSALS_HEAD}")
            parts += (_rule_entry(refusal, "") for refusal in refusals)
    return "".join(parts)


def _decisions(kind: Kind) -> Iterator[str]:
    """Yield a table of the rules about fields of projects, with these fields."""
    yield _DECISIONS_HEAD
    for rule in behaviour_of(kind).rules:
        fields = [field.name for field in kind.fields if (field.name,) in rule.of]
        if fields:
            yield f"| `{rule.id}` | {_quoted(fields)} |\n"


def _ranking(kinds: Sequence[Kind]) -> Iterator[str]:
    """Yield all consequences by what they do to data, then by severity."""
    yield _RANKING_HEAD
    for effect in Effect:
        ranked = sorted(
            (rule.severities[0].rank, rule.id)
            for kind in kinds
            for rule in behaviour_of(kind).rules
            if rule.effect is effect
        )
        item = f"- {effect.meaning} {_quoted(rule_id for _, rule_id in ranked)}"
        yield f"{_filled(item, '  ')}\n"


def _severity(rule: Rule) -> str:
    return " or ".join(_SEVERITIES[level] for level in rule.severities)


def _rule_entry(rule: Rule | KnownRefusal, label: str) -> str:
    """Return the item of a rule: its id, when it applies, why, and what to do."""
    item = f"**`{rule.id}`**{label}: {' '.join(rule.meaning.split())}"
    return f"\n{_filled(item)}\n"


def _filled(text: str, indent: str = "") -> str:
    return fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _diagnostics_page() -> str:
    """Return the page of every code with its meaning, its fix and the shortest example."""
    examples = _examples()
    parts = [_DIAGNOSTICS_HEAD]
    for code, known in sorted(codes().items()):
        parts.append(f"\n## {code}\n\n{known.title}. {known.help}\n")
        if code in examples:
            parts.append(f"\n```text\n{examples[code]}```\n")
    return "".join(parts)


def _examples() -> dict[str, str]:
    """Return by code the shortest place that the corpus shows for this diagnostic."""
    texts: dict[str, str] = {}
    for case in CASES:
        for code, body in _REPORT.findall(case.expected):
            # The place only: the message and the fix are in the text above it.
            shown = _without_numbers("".join(_SHOWN.findall(body)))
            if shown and _is_plain(shown) and len(shown) < len(texts.get(code, shown + " ")):
                texts[code] = shown
    return texts


def _without_numbers(shown: str) -> str:
    """Return lines of a file without their numbers and the indentation that all share."""
    width = len(next(iter(re.findall(r"^ *\d+ \| ", shown, re.MULTILINE)), ""))
    return dedent("".join(line[width:] for line in shown.splitlines(keepends=True)))


def _is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.splitlines()) and "```" not in text


def _index(files: Mapping[str, str]) -> str:
    lines = [
        f"- [{title_of(text)}]({relpath(name, 'docs/reference')})\n" for name, text in files.items()
    ]
    return (
        f"{_NOTE}\n# Reference\n\n"
        f"{''.join(lines)}\n"
        "`reconciler init --schemas` writes schemas for editors.\n\n"
        "Servers: `interface` is as documented; `2025` keeps credentials in the "
        "destination, `2026` in\nintegrations. Fields without *Servers* exist on all.\n"
    )


def _page(name: str, where: str) -> str:
    node = known_schema(name)
    return (
        f"{_NOTE}\n# {node['title']}\n\n{node['description']} {where}\n\n"
        f"{_HEAD}{''.join(_rows(node, ''))}"
    )


def _types_page(kind: Kind, field: str, typed: Schema) -> str:
    names, folder = typed["x-variants"], typed["x-variants"]["folder"]
    text = (
        f"{_NOTE}\n# {folder.capitalize()} of a {known_schema(kind.name)['title'].lower()}\n\n"
        f"What `{field}.{names['body']}` takes, by `{field}.{names['tag']}`. Secrets are references"
        " such as\n"
        "`${secret:env:NAME}`; the service never returns their values.\n"
    )
    first: dict[str, str] = {}
    for tag in tags_of(typed):
        node = known_schema(f"{folder}/{tag}")
        text += f"\n## {tag}\n\n{node['description']} {servers_of(node)}".rstrip() + "\n"
        rows = list(_rows(node, ""))
        own = [row for row in rows if first.setdefault(row, tag) == tag]
        text += f"\n{_HEAD}{''.join(own)}" if own else ""
        text += "".join(f"\n{rule}\n" for rule in (*_as_above(rows, first, tag), *_rules(node)))
    return text


def _as_above(rows: Sequence[str], first: Mapping[str, str], tag: str) -> Iterator[str]:
    """Yield the names of fields that are as those of a type above, instead of their rows."""
    for other in dict.fromkeys(first[row] for row in rows if first[row] != tag):
        names = [row.split("`", 2)[1] for row in rows if first[row] == other]
        yield f"As in [{other}](#{other.lower()}): {_quoted(names)}."


def _rules(node: Schema) -> Iterator[str]:
    """Yield the rules of a type that no description of a field says."""
    if needed := node.get("x-required-unless"):
        verb = "is" if len(needed) == 1 else "are"
        yield f"Without an `integration`, {_quoted(needed)} {verb} needed too."


def _rows(node: Schema, prefix: str) -> Iterator[str]:
    """Yield the rows of fields, without those that a field of the same name has at the top."""
    required = node.get("required", ())
    for name, below in node.get("properties", {}).items():
        path = f"{prefix}{name}"
        must = " **required**" if name in required else ""
        yield f"| `{path}`{must} | {_takes(below)}{_default(below)} | {_text(below)} |\n"
        if not (prefix and name in _SAME_AT_TOP):
            yield from _rows(below, f"{path}.")
        inside = below.get("additionalProperties")
        if isinstance(inside, dict):
            yield from _rows(inside, f"{path}.*.")
        items = below.get("items")
        if isinstance(items, dict):
            yield from _rows(items, f"{path}[].")


def _takes(node: Schema) -> str:
    if "enum" in node:
        return " or ".join(f"`{value}`" for value in node["enum"])
    if "const" in node:
        return f"`{json.dumps(node['const'])}`"
    words = [_WORDS[type_name] for type_name in types_in(node)]
    items = node.get("items")
    if isinstance(items, dict) and isinstance(items.get("type"), str):
        words = [f"{word} of {_WORDS[items['type']]}" if word == "list" else word for word in words]
    text = ", ".join(words)
    if "minimum" in node and "maximum" in node:
        text += f" ({node['minimum']} to {node['maximum']})"
    elif "minimum" in node:
        text += f" ({node['minimum']} or more)"
    elif "maxLength" in node:
        text += f" ({node['maxLength']} characters at most)"
    return text


def _default(node: Schema) -> str:
    return f"; default `{json.dumps(node['default'])}`" if "default" in node else ""


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _text(node: Schema) -> str:
    parts = [str(node.get("description", ""))]
    if node.get("x-secret"):
        parts.append("**Secret**.")
    for key, label in (("x-open-enum", "Known"), ("x-feature-flag", "Behind a feature flag")):
        if node.get(key):
            parts.append(f"{label}: {_quoted(node[key])}.")
    if "x-not-imported" in node:
        parts.append(f"`import` leaves it out: {node['x-not-imported']}.")
    return " ".join([*parts, servers_of(node)]).rstrip().replace("|", "\\|")


def main() -> None:
    """Write the pages and the schemas for editors."""
    kinds = all_kinds()
    for name, text in {**generated(kinds), **editor_files(kinds)}.items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
