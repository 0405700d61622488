"""Broken files cause diagnostics at existing places, and nothing else.

The test breaks valid files (`examples/acme` and the base of the corpus) as a typing error or a
merge could, and combines several breaks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.diagnostics import Diagnostic, InvalidConfiguration
from reconciler.errors import BadUsage
from reconciler.files.loading import LoadOptions, load, load_all
from tests.conftest import LONG, ROOT
from tests.corpus.cases import BASE, Case
from tests.support.diagnostics import assert_sound

Files = Mapping[str, bytes]


FOLDER = ROOT / "examples/acme"
ACME = {
    path.relative_to(FOLDER).as_posix(): path.read_bytes()
    for path in sorted(FOLDER.rglob("*"))
    if path.is_file()
}
SMALL = {
    **BASE,
    "reconciler.yaml": BASE["reconciler.yaml"].replace(b"env: [", b"env: [BUCKET, "),
    "exports.yaml": b"""\
batch_exports:
  lake: &lake
    project: web
    name: Lake of ${var:bucket}
    interval: week
    offset_day: 1
    timezone: Europe/Berlin
    start_at: 2026-01-01T00:00:00Z
    filters: [{type: event, key: plan}]
    destination:
      type: S3
      config:
        bucket_name: ${env:BUCKET:-lake}
        region: eu-central-1
        prefix: "events/"
        aws_secret_access_key: ${secret:env:KEY}
    overrides:
      staging: {paused: true}
    lifecycle: {protect: true, ignore_changes: [end_at]}
  pond:
    <<: *lake
    name: Pond
    sql_query: |
      SELECT uuid
      FROM events
""",
}
WORKSPACES = (ACME, SMALL)

NASTY = (
    *re.split(
        "[¦\n]",
        r"""~¦null¦no¦ON¦y¦0x1F¦0o17¦017¦1_000¦1:30¦1e3¦-0¦.inf¦.NaN¦1.0e+999¦9999999999999999999999999
-9223372036854775809¦2026-01-01¦2026-13-01¦=¦<<¦{}¦[]¦[[]]¦{a: 1}¦{? [a] : b}¦[null]¦&a¦*a
&a [*a]¦&a b¦!!python/object:os.system x¦!!str 5¦!!int x¦!!binary x¦!x y¦!!set {a}¦|¦>¦| x¦"
'¦"\ud800"¦"\0"¦"\x85"¦'\u2028'¦@a¦`¦%x¦# x¦a: b¦- x¦${¦${}¦${:}¦${var:}¦${var:bucket}
${var:nope}¦${env:X}¦${env:1}¦${x:y}¦${secret:env:X}¦${secret:exec:ls}¦${secret:file:}
${file:.}¦${file:../x}¦$${x}¦${file:reconciler.yaml}¦${{ x }}¦{{ x }}¦${env:A:-${var:b}}
a${secret:env:X}b¦S3¦NoOp¦../workspace¦S3\0¦a/b¦NaN¦-Infinity¦0.005¦true¦é¦🚀""",
    ),
    *("", "x" * 300, "9" * 5000),
    *("\ufeff", "\x00", "\x07", "\x85", "\u2028", "\xa0", "\u202e", "\uffff"),
)
"""What a value or key should not be, or only where it is meant."""
META = ":-?[]{},#&*!|>'\"%@`$\t\n\r\\~=<"


def _text_breaks(random: random.Random, text: str, other: str) -> str:
    lines = text.split("\n")
    at, spot = random.randrange(len(lines)), random.randrange(len(text) + 1)

    def replaced(line: str) -> str:
        return "\n".join([*lines[:at], line, *lines[at + 1 :]])

    def valued() -> str:
        key, colon, _ = lines[at].partition(":")
        return replaced(f"{key}{colon or ':'} {random.choice(NASTY)}")

    def spliced() -> str:
        there = other.split("\n")
        return "\n".join([*lines[:at], *there[random.randrange(len(there)) :]])

    breaks: tuple[Callable[[], str], ...] = (
        valued,
        spliced,
        lambda: replaced(" " * random.randrange(9) + lines[at].lstrip()),
        lambda: "\n".join([*lines[:at], *lines[at + 1 :]]),
        lambda: "\n".join([*lines[: at + 1], *lines[at:]]),
        lambda: f"{text[:spot]}{random.choice(META)}{text[spot:]}",
        lambda: f"{text[:spot]}{random.choice(NASTY)}{text[spot:]}",
        lambda: f"{text[:spot]}{text[spot + random.randrange(1, 20) :]}",
        lambda: text.replace("\n", random.choice(("\r\n", "\r", "\x85", "\u2028"))),
    )
    return random.choice(breaks)()


@st.composite
def broken_as_text(draw: st.DrawFn) -> Files:
    files = dict(draw(st.sampled_from(WORKSPACES)))
    random = draw(st.randoms(use_true_random=False))
    for _ in range(draw(st.integers(1, 4))):
        name, other = random.choice(sorted(files)), random.choice(sorted(files))
        text = files[name].decode(errors="replace")
        broken = _text_breaks(random, text, files[other].decode(errors="replace"))
        files[name] = broken.encode(errors="surrogatepass")
    return files


def _diagnosed(files: Files, *, strict: bool) -> list[tuple[Diagnostic, ...]]:
    """Return what `validate` reports, and what a command reports for one environment."""
    with TemporaryDirectory() as path:
        folder = Case("", "", files).written(Path(path))
        reports = [load_all(folder, environ={"X": "no"}, strict=strict)]
        try:
            options = LoadOptions(strict=strict)
            loaded = load(folder, environment="staging", environ={"X": "no"}, options=options)
            reports.append(loaded.diagnostics)
        except InvalidConfiguration as invalid:
            reports.append(invalid.diagnostics)
        except BadUsage:
            pass
    return reports


@settings(max_examples=1000 if LONG else 50)
@given(broken_as_text(), st.booleans())
def test_no_broken_text_makes_loading_fail(files: Files, strict: bool) -> None:
    for diagnostics in _diagnosed(files, strict=strict):
        assert_sound(diagnostics, files)


def test_the_unbroken_files_have_no_diagnostics() -> None:
    for files in WORKSPACES:
        assert _diagnosed(files, strict=False)[0] == ()
