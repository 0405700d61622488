"""The forms in which a secret may appear in a text, and patterns that find them."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote, unquote

from reconciler.model.json_tree import walk
from reconciler.model.wording import printable

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
_BACKSLASH = re.compile(r"\\+(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4}))")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{11,}")
_ROUNDS = 3
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}")


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


def decoded(text: str, rounds: int = _ROUNDS) -> Iterator[str]:
    """Yield a text without whitespace and with escapes replaced, and what words of it encode."""
    from html import unescape

    plain = unescape(unquote(_BACKSLASH.sub(_character, text)))
    yield "".join(plain.split())
    if rounds and plain != text:
        yield from decoded(plain, rounds - 1)
    for word in _ENCODED.findall(plain) if rounds else ():
        for raw in _raw(word):
            yield from decoded(raw.decode("latin-1"), rounds - 1)


def _character(match: re.Match[str]) -> str:
    return chr(int(match[1] or match[2], 16))


def _raw(word: str) -> Iterator[bytes]:
    """Yield the bytes that a word may encode in hex, base32, or base64 from any character on."""
    for decode in (
        bytes.fromhex,
        lambda word: base64.b32decode(word.upper()[: len(word) // 8 * 8]),
    ):
        with suppress(ValueError):
            yield decode(word)
    for start in range(4):
        part = word[start:].replace("+", "-").replace("/", "_")
        yield base64.urlsafe_b64decode(part[: len(part) // 4 * 4])


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
