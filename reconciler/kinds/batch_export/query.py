"""Compare queries by meaning: servers up to 2025 return a rewritten text (service.md 1.9).

`select toInt(1+1) as n from events` comes back as `SELECT toInt(plus(1, 1)) AS n FROM events`. The
canonical form has functions for operators. Other queries are compared token by token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from reconciler.model.values import JSON

_LEXEMES = r"""(?xs)\s+|--[^\n]*|/\*.*?\*/
    |(?P<text>'(?:[^'\\]|\\.|'')*')
    |(?P<name>"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`|[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<sign><=>|!=|<>|<=|>=|==|=~\*?|!~\*?|\|\||\?\?|->|::|/(?!\*)|[-+*%<>=(),.\[\]{}?:;])"""

_KEYWORDS = frozenset(
    {"select", "distinct", "from", "where", "and", "or", "not", "as", "in", "is", "null"}
    | {"like", "ilike", "between", "case", "when", "then", "else", "end", "prewhere", "group"}
    | {"by", "order", "having", "limit", "offset", "asc", "desc", "true", "false"}
)

_FUNCTION_WORDS = frozenset({"and", "or", "in", "like", "ilike", "not"})
"""Keywords that are functions before a bracket, as servers print them."""

_BINARY = {
    "or": (1, "or"),
    "and": (2, "and"),
    "=": (4, "equals"),
    "==": (4, "equals"),
    "!=": (4, "notEquals"),
    "<>": (4, "notEquals"),
    "<": (4, "less"),
    ">": (4, "greater"),
    "<=": (4, "lessOrEquals"),
    ">=": (4, "greaterOrEquals"),
    "like": (4, "like"),
    "ilike": (4, "ilike"),
    "in": (4, "in"),
    "=~": (4, "match"),
    "||": (5, "concat"),
    "??": (3, "ifNull"),
    "+": (6, "plus"),
    "-": (6, "minus"),
    "*": (7, "multiply"),
    "/": (7, "divide"),
    "%": (7, "modulo"),
}

_SQL = r"(?i)\b(?:select|from|where|prewhere|having|limit|(?:group|order)\s+by)\b|[{=<>]"
"""What is in the rest of a query, and seldom in a comment about one."""
_WORD = r"""(?:[\w.$]|`[^`]*`|"[^"]*")+|[(),]"""
_OTHER_CLAUSES = frozenset(
    {"select", "where", "prewhere", "group", "order", "having", "limit", "window", "settings"}
)
_BEFORE, _BEHIND = "before a table", "behind a table"
_NEGATED = {"in": "notIn", "like": "notLike", "ilike": "notILike"}
_FLATTENED = frozenset({"and", "or", "concat"})
"""Functions that servers print with all operands of a chain: `and(a, b, c)`."""
_UNARY_PRECEDENCE = 8
_DEEPEST = 100
"""Levels of nested expressions and calls: more would exceed the stack, or copy text too often."""
_LONGEST = 100_000
"""Characters of a query that is parsed."""


class _Unsupported(Exception):
    """The grammar does not cover the text."""


def code_of(query: JSON) -> str:
    """Return a query without comments, and without what is inside of string literals."""
    return re.sub(_LEXEMES, _code, query if isinstance(query, str) else "")


def _code(lexeme: re.Match[str]) -> str:
    if lexeme[0].startswith(("--", "/*")):
        return " "
    return "''" if lexeme["text"] else lexeme[0]


def hides_code(query: JSON) -> bool:
    """Return whether the query has one line, and ends in a `--` comment that looks like SQL.

    A folded block of YAML (`>`) joins the lines, so that the comment of one has the rest.
    """
    text = query.strip() if isinstance(query, str) else ""
    comments = (lexeme[0] for lexeme in re.finditer(_LEXEMES, text))
    return "\n" not in text and any(
        comment.startswith("--") and re.search(_SQL, comment) for comment in comments
    )


def tables_of(query: str) -> list[str]:
    """Return the names behind `FROM` and `JOIN` and the commas of their lists, in subqueries, too.

    In case of doubt, a name is listed.
    """
    tables, state, outer = dict[str, None](), "", list[str]()
    for word in re.findall(_WORD, code_of(query)):
        if word == "(":
            outer.append(state)
            state = state if state == _BEFORE else ""
        elif word == ")":
            state = _BEHIND if outer and outer.pop() else ""
        elif word == ",":
            state = _BEFORE if state else ""
        elif word.lower() in ("from", "join"):
            state = _BEFORE
        elif word.lower() in _OTHER_CLAUSES:
            state = ""
        elif state == _BEFORE:
            tables[re.sub('[`"]', "", word)] = None
            state = _BEHIND
    return list(tables)


class _Call(Struct, frozen=True):
    """A call of a function, to which a chain of the same operators adds arguments."""

    function: str
    arguments: list[str]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(self.arguments)})"


_Term: TypeAlias = str | _Call


class QueryText(Struct, frozen=True):
    """The type of a query field."""

    def canonical(self, value: JSON) -> JSON:
        """Return operators as functions, keywords in upper case, without comments."""
        if not isinstance(value, str):
            return value
        try:
            tokens = _tokens(value)
        except _Unsupported:
            return " ".join(value.split())
        try:
            return _Reader(tokens if len(value) <= _LONGEST else ()).statement()
        except _Unsupported:
            return " ".join(token.upper() if token in _KEYWORDS else token for token in tokens)


def _tokens(text: str) -> tuple[str, ...]:
    """Return the tokens, keywords in lower case and unnecessary quotes removed."""
    tokens: list[str] = []
    position = 0
    token_at = re.compile(_LEXEMES).match
    while position < len(text):
        match = token_at(text, position)
        if match is None:
            raise _Unsupported
        position = match.end()
        if match.lastgroup is None:
            continue
        token = match.group()
        if match.lastgroup == "name":
            token = _plain_name(token)
        tokens.append(token)
    while tokens and tokens[-1] == ";":
        tokens.pop()
    return tuple(tokens)


def _plain_name(token: str) -> str:
    if token[0] in '"`':
        inner = token[1:-1]
        simple = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", inner) and inner.lower() not in _KEYWORDS
        return inner if simple else f"`{inner}`"
    return token.lower() if token.lower() in _KEYWORDS else token


class _Reader:
    """A precedence parser that returns canonical text."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def statement(self) -> str:
        """Return the canonical form of `SELECT … FROM … [WHERE …]`."""
        self._expect("select")
        distinct = "DISTINCT " if self._take("distinct") else ""
        text = f"SELECT {distinct}{', '.join(self._columns())}"
        if self._take("from"):
            text += f" FROM {self._name()}"
            if self._take("as") or (self._peek() and self._peek() not in _KEYWORDS):
                text += f" AS {self._name()}"
        if self._take("where"):
            text += f" WHERE {self._expression(0)}"
        if self._peek():
            raise _Unsupported
        return text

    def _columns(self) -> list[str]:
        columns = [self._column()]
        while self._take(","):
            columns.append(self._column())
        return columns

    def _column(self) -> str:
        text = str(self._expression(0))
        return f"{text} AS {self._name()}" if self._take("as") else text

    def _expression(self, minimum: int) -> _Term:
        outer = self._depth
        self._deepen()
        left = self._prefix()
        while True:
            negated = self._peek() == "not" and self._peek(1) in _NEGATED
            operator = self._peek(1 if negated else 0)
            if self._peek() == "is":
                left = self._null_test(left)
                continue
            if operator not in _BINARY or _BINARY[operator][0] < minimum:
                self._depth = outer
                return left
            precedence, function = _BINARY[operator]
            self._at += 2 if negated else 1
            right = self._expression(precedence + 1)
            left = self._call(_NEGATED[operator] if negated else function, left, str(right))

    def _deepen(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _Unsupported

    def _call(self, function: str, left: _Term, right: str) -> _Call:
        """Return a call; `a AND b AND c` has three arguments, as the servers print it."""
        if isinstance(left, _Call) and left.function == function and function in _FLATTENED:
            left.arguments.append(right)
            return left
        self._deepen()
        return _Call(function, [str(left), right])

    def _null_test(self, left: _Term) -> str:
        self._deepen()
        self._expect("is")
        negated = self._take("not")
        self._expect("null")
        return f"{'isNotNull' if negated else 'isNull'}({left})"

    def _prefix(self) -> _Term:
        if self._take("not"):
            return f"not({self._expression(3)})"
        if self._take("-"):
            inner = str(self._expression(_UNARY_PRECEDENCE))
            return f"-{inner}" if inner[0].isdigit() else f"negate({inner})"
        return self._postfix(self._primary())

    def _primary(self) -> _Term:
        word = self._peek()
        if word == "(":
            return self._bracketed()
        if word == "[":
            return f"[{', '.join(self._list('[', ']'))}]"
        if word in {"null", "true", "false", "*"} or word[:1] == "'" or word[:1].isdigit():
            self._at += 1
            return word.upper() if word == "null" else word
        if word in _FUNCTION_WORDS and self._peek(1) == "(":
            self._at += 1
        else:
            word = self._name()
        return _Call(word, self._list("(", ")")) if self._peek() == "(" else word

    def _bracketed(self) -> _Term:
        items = self._terms("(", ")")
        return items[0] if len(items) == 1 else _Call("tuple", [*map(str, items)])

    def _postfix(self, term: _Term) -> _Term:
        while True:
            if self._take("."):
                term = f"{term}.{self._name()}"
            elif self._peek() == "[":
                term = f"{term}[{', '.join(self._list('[', ']'))}]"
            else:
                return term

    def _list(self, opening: str, closing: str) -> list[str]:
        return [*map(str, self._terms(opening, closing))]

    def _terms(self, opening: str, closing: str) -> list[_Term]:
        self._expect(opening)
        items: list[_Term] = []
        while not self._take(closing):
            if items:
                self._expect(",")
            items.append(self._expression(0))
        return items

    def _name(self) -> str:
        token = self._peek()
        if not token or token in _KEYWORDS or not (token[0].isalpha() or token[0] in "_$`"):
            raise _Unsupported
        self._at += 1
        return token

    def _peek(self, ahead: int = 0) -> str:
        position = self._at + ahead
        return self._tokens[position] if position < len(self._tokens) else ""

    def _take(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._at += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise _Unsupported
