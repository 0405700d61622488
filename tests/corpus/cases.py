"""Find the cases of the corpus. README.md beside this file says what a case is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent
BASE = {path.name: path.read_bytes() for path in sorted((CORPUS / "base").iterdir())}
ONE_ENVIRONMENT = "staging"
_HEADING = re.compile(r"## (?P<name>[a-z0-9-]+)")
_FILE_NAME = re.compile(r"`(?P<name>[^`]+)`:")
_FENCE = re.compile(r"(?P<fence>`{3,})(?P<language>yaml|text)")


@dataclass(frozen=True)
class Case:
    """A broken workspace with the expected text.

    `files` by name, `links` with their targets, `source` is the file that holds the text.
    """

    theme: str
    name: str
    files: Mapping[str, bytes]
    links: tuple[tuple[str, str], ...] = ()
    expected: str = ""
    source: Path = CORPUS

    @property
    def id(self) -> str:
        return f"{self.theme}/{self.name}"

    @property
    def environment(self) -> str | None:
        return ONE_ENVIRONMENT if self.theme == "one-environment" else None

    @property
    def strict(self) -> bool:
        return self.theme == "strict"

    def written(self, folder: Path) -> Path:
        """Write the workspace into a folder; return the folder."""
        for name, raw in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        for name, target in self.links:
            (folder / name).symlink_to(target)
        return folder

    def update(self, text: str) -> None:
        """Replace the expected text in its file."""
        self.source.write_text(_replaced(self.source, self.name, text), encoding="utf-8")


@dataclass
class _Section:
    """A section of a page: the files of a case by name (None: one file in the base), the text."""

    name: str
    files: dict[str | None, str]
    expected: str = ""
    text_at: tuple[int, int] | None = None
    """First and last line of the text block, fences included, counted from 0."""


def _sections(path: Path) -> Iterator[_Section]:
    """Yield the sections of a page: `## name`, blocks of YAML, one block of text."""
    section: _Section | None = None
    file_name: str | None = None
    lines = path.read_text(encoding="utf-8").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number]
        if heading := _HEADING.fullmatch(line):
            if section is not None:
                yield section
            section = _Section(heading["name"], {})
        elif named := _FILE_NAME.fullmatch(line):
            file_name = named["name"]
        elif (fence := _FENCE.fullmatch(line)) and section is not None:
            end = lines.index(fence["fence"], number + 1)
            block = "".join(f"{inside}\n" for inside in lines[number + 1 : end])
            if fence["language"] == "yaml":
                section.files[file_name] = block
                file_name = None
            else:
                section.expected, section.text_at = block, (number, end)
            number = end
        number += 1
    if section is not None:
        yield section


def _replaced(path: Path, name: str, text: str) -> str:
    """Return a page with another text in one section."""
    (section,) = (section for section in _sections(path) if section.name == name)
    lines = path.read_text(encoding="utf-8").split("\n")
    first, last = section.text_at or (len(lines), len(lines) - 1)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    lines[first : last + 1] = [f"{fence}text", *text.removesuffix("\n").split("\n"), fence]
    return "\n".join(lines)


def _pages() -> Iterator[Case]:
    for path in CORPUS.glob("*.md"):
        if path.stem == "README":
            continue
        theme = path.stem
        for section in _sections(path):
            files, links = _workspace(theme, section)
            yield Case(theme, section.name, files, links, section.expected, path)


def _workspace(
    theme: str, section: _Section
) -> tuple[Mapping[str, bytes], tuple[tuple[str, str], ...]]:
    if theme == "generated":
        return _generated(section.name)
    own = "reconciler.yaml" if theme == "workspace" else f"{section.name}.yaml"
    return {**BASE, **{name or own: text.encode() for name, text in section.files.items()}}, ()


def _alias_bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines).encode()


def _merge_bomb() -> bytes:
    fields = "\n".join(f"  k{n}: x" for n in range(1000))
    return f"a0: &a\n{fields}\nb0:\n  <<: [{', '.join(['*a'] * 1100)}]\n".encode()


_EXPORT = """\
batch_exports:
  lake:
    name: Lake
    interval: hour
    destination: {type: NoOp}
"""
_FILES: Mapping[str, bytes] = {
    "alias-bomb": _alias_bomb(),
    "blocks-1500-deep": b"".join(b" " * depth + b"a:\n" for depth in range(1500)),
    "brackets-100000-deep": b"projects: " + b"[" * 100_000,
    "cyrillic-letter-in-key": "projects: {app: {n\u0430me: App}}".encode(),
    "dashes-30000-deep": b"- " * 30_000 + b"x\n",
    "eleven-megabytes": b"# lake\n" * 1_600_000,
    "escape-colours": b"projects: {app: {name: \x1b[31mApp}}",
    "file-is-not-text": b"projects: {lake: {name: '${file:latin-1.yaml}'}}",
    "form-feed": b"projects:\n\x0c  app: {name: App}",
    "latin-1": b"projects: {app: {name: B\xfcro}}",
    "line-of-a-million-characters": b"batch_exports: [" + b"lake " * 200_000 + b"[\n",
    "line-separator": "# one\u2028# two\nprojects: {}".encode(),
    "mark-first-and-a-mistake-in-line-one": b"\xef\xbb\xbfbatch_exports: {lake: no}",
    "mark-twice": b"\xef\xbb\xbf\xef\xbb\xbfprojects: {}",
    "merge-bomb": _merge_bomb(),
    "name-too-long": b"projects: {long: {name: " + b"App " * 60 + b"}}",
    "no-break-space-after-colon": _EXPORT.replace(": hour", ":\u00a0hour").encode(),
    "no-break-space-as-indent": _EXPORT.replace("    inter", "\u00a0\u00a0\u00a0inter").encode(),
    "number-of-a-million-digits": b"projects: " + b"9" * 1_000_000 + b"\n",
    "old-mac-line-ends": b"projects:\r  app: []\r",
    "tab-first": b"projects:\n  app:\n\tname: App",
    "text-that-turns-round": 'projects: {utc: {name: UTC, timezone: "U\u202eCT"}}'.encode(),
    "utf-32": "projects: {}".encode("utf-32"),
    "very-long-key": b"projects:\n  " + b"lake" * 200 + b"!: {}",
}
"""What a page can't show: `<name>.yaml`, all in one workspace."""

_LINKS = (("broken.yaml", "gone.yaml"), ("outside.yaml", "/etc/hosts"), ("self.yaml", "self.yaml"))
_ODD: Mapping[str, Mapping[str, bytes]] = {
    "names-and-links": {"a\x1b[31m\n::error::forged.yaml": b"projects: no\n"},
    "pattern-of-501-characters": {
        "reconciler.yaml": b"version: 1\nresources: [" + b"a" * 501 + b"]\n"
    },
    "variables-tenfold": {
        "reconciler.yaml": b"version: 1\nvars:\n  v0: lake\n"
        + b"".join(b"  v%d: '%s'\n" % (n, b"${var:v%d}" % (n - 1) * 10) for n in range(1, 9)),
        "lake.yaml": b"projects: {lake: {name: '${var:v8}'}}\n",
    },
}


def _generated(name: str) -> tuple[Mapping[str, bytes], tuple[tuple[str, str], ...]]:
    if name == "no-workspace-file":
        return {"projects.yaml": BASE["projects.yaml"]}, ()
    if name != "files":
        return {**BASE, **_ODD[name]}, _LINKS if name == "names-and-links" else ()
    # The files are named: otherwise most of them would not be taken for resource files.
    files = {f"{file}.yaml": raw for file, raw in _FILES.items()}
    resources = f"resources: [{', '.join([*files, 'projects.yaml'])}]\n".encode()
    return {**BASE, **files, "reconciler.yaml": BASE["reconciler.yaml"] + resources}, ()


CASES = sorted(_pages(), key=lambda case: case.id)
