"""Recognize the files of other tools, such as docker-compose.yml, among those of a workspace."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import PurePosixPath

from msgspec import Struct

from reconciler.diagnostics import DiagnosticCollector
from reconciler.errors import LoadingStopped
from reconciler.model.kind import Kind
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import Parse

_KEY = re.compile(rb"^[\"']?([\w.-]{3,40})[\"']?[ \t]*:", re.MULTILINE)
"""A key in the first column."""
_STRUCTURE = re.compile(rb"^[ \t]*(?:-[ \t\r\n]|\{|[\"']?[\w./$-]+[\"']?[ \t]*:\s)", re.MULTILINE)
"""A key at any indentation, an item of a list, or a brace: files of other tools have some."""
_SIMILAR = 0.85
_MISNAMED = ("reconciler.yml", "reconciler.yaml")


# Without slots, since cached properties need a dict.
class Recognition(Struct, frozen=True, dict=True):
    """What distinguishes resource files from other files.

    A resource file has a collection, or a similar word, as a key at the top. If the top cannot be
    read, a line that begins with such a word is enough: a mistake must not hide resources.
    """

    kinds: Sequence[Kind]

    @cached_property
    def _collections(self) -> Sequence[str]:
        return [kind.collection for kind in self.kinds]

    @cached_property
    def _ours(self) -> re.Pattern[bytes]:
        names = "|".join(map(re.escape, self._collections))
        return re.compile(rf"^[\"']?(?:{names})[\"']?[ \t]*:".encode(), re.MULTILINE)

    @cached_property
    def _similar(self) -> frozenset[str]:
        """Words for a collection in the plain form: singular, plural, and without its prefix."""
        words = {_form(word) for kind in self.kinds for word in (kind.name, kind.collection)}
        return frozenset(words | {_form(name.rpartition("_")[2]) for name in self._collections})

    @cached_property
    def _mention(self) -> re.Pattern[bytes]:
        """A part of every similar word that is spelt correctly."""
        stems = {kind.name.rpartition("_")[2] for kind in self.kinds}
        return re.compile("|".join(map(re.escape, sorted(stems))).encode(), re.IGNORECASE)

    @cached_property
    def _line(self) -> re.Pattern[bytes]:
        """A line that may begin with a collection, at any indentation."""
        names = {name for kind in self.kinds for name in (kind.name, kind.collection)}
        names |= {name.rpartition("_")[2] for name in names}
        words = "|".join("[_-]?".join(map(re.escape, name.split("_"))) for name in sorted(names))
        line = rf"^[\s?\"'{{-]*(?:{words})[\"']?[ \t]*:"
        return re.compile(line.encode(), re.MULTILINE | re.IGNORECASE)

    def is_foreign(self, raw: bytes, file: str, parse: Parse) -> bool:
        """Return whether a file has no resources, nor a mistake in place of them.

        Files that are empty, or have a wrong encoding, or no structure, are not foreign.
        """
        raw = raw.removeprefix(BOM_UTF8)
        if self._ours.search(raw) or b"\0" in raw or not _STRUCTURE.search(raw):
            return False
        if any(self.is_similar(key.decode()) for key in set(_KEY.findall(raw)) if key.isascii()):
            return False
        if not self._mention.search(raw):
            return True
        document = Document(file, unread=True)
        with suppress(LoadingStopped):
            document = parse(raw, file, DiagnosticCollector())
        if document.unread or not isinstance(document.value, dict):
            return self._line.search(raw) is None
        return not any(map(self.is_similar, document.value))

    def is_similar(self, key: str) -> bool:
        """Return whether a key is a collection, or probably intended to be one."""
        from difflib import get_close_matches

        form = _form(key)
        return form in self._similar or bool(
            get_close_matches(form, self._similar, n=1, cutoff=_SIMILAR)
        )


def is_misnamed(name: str) -> bool:
    """Return whether a file has nearly the name of a workspace file."""
    return PurePosixPath(name).name.casefold() in _MISNAMED


def _form(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")
