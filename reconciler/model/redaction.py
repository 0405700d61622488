"""Detect and mask secrets in files, messages and plans."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.json_tree import JSON, walk
from reconciler.model.schema_files import schema_words
from reconciler.model.secret_forms import NAME, any_of, decoded, forms_of, fragment_spans, fragments
from reconciler.model.secret_names import looks_secret, plain_names
from reconciler.model.values import SecretValue

_T = TypeVar("_T")
Mask: TypeAlias = Callable[[str], str]
"""A function that masks every known secret in a text."""
MASK = "***"
HIDDEN = "(not shown: it contains a secret)"

_URL_PASSWORD = re.compile(r"(?<=://)(?P<user>[^\s/@:]*):[^\s/@]+(?=@)")
_FEW_TEXTS = 100
"""Texts that are searched for each form of a secret, before the pattern of all is compiled."""
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
_ELSEWHERE = (
    # The default of a secret, and the password in a URL.
    r"(?<=\$\{secret:env:)[^{}]*?:-(?P<value>[^{}]+)"
    r"|(?<=://)[^\s/@:]*:(?P<password>[^\s/@]+)(?=@)"
)


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
        names = {value for value in self._values if NAME.fullmatch(value.strip())}
        self._fragments: frozenset[str] | None = None
        # Whether the configuration contains them is decided when a text does, which is rare.
        self._possible_names = _Forms({form for name in names for form in (name, *forms_of(name))})
        self._compile(self._values - names, common=())

    def _decide(self, text: str) -> None:
        """Find out which secrets are names, if a text may contain one of them."""
        pattern = self._possible_names.pattern(text)
        if pattern is None or not pattern.search(text):
            return
        self._possible_names = _Forms(set())
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
        self._anywhere = _Forms(anywhere)
        self._words = _Forms({word for word in words if len(word) >= _SHORTEST_WORD}, whole=True)
        self._in_details = _Forms(in_details | words, whole=True)

    def mask(self, text: str) -> str:
        """Return a text with known secrets masked, and passwords in URLs."""
        self._decide(text)
        for forms in (self._anywhere, self._words):
            pattern = forms.pattern(text)
            if pattern is not None:
                text = pattern.sub(MASK, text)
        return _URL_PASSWORD.sub(rf"\g<user>:{MASK}", text) if "@" in text else text

    def detail(self, text: str) -> str:
        """Return a text of the service with known secrets masked, also parts of random ones.

        It is hidden if it contains a secret that is a word, or a part in another encoding.
        """
        self._decide(text)
        pattern = self._in_details.pattern(text)
        if pattern is not None and pattern.search(text):
            return HIDDEN
        if self._fragments is None:
            # Few runs have errors of the service.
            self._fragments = fragments(self._values)
        known, text = self._fragments, self.mask(text)
        spans = fragment_spans(text, known)
        shown = masked(text, spans)
        is_split = _length(fragment_spans("".join(text.split()), known)) > _length(spans)
        is_encoded = any(fragment_spans(other, known) for other in decoded(shown))
        return HIDDEN if is_split or is_encoded else shown


class _Forms:
    """The forms of secrets that are masked, anywhere or as whole words.

    Compiling their pattern takes longer than searching a few texts for each of them.
    """

    def __init__(self, forms: Collection[str], *, whole: bool = False) -> None:
        self._forms = forms
        self._whole = whole
        self._searched = 0
        self._pattern: re.Pattern[str] | None = None

    def pattern(self, text: str) -> re.Pattern[str] | None:
        """Return the pattern that matches a form, None if a text contains none for certain."""
        if self._pattern is None and self._forms:
            self._searched += 1
            if self._searched > _FEW_TEXTS or any(form in text for form in self._forms):
                pattern = any_of(self._forms)
                whole = rf"(?<![^\W_])(?:{pattern})(?![^\W_])"
                self._pattern = re.compile(whole if self._whole else pattern)
        return self._pattern


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


def _length(spans: Iterable[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


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
    spans += [match.span(str(match.lastgroup)) for match in re.finditer(_ELSEWHERE, line)]
    apart: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if not apart or first >= apart[-1][1]:
            apart.append((first, last))
    return tuple(apart)


def redact_value(value: JSON, mask: Mask) -> JSON:
    """Return a value with all text inside it masked, keys included, and fields that look secret."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {
            mask(str(name)): redact_value(item, _hide if looks_secret(str(name)) else mask)
            for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return value.__class__(redact_value(item, mask) for item in value)
    return value


class Revealed(str):
    """A secret that is shown on purpose: it is not masked."""

    __slots__ = ()


def masked_in(value: _T, mask: Mask) -> _T:
    """Return a value with known secrets masked in all its text: a copy where there are any.

    What it maps to names that look secret is masked, too.
    """
    made: Any = value
    if type(made) is str:
        made = mask(made)
    elif isinstance(value, Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: masked_in(item, mask) for name, item in old.items()}
        changed = {name: item for name, item in new.items() if item is not old[name]}
        made = replace(value, **changed) if changed else value
    elif isinstance(value, Mapping):
        made = {masked_in(name, mask): _masked_at(name, item, mask) for name, item in value.items()}
    elif type(value) in (list, tuple):
        items = cast("Sequence[Any]", value)
        new_items = [masked_in(item, mask) for item in items]
        same = all(map(operator.is_, items, new_items))
        made = value if same else type(items)(new_items)  # type: ignore[call-arg]
    return cast("_T", made)


def _masked_at(name: object, value: Any, mask: Mask) -> Any:
    is_secret = isinstance(name, str) and looks_secret(name) and not isinstance(value, Struct)
    return masked_in(value, _hide if is_secret else mask)


def _hide(text: str) -> str:
    return MASK if text else text


def is_redacted(value: JSON) -> bool:
    """Return whether a part of a value is masked, so that the original value is lost."""
    return any(isinstance(item, str) and MASK in item for _, item in walk(value))


def starts_plain_field(line: str) -> bool:
    """Return whether a line starts with the key of a field that is not secret."""
    key = re.match(_FIRST_KEY, line)
    return key is not None and key["name"] in plain_names()


def starts_secret(line: str) -> bool:
    """Return whether a line starts with the key of a secret."""
    key = re.match(_FIRST_KEY, line)
    return key is not None and looks_secret(key["name"])
