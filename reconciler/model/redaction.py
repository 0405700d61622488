"""Detect and mask secrets in files, messages and plans."""

from __future__ import annotations

import base64
import json
import operator
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.schemas import credential_spans, looks_secret, schema_words
from reconciler.model.text import printable
from reconciler.model.values import MASK, Address, SecretValue, walk

_T = TypeVar("_T")
Mask: TypeAlias = Callable[[str], str]
"""A function that masks every known secret in a text."""
HIDDEN = "(not shown: it contains a secret)"

_SHORTEST_FORM = 4
_SHORTEST_WORD = 3
_SHORT = re.compile(r".{,3}|[A-Za-z]{,5}|\d{,5}", re.DOTALL)
"""Secrets that other texts contain by chance: masked as whole words only."""
_KEY = r"(?<![\w.-])[\"']?(?P<name>[\w.-]++)[\"']?\s*+:\s+"
_FIRST_KEY = r"\s*(?:-\s+)?[\"']?(?P<name>[\w.-]+)[\"']?\s*:"
_SET = (
    # A reference is not a secret, except for a default.
    r"(?![\"']?\$\{(?:(?!:-)[^}])*\}[\"']?\s*(?:[,}#]|$))"
    r"(?P<value>\"(?:[^\"\\]++|\\.)*+\"?|'[^']*+'?|(?:\$\{[^}]*+\}|[^,}\n$]++|\$)++)"
)
_DEFAULT = r"(?<=\$\{secret:env:)[^{}]*?:-(?P<value>[^{}]+)"
_SHORTEST_LINE = 12
"""Shorter lines of a secret of several lines may be words of other texts."""
_SHORTEST_MEMBER = 16
"""Shorter texts inside a secret that is JSON may be words of other texts."""
_SAFE = ("", "/", "!~*'()")
"""Characters that encoders of URLs leave as they are."""
_HTML_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_HTML = _HTML_TEXT | str.maketrans({'"': "&quot;", "'": "&#x27;"})
"""What HTML writes in texts, and in attributes. The module html takes 1.4 ms to import."""
_WORD = r"(?:[A-Z]?[a-z]+|[A-Z]+|\d{1,4})"
NAME = re.compile(rf"{_WORD}(?:[-_. ]{_WORD})*")
"""Secrets that may be the name of something, such as that of a user."""
_FRAGMENT = 8
"""Characters of a part of a secret that other texts do not contain by chance, if it is random."""
_RANDOM = re.compile(r"(?s)(?=.*\d)(?=.*[A-Za-z])|(?=.*[a-z])(?=.*[A-Z])")
_NOT_IN_WORD = re.compile(r"\A[\W_]+|[\W_]+\Z")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")


class Redactor:
    """Masks secrets in texts, in all their forms. `plain` returns the texts of the configuration.

    A secret that is a word of the tool, or a name that the configuration contains, is left where
    it is: masking it would make output unreadable, and reveal it. It hides details of errors.
    """

    def __init__(
        self, secrets: Iterable[SecretValue], plain: Callable[[], Iterable[str]] = tuple
    ) -> None:
        self._values = {secret.reveal() for secret in secrets}
        self._plain = plain
        self._fragments: frozenset[str] | None = None
        names = {value for value in self._values if NAME.fullmatch(value.strip())}
        # Whether the configuration contains them is decided when a text does, which is rare.
        self._possible_names = _pattern(form for name in names for form in (name, *forms_of(name)))
        self._compile(self._values - names, common=())

    def _decide(self, text: str) -> None:
        """Find out which secrets are names, if a text may contain one of them."""
        if self._possible_names is None or not self._possible_names.search(text):
            return
        self._possible_names = None
        texts = "\n".join(self._plain())
        common = {value for value in self._values if _is_common(value.strip(), texts)}
        self._compile(self._values, common=common)

    def _compile(self, values: Iterable[str], *, common: Collection[str]) -> None:
        """Compile the patterns of secrets. Those that are `common` are not masked."""
        anywhere: set[str] = set()
        words: set[str] = set()
        in_details: set[str] = set()
        for value in values:
            forms = {form for form in forms_of(value) if len(form) >= _SHORTEST_FORM}
            if value in common:
                in_details |= {value} | forms
            elif _SHORT.fullmatch(value):
                words |= {value} | forms
            else:
                anywhere |= forms
        self._anywhere = _pattern(anywhere)
        self._words = _pattern((word for word in words if len(word) >= _SHORTEST_WORD), whole=True)
        self._in_details = _pattern(in_details | words, whole=True)

    def mask(self, text: str) -> str:
        """Return a text with known secrets masked, and credentials in addresses."""
        self._decide(text)
        for pattern in (self._anywhere, self._words):
            if pattern is not None:
                text = pattern.sub(MASK, text)
        return masked(text, credential_spans(text))

    def detail(self, text: str) -> str:
        """Return a text of the service with known secrets masked, and with parts of random ones.

        It is hidden if it contains a secret that is a word.
        """
        self._decide(text)
        if self._in_details is not None and self._in_details.search(text):
            return HIDDEN
        if self._fragments is None:
            # Few runs have errors of the service.
            self._fragments = fragments(self._values)
        text = self.mask(text)
        return masked(text, fragment_spans(text, self._fragments))


def _pattern(forms: Iterable[str], *, whole: bool = False) -> re.Pattern[str] | None:
    """Return the pattern that matches forms of secrets anywhere, or as whole words."""
    known = {form for form in forms if form}
    if not known:
        return None
    pattern = any_of(known)
    return re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])" if whole else pattern)


def _is_common(secret: str, texts: str) -> bool:
    """Return whether a secret is a small number, a word of the tool, or a name in the texts."""
    if not NAME.fullmatch(secret):
        return False
    if secret.isdigit() or secret.lower() in schema_words():
        return True
    return re.search(rf"(?<![^\W_]){re.escape(secret)}(?![^\W_])", texts) is not None


def redact_line(line: str) -> str:
    """Return a line with values after names of secrets masked, in comments too."""
    return masked(line, secret_spans(line))


def masked(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """Return a line with the given spans masked."""
    parts: list[str] = []
    end = 0
    for first, last in spans:
        parts += [line[end:first], MASK]
        end = last
    return "".join([*parts, line[end:]])


def secret_spans(line: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of secrets in a line, without overlaps."""
    spans = [
        value.span("value")
        for key in re.finditer(_KEY, line)
        if looks_secret(key["name"])
        if (value := re.compile(_SET).match(line, key.end())) is not None
    ]
    spans += [match.span("value") for match in re.finditer(_DEFAULT, line)]
    spans += credential_spans(line)
    apart: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if not apart or first >= apart[-1][1]:
            apart.append((first, last))
    return tuple(apart)


class Revealed(str):
    """A secret that is shown on purpose: it is not masked."""

    __slots__ = ()


def masked_in(value: _T, mask: Mask) -> _T:
    """Return a value with known secrets masked in all its text: a copy where there are any.

    What it maps to names that look secret is masked, too.
    """
    made: Any = value
    if type(made) is str:
        return cast("_T", mask(made))
    if not made or isinstance(made, str | int | float | Address):
        return value  # An address identifies a change. The configuration has its text.
    if isinstance(value, Struct):
        changed: dict[str, Any] = {}
        for name in value.__struct_fields__:
            item = getattr(value, name)
            # Most fields of most plans are empty.
            if item and (new := masked_in(item, mask)) is not item:
                changed[name] = new
        made = replace(value, **changed) if changed else value
    elif type(made) in (list, tuple):
        new_items = [masked_in(item, mask) for item in made]
        same = all(map(operator.is_, made, new_items))
        made = value if same else type(made)(new_items)
    elif isinstance(value, Mapping):
        made = {masked_in(name, mask): _masked_at(name, item, mask) for name, item in value.items()}
    return cast("_T", made)


def _masked_at(name: object, value: Any, mask: Mask) -> Any:
    is_secret = isinstance(name, str) and looks_secret(name) and not isinstance(value, Struct)
    return masked_in(value, _hide if is_secret else mask)


def _hide(text: str) -> str:
    return MASK if text else text


def starts_secret(line: str) -> bool:
    """Return whether a line starts with the key of a secret."""
    key = re.match(_FIRST_KEY, line)
    return key is not None and looks_secret(key["name"])


def forms_of(secret: str) -> frozenset[str]:
    """Return the secret and its parts, plain and encoded."""
    return frozenset(form for part in _parts(secret) for form in _encoded(part) if form)


def any_of(texts: Collection[str]) -> str:
    """Return a pattern that matches any of the texts, the longest first.

    Common prefixes are shared, since alternatives are tried at every position of a text.
    """
    groups: dict[str, set[str]] = defaultdict(set)
    for text in texts:
        groups[text[0]].add(text)
    branches = []
    for _, group in sorted(groups.items()):
        prefix = _common_start(min(group), max(group))
        rest = {text[len(prefix) :] for text in group}
        tail = f"(?:{any_of(rest - {''})})" if rest != {""} else ""
        branches.append(f"{re.escape(prefix)}{tail}{'?' if tail and '' in rest else ''}")
    return "|".join(branches)


def fragments(secrets: Iterable[str]) -> frozenset[str]:
    """Return the parts of secrets that look random, in lower case."""
    return frozenset(
        _lower(part)
        for secret in secrets
        for part in (secret[at : at + _FRAGMENT] for at in range(len(secret) - _FRAGMENT + 1))
        if _RANDOM.match(part) and not NAME.fullmatch(_NOT_IN_WORD.sub("", part))
    )


def fragment_spans(text: str, known: Collection[str]) -> list[tuple[int, int]]:
    """Return the spans of a text that consist of parts of secrets, in any case."""
    lower = _lower(text)
    spans: list[tuple[int, int]] = []
    for start in range(len(text) - _FRAGMENT + 1 if known else 0):
        end = start + _FRAGMENT
        if lower[start:end] in known:
            first = spans.pop()[0] if spans and start <= spans[-1][1] else start
            spans.append((first, end))
    return spans


def _lower(text: str) -> str:
    """Return a text of the same length with ASCII letters in lower case."""
    return text.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def _common_start(first: str, last: str) -> str:
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((at for at, (a, b) in pairs if a != b), min(len(first), len(last)))]


def _parts(secret: str) -> set[str]:
    """Return the secret, and what a message may contain of it: folded, its lines, its members."""
    parts = {secret, secret.strip()}
    lines = secret.split()
    if "\n" in secret.strip():
        parts |= {" ".join(lines), "".join(lines), secret.replace("\n", "\r\n")}
        long = {line.strip() for line in secret.splitlines() if len(line.strip()) >= _SHORTEST_LINE}
        parts |= {line for line in long if not line.startswith("-----")}
    parts |= set(_members(secret))
    if not secret.isascii():
        parts |= {unicodedata.normalize(form, part) for part in parts for form in ("NFC", "NFD")}
    return parts - {""}


def _members(secret: str) -> Iterator[str]:
    """Yield the long texts inside a secret that is a JSON object, such as a service account."""
    if not secret.lstrip().startswith("{"):
        return
    try:
        value = json.loads(secret)
    except (ValueError, RecursionError):
        return
    for _, item in walk(value):
        if isinstance(item, str) and len(item) >= _SHORTEST_MEMBER:
            yield from _parts(item)


def _encoded(part: str) -> Iterator[str]:
    """Yield a text as JSON, Python, URLs, HTML, base64 and hex write it, and in other cases."""
    raw = part.encode(errors="surrogatepass")
    json_text = json.dumps(part)[1:-1]
    shown = printable(part)
    yield from (part, part.lower(), part.upper())
    yield from _both_cases(json_text)
    yield from (json.dumps(part, ensure_ascii=False)[1:-1], json.dumps(json_text)[1:-1])
    yield json_text.replace("/", "\\/")
    yield from (shown, shown.replace("'", "\\'"), repr(part)[1:-1], part.replace("\n", "\\n"))
    for safe in _SAFE:
        encoded = quote(raw, safe=safe)
        yield from (*_both_cases(encoded), *_both_cases(encoded.replace("%20", "+")))
    escaped = part.translate(_HTML)
    yield from (escaped, part.translate(_HTML_TEXT), escaped.replace("&#x27;", "&#39;"))
    yield escaped.replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield from _base64(raw)
    yield from (raw.hex(), raw.hex().upper())


def _both_cases(text: str) -> tuple[str, str]:
    """Return a text with its escapes in lower and in upper case."""
    lower = _ESCAPE.sub(lambda match: match[0].lower(), text)
    return lower, _ESCAPE.sub(_upper, lower)


def _upper(match: re.Match[str]) -> str:
    mark = match[0].rstrip("0123456789abcdef")
    return mark + match[0][len(mark) :].upper()


def _base64(raw: bytes) -> Iterator[str]:
    """Yield bytes in base64, alone and as part of longer bytes, which may start anywhere."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        yield from (whole, whole.rstrip("="))
        for offset in range(3):
            inside = encode(b"\0" * offset + raw).decode()
            yield inside[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
