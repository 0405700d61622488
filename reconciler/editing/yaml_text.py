"""Write values and resources as YAML text that the strict loader reads back unchanged.

PyYAML quotes text that is ambiguous in YAML 1.1. Text that is ambiguous in 1.2 is quoted here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
import yaml

from reconciler.diagnostics import DiagnosticCollector
from reconciler.files.references import escaped
from reconciler.files.yaml_document import MAPPING_TAG, SEQUENCE_TAG, TEXT_TAG
from reconciler.files.yaml_loader import parse
from reconciler.model.text import COMMAND, misleading, safe_output
from reconciler.model.values import JSON, SecretRef, map_leaves

_WIDEST_LIST = 70
_SHORT = 1000
_LARGE = 2**53
"""From here on, YAML and JSON of other programs lose digits."""
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_AMBIGUOUS = re.compile(
    r"[-+]?[0-9.][0-9a-fA-FoxXeE._:+-]*|[yYnN]|[~=]|.*\s|\s.*|.*[#:].*|[“„‘‚”’«].*",
    re.DOTALL,
)
"""Text that is always quoted: it looks like a number, or contains a YAML indicator."""
_PLAIN = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(:\d+)?(/[A-Za-z0-9./_~-]*)?"
)
"""Timestamps, UUIDs and URLs, which are never ambiguous and need no quotes."""
_NO_BLOCK = re.compile(r"^\s|[ \t]\n|\s\Z(?<!\n)|\n\n\Z")
"""Whitespace that a block scalar would lose, or mix with the empty lines below it."""


class _Strict(yaml.SafeDumper):
    """Indents lists below their key, and quotes ambiguous text."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's signature
        del indentless
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = None
    # A difference of files cannot show a line that begins with a command as it is.
    if not value.replace("\n", "").isprintable() or safe_output(value) != value:
        style = '"'
    elif "\n" in value and not _NO_BLOCK.search(value):
        style = "|"
    elif _AMBIGUOUS.fullmatch(value) and not _PLAIN.fullmatch(value):
        style = "'" if value.isprintable() else '"'
    return dumper.represent_scalar(TEXT_TAG, value, style=style)


def _reference(dumper: yaml.SafeDumper, value: SecretRef) -> yaml.Node:
    return dumper.represent_scalar(TEXT_TAG, str(value))


def _list(dumper: yaml.SafeDumper, value: list[JSON]) -> yaml.Node:
    short = all(isinstance(item, (str, int, float, bool)) for item in value)
    return dumper.represent_sequence(SEQUENCE_TAG, value, flow_style=short and _is_short(value))


def _mapping(dumper: yaml.SafeDumper, value: dict[str, JSON]) -> yaml.Node:
    return dumper.represent_mapping(MAPPING_TAG, value.items(), flow_style=not value)


# The loader reads a timestamp as text, as YAML 1.2 does.
_Strict.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in forms if not tag.endswith(":timestamp")]
    for first, forms in yaml.SafeDumper.yaml_implicit_resolvers.items()
}
_Strict.add_representer(str, _text)
_Strict.add_representer(SecretRef, _reference)
_Strict.add_representer(list, _list)
_Strict.add_representer(dict, _mapping)


def yaml_text(value: JSON) -> str:
    """Return the text in block style, keys in the order of the mapping, indented by two."""
    text: str = yaml.dump(
        value,
        Dumper=_Strict,
        sort_keys=False,
        allow_unicode=True,
        width=100_000,
        default_flow_style=False,
    )
    return _readable(text)


def _is_short(values: Sequence[JSON]) -> bool:
    return sum(len(str(item)) + 4 for item in values) <= _WIDEST_LIST


def yaml_item(text: str) -> str:
    """Return a text as an item of a list in flow style, which is correct anywhere in a line."""
    line = yaml_text([text]).strip()
    return line[1:-1] if line.startswith("[") else _readable(orjson.dumps(text).decode())


def flow_text(value: JSON) -> str:
    """Return a value in flow style, which is correct anywhere in a line."""
    if isinstance(value, dict):
        members = (f"{yaml_item(name)}: {flow_text(item)}" for name, item in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow_text, value))}]"
    return yaml_item(value) if isinstance(value, str) else orjson.dumps(value).decode()


def _readable(text: str) -> str:
    """Return YAML without commands of CI runners, invisible and misleading characters.

    Text with them is in double quotes.
    """
    if not text.isascii():
        places = misleading(text)
        text = "".join(
            _escape(character)
            if character != "\n" and (number in places or not character.isprintable())
            else character
            for number, character in enumerate(text)
        )
    return COMMAND.sub(r"\\x23", text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


def reads_back(value: JSON) -> bool:
    """Return whether the text of a value is read back as that value, without a diagnostic."""
    if _surely_reads_back(value):
        return True
    problems, written = DiagnosticCollector(), escaped(value)
    try:
        document = parse(yaml_text(written).encode(), "", problems)
    except (yaml.YAMLError, UnicodeEncodeError):
        return False
    read_back = map_leaves(written, lambda leaf: str(leaf) if isinstance(leaf, SecretRef) else leaf)
    return not problems.diagnostics and document.value == read_back


def _surely_reads_back(value: JSON) -> bool:
    """Return True for plain values, for which no text needs to be written and read."""
    form = value.__class__
    if form is str:
        text = str(value)
        return len(text) <= _SHORT and text.isascii() and text.isprintable()
    if form is dict:
        return all(_NAME.fullmatch(name) and _surely_reads_back(value[name]) for name in value)
    if form is list:
        return all(map(_surely_reads_back, value))
    if form is int:
        return abs(int(value)) < _LARGE
    return value is None or form is bool or form is SecretRef
