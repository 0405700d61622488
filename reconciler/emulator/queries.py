"""Queries as servers up to 2025 rewrite them, and what they refuse (service-facts 1.9).

Keywords are upper-cased, blanks collapsed, operators written as functions:
`select toInt(1+1) as n from events` becomes `SELECT toInt(plus(1, 1)) AS n FROM events`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LEXEME = re.compile(
    r"\s*(?:(?P<string>'(?:[^'\\]|\\.)*')|(?P<number>\d+(?:\.\d+)?)"
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
_REFUSED = ("join", "union", "with")


class BadQuery(Exception):
    """The service refuses the query; the message is what it says."""


@dataclass(slots=True)
class _Cursor:
    tokens: list[str]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at].lower() if self.at < len(self.tokens) else ""

    def take(self) -> str:
        if self.at >= len(self.tokens):
            raise BadQuery("Failed to parse query: unexpected end.")
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, word: str) -> None:
        if self.peek() != word:
            raise BadQuery(f"Failed to parse query: expected {word}.")
        self.at += 1


def rewritten(text: str) -> tuple[str, list[dict[str, str]]]:
    """The query as the server prints it, and its columns {expression, alias}.

    Raises BadQuery.
    """
    cursor = _Cursor(_lexemes(text))
    for word in _REFUSED:
        if word in (token.lower() for token in cursor.tokens):
            raise BadQuery(f"Batch exports do not support {word.upper()}.")
    cursor.expect("select")
    columns = [_column(cursor)]
    while cursor.peek() == ",":
        cursor.take()
        columns.append(_column(cursor))
    cursor.expect("from")
    table = cursor.take()
    if table.lower() != "events":
        raise BadQuery("Batch exports only support queries on events.")
    where = ""
    if cursor.peek() == "where":
        cursor.take()
        where = f"WHERE {_expression(cursor, 0)}"
    if cursor.peek():
        raise BadQuery(f"Failed to parse query: unexpected {cursor.peek()}.")
    listed = ", ".join(
        expression if alias is None else f"{expression} AS {alias}" for expression, alias in columns
    )
    fields = [
        {"expression": expression, "alias": alias or expression} for expression, alias in columns
    ]
    text_of_it = " ".join(filter(None, ["SELECT", listed, "FROM events", where]))
    return text_of_it, fields


def _lexemes(text: str) -> list[str]:
    found = []
    at = 0
    while text[at:].strip():
        match = _LEXEME.match(text, at)
        if match is None:
            raise BadQuery("Failed to parse query.")
        found.append(match[0].strip())
        at = match.end()
    return found


def _column(cursor: _Cursor) -> tuple[str, str | None]:
    expression = _expression(cursor, 0)
    if cursor.peek() == "as":
        cursor.take()
        return expression, cursor.take()
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
            raise BadQuery("Batch exports do not support subqueries.")
        items = _items(cursor, ")")
        return items[0] if len(items) == 1 else f"tuple({', '.join(items)})"
    if word == "[":
        return f"[{', '.join(_items(cursor, ']'))}]"
    if word.lower() == "not":
        return f"not({_expression(cursor, 2)})"
    if word == "-":
        return f"-{_operand(cursor)}"
    if not (word[0].isalnum() or word[0] in "_$`'*"):
        raise BadQuery(f"Failed to parse query: unexpected {word}.")
    if cursor.peek() == "(":
        cursor.take()
        return f"{word}({', '.join(_items(cursor, ')'))})"
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
