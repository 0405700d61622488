"""Rewrite queries as servers up to 2025 do, and refuse what servers refuse (service.md, 1.9).

The rewriting upper-cases keywords, collapses whitespace and writes operators as functions:
`select toInt(1+1) as n from events` becomes `SELECT toInt(plus(1, 1)) AS n FROM events`. Its parser
knows a part of the language. `check_parsable` and `check_on_events` know less and refuse only what
no parser of the service accepts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise

_SKIPPED = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*", re.DOTALL)
"""Whitespace and comments."""
_LEXEME = re.compile(
    r"(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<word>[A-Za-z_$][\w$]*|`[^`]*`)|(?P<sign>!=|<>|<=|>=|\|\||[-+*/%<>=(),.\[\]]))"
)
_OPERATORS = (
    {"or": "or"},
    {"and": "and"},
    {
        "=": "equals",
        "!=": "notEquals",
        "<>": "notEquals",
        "<": "less",
        ">": "greater",
        "<=": "lessOrEquals",
        ">=": "greaterOrEquals",
        "like": "like",
        "in": "in",
    },
    {"+": "plus", "-": "minus", "||": "concat"},
    {"*": "multiply", "/": "divide", "%": "modulo"},
)
_REFUSED = {
    "join": "JOINs are not supported",
    "union": "UNIONs are not supported",
    "with": "Subqueries or CTEs are not supported",
}
_FIELDS = frozenset(
    {"uuid", "event", "properties", "timestamp", "team_id", "distinct_id", "elements_chain"}
    | {"created_at", "$session_id", "$session_id_uuid", "$window_id", "person_mode", "inserted_at"}
    | {"pdi", "poe", "override", "override_person_id", "event_person_id", "person", "person_id"}
    | {"session", "issue_id", "event_issue_id", "events"}
    | {f"elements_chain_{part}" for part in ("href", "texts", "ids", "elements")}
    | {f"{prefix}_{number}" for prefix in ("$group", "group", "goe") for number in range(5)}
)
"""What the events table has, and its own name."""
_LITERALS = ("null", "true", "false")
_UNPARSABLE = "Failed to parse query"
_OTHER_TABLE = "Query must only SELECT FROM events"


_REDUCED = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL
)
_WORDS = re.compile(r"[\w$]+|\S")
_BRACKETS = {")": "(", "]": "[", "}": "{"}


class BadQuery(Exception):
    """The service refuses the query; the message is the detail of its answer."""


@dataclass(slots=True)
class _Cursor:
    tokens: list[str]
    at: int = 0
    fields: list[str] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)

    def peek(self) -> str:
        return self.tokens[self.at].lower() if self.at < len(self.tokens) else ""

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise BadQuery(_UNPARSABLE)
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, word: str) -> None:
        if self.peek() != word:
            raise BadQuery(_UNPARSABLE)
        self.at += 1


def rewritten(text: str) -> tuple[str, list[dict[str, str]]]:
    """Return the query as old servers print it, and its columns {expression, alias}.

    Raise BadQuery.
    """
    cursor = _Cursor(_lexemes(text))
    for word, problem in _REFUSED.items():
        if word in (token.lower() for token in cursor.tokens):
            raise BadQuery(problem)
    cursor.expect("select")
    columns = [_column(cursor)]
    while cursor.peek() == ",":
        cursor.take()
        columns.append(_column(cursor))
    cursor.expect("from")
    table = cursor.take()
    if table.lower() != "events":
        raise BadQuery(_OTHER_TABLE)
    where = limit = ""
    if cursor.peek() == "where":
        cursor.take()
        where = f"WHERE {_expression(cursor, 0)}"
    if cursor.peek() == "limit":
        cursor.take()
        limit = f"LIMIT {_operand(cursor)}"
    if cursor.peek():
        raise BadQuery(_UNPARSABLE)
    for name in cursor.fields:
        if name not in _FIELDS | cursor.aliases:
            raise BadQuery(f"Invalid HogQL query: Unable to resolve field: {name}")
    listed = ", ".join(
        expression if alias is None else f"{expression} AS {alias}" for expression, alias in columns
    )
    fields = [
        {"expression": expression, "alias": alias or expression} for expression, alias in columns
    ]
    return " ".join(filter(None, ["SELECT", listed, "FROM events", where, limit])), fields


def check_on_events(text: str) -> None:
    """Raise BadQuery for a query that the newest server certainly refuses on the events model."""
    words = check_parsable(text)
    names = list(dropwhile("(".__eq__, (name for name, _ in words)))
    if names[0] == "with":
        raise BadQuery("CTEs are not supported")
    for word in ("union", "join"):
        if word in names[1:]:
            raise BadQuery(_REFUSED[word])
    if "select" in names[1:]:
        raise BadQuery("Subqueries are not supported")
    tables = [after for word, (after, _) in pairwise(words) if word == ("from", 0)]
    if tables and tables[0] not in ("events", "?"):
        raise BadQuery(_OTHER_TABLE)


def check_parsable(text: str) -> list[tuple[str, int]]:
    """Return the lower-case words of a query with their bracket depth.

    Comments are dropped, and texts and quoted names become a sign. Raise BadQuery for text that is
    certainly no query: another start, or open brackets.
    """
    reduced = _REDUCED.sub(lambda match: " " if match[0][:1] in "-/" else " ? ", text)
    words: list[tuple[str, int]] = []
    opened: list[str] = []
    for match in _WORDS.finditer(reduced.strip().removesuffix(";")):
        word = match[0].lower()
        if word in _BRACKETS.values():
            opened.append(word)
        elif word in _BRACKETS and (not opened or opened.pop() != _BRACKETS[word]):
            raise BadQuery(_UNPARSABLE)
        words.append((word, len(opened)))
    if opened or len(words) < 2 or words[0][0] not in ("select", "with", "("):
        raise BadQuery(_UNPARSABLE)
    return words


def _lexemes(text: str) -> list[str]:
    lexemes = []
    at = _after_skipped(text, 0)
    while at < len(text):
        match = _LEXEME.match(text, at)
        if match is None:
            raise BadQuery(_UNPARSABLE)
        lexemes.append(match[0])
        at = _after_skipped(text, match.end())
    return lexemes


def _after_skipped(text: str, at: int) -> int:
    match = _SKIPPED.match(text, at)
    return match.end() if match is not None else at


def _column(cursor: _Cursor) -> tuple[str, str | None]:
    if cursor.peek() == "*":
        raise BadQuery("Unsupported HogQL query")
    expression = _expression(cursor, 0)
    if cursor.peek() == "as":
        cursor.take()
        alias = cursor.take()
        cursor.aliases.add(alias)
        return expression, alias
    return expression, None


def _expression(cursor: _Cursor, level: int) -> str:
    if level == len(_OPERATORS):
        return _operand(cursor)
    arguments = [_expression(cursor, level + 1)]
    function = ""
    while cursor.peek() in _OPERATORS[level]:
        function = _OPERATORS[level][cursor.take().lower()]
        right = _expression(cursor, level + 1)
        if function in ("and", "or", "concat"):
            arguments.append(right)
        else:
            arguments = [f"{function}({', '.join([*arguments, right])})"]
            function = ""
    return f"{function}({', '.join(arguments)})" if function else arguments[0]


def _operand(cursor: _Cursor) -> str:
    word = cursor.take()
    if word == "(":
        if cursor.peek() == "select":
            raise BadQuery("Subqueries or CTEs are not supported")
        items = _items(cursor, ")")
        return items[0] if len(items) == 1 else f"tuple({', '.join(items)})"
    if word == "[":
        return f"[{', '.join(_items(cursor, ']'))}]"
    if word.lower() == "not":
        return f"not({_expression(cursor, 2)})"
    if word == "-":
        return f"-{_operand(cursor)}"
    if not (word[0].isalnum() or word[0] in "_$`'*"):
        raise BadQuery(_UNPARSABLE)
    if cursor.peek() == "(":
        cursor.take()
        return f"{word}({', '.join(_items(cursor, ')'))})"
    if not (word[0].isdigit() or word[0] in "'*" or word.lower() in _LITERALS):
        cursor.fields.append(word.strip("`"))
    while cursor.peek() == ".":
        cursor.take()
        word = f"{word}.{cursor.take()}"
    return word


def _items(cursor: _Cursor, closing: str) -> list[str]:
    items: list[str] = []
    while cursor.peek() != closing:
        if items:
            cursor.expect(",")
        items.append(_expression(cursor, 0))
    cursor.take()
    return items
