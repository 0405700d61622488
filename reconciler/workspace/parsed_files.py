"""Parse each content of a file once, however many environments and commits have it."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable

from msgspec import Struct

from reconciler.diagnostics import Diagnostic, DiagnosticCollector
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.loader import parse


class _Parsed(Struct, frozen=True):
    """A document, and the diagnostics that a collector with these settings has of it."""

    document: Document
    diagnostics: tuple[Diagnostic, ...] = ()
    strict: bool = False
    lenient: frozenset[str] = frozenset()

    def fits(self, raw: bytes, problems: DiagnosticCollector) -> bool:
        settings = (self.strict, self.lenient) == (problems.strict, problems.lenient)
        same = self.document.text.encode() == raw.removeprefix(BOM_UTF8)
        return same and (settings or not self.diagnostics)


class ParsedFiles:
    """The documents of several loads, by file and content."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        """Begin with documents that have neither errors nor warnings."""
        self._parsed = {document.file: [_Parsed(document)] for document in documents}

    def parse(self, raw: bytes, file: str, problems: DiagnosticCollector) -> Document:
        """Return the document of a file, the same one for the same content."""
        parsed = self._parsed.setdefault(file, [])
        known = next((one for one in parsed if one.fits(raw, problems)), None)
        if known is None:
            own = DiagnosticCollector(strict=problems.strict, lenient=problems.lenient)
            document = parse(raw, file, own)
            known = _Parsed(document, tuple(own.diagnostics), own.strict, own.lenient)
            parsed.append(known)
        problems.diagnostics += known.diagnostics
        return known.document
