"""Parse strict YAML to a `Document`, and report syntax errors and ambiguous YAML.

Pausing the garbage collector while parsing is the largest speed-up that was measured.
"""

from __future__ import annotations

import gc
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import yaml

from reconciler.diagnostics import DiagnosticCollector, Mark
from reconciler.workspace.limits import MAX_FILE_BYTES, MAX_TAG_LINES
from reconciler.workspace.sources import too_large
from reconciler.workspace.yaml.document import Document
from reconciler.workspace.yaml.events import read_plain
from reconciler.workspace.yaml.nodes import TOO_DEEP, TOO_MANY, TooDeep, TooMany, compose
from reconciler.workspace.yaml.strictness import place

Parse: TypeAlias = Callable[[bytes, str, DiagnosticCollector], Document]
"""Return the document of a file from its content and name; errors go to the collector."""

_BYTE_ORDER_MARK = "\ufeff"
_TAG_LINE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")


def parse(
    raw: bytes, file: str, problems: DiagnosticCollector, *, keep_nodes: bool = False
) -> Document:
    """Return the document of a file, with its nodes if asked. Errors go to `problems`."""
    text = _decoded(raw, file, problems)
    if text is None:
        return Document(file, unread=True)
    unread = Document(file, text=text, unread=True)
    joined = _BYTE_ORDER_MARK in text
    if joined:
        problems.error(
            "byte-order-mark",
            "byte order mark inside the file",
            at=place(file, text, text.index(_BYTE_ORDER_MARK)),
        )
    if "%TAG" in text and len(_TAG_LINE.findall(text)) > MAX_TAG_LINES:
        message = f"invalid YAML: more than {MAX_TAG_LINES} lines with %TAG"
        problems.error(
            "bad-yaml", message, at=Mark(file), hint="remove them; tags are not supported"
        )
        return unread
    try:
        with collector_paused():
            plain = read_plain(file, text) if not (joined or keep_nodes) else None
            if plain is not None:
                return plain
            # Most files are read without it.
            from reconciler.workspace.yaml.construct import construct

            return construct(file, text, compose(text), problems, keep=keep_nodes)
    except yaml.YAMLError as error:
        if not joined:
            from reconciler.workspace.yaml.syntax_errors import report_syntax

            report_syntax(error, text, unread, problems)
    except TooDeep as error:
        problems.error("too-deep", TOO_DEEP, at=Mark(file, *error.args))
    except TooMany as error:
        problems.error("file-too-large", TOO_MANY, at=Mark(file, *error.args))
    except RecursionError:
        problems.error("too-deep", TOO_DEEP, at=Mark(file))
    return unread


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector while many values without cycles are created."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _decoded(raw: bytes, file: str, problems: DiagnosticCollector) -> str | None:
    if len(raw) > MAX_FILE_BYTES:
        error = too_large(file, len(raw))
        problems.error(error.code, error.message, at=Mark(file))
        return None
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        wide = b"\0\0" in raw[:4]
        problems.error(
            "bad-encoding",
            f"file must be UTF-8 text, not UTF-{32 if wide else 16} or binary",
            at=Mark(file),
            hint="save the file as UTF-8",
        )
        return None
    try:
        # Some editors write one mark at the beginning, which is harmless.
        raw = raw.removeprefix(BOM_UTF8)
        return raw.decode()
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode()
        problems.error(
            "bad-encoding",
            f"byte 0x{raw[error.start]:02x} is not valid UTF-8",
            at=place(file, before, len(before)),
            hint="save the file as UTF-8",
        )
        return None
