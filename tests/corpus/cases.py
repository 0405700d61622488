"""Finds the cases of the corpus. README.md beside this file says what a case is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

CORPUS = Path(__file__).parent
BASE = {path.name: path.read_bytes() for path in sorted((CORPUS / "base").iterdir())}
ONE_ENVIRONMENT = "staging"


@dataclass(frozen=True)
class Case:
    """A workspace with something wrong in it. `files` by name, `links` to what they lead to."""

    theme: str
    name: str
    files: Mapping[str, bytes]
    links: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.theme}/{self.name}"

    @property
    def golden(self) -> Path:
        return CORPUS / self.theme / f"{self.name}.txt"

    @property
    def environment(self) -> str | None:
        return ONE_ENVIRONMENT if self.theme == "one-environment" else None

    @property
    def strict(self) -> bool:
        return self.theme == "strict"

    def written(self, folder: Path) -> Path:
        """The folder, with the workspace in it."""
        for name, raw in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(raw)
        for name, target in self.links:
            (folder / name).symlink_to(target)
        return folder


def _stored() -> list[Case]:
    themes = [path for path in CORPUS.iterdir() if path.is_dir() and path.name not in _NO_THEMES]
    found = []
    for theme in themes:
        for path in theme.iterdir():
            if path.is_dir():
                found.append(Case(theme.name, path.name, _tree(path)))
            elif path.suffix == ".yaml":
                name = "reconciler.yaml" if theme.name == "workspace" else path.name
                found.append(Case(theme.name, path.stem, {**BASE, name: path.read_bytes()}))
    return found


_NO_THEMES = frozenset({"base", "generated", "__pycache__"})


def _tree(folder: Path) -> dict[str, bytes]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _alias_bomb() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    return "\n".join(lines).encode()


def _merge_bomb() -> bytes:
    lines = ["a0: &a0 {" + ", ".join(f"k{n}: x" for n in range(10)) + "}"]
    lines += [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9)]
    return "\n".join(lines).encode()


_BIG: Mapping[str, Callable[[], bytes]] = {
    "alias-bomb": _alias_bomb,
    "merge-bomb": _merge_bomb,
    "eleven-megabytes": lambda: b"# lake\n" * 1_600_000,
    "brackets-100-deep": lambda: b"batch_exports: " + b"[" * 100 + b"]" * 100,
    "brackets-100000-deep": lambda: b"batch_exports: " + b"[" * 100_000,
    "braces-50000-deep": lambda: b"{a: " * 50_000 + b"}" * 50_000,
    "dashes-30000-deep": lambda: b"- " * 30_000 + b"x\n",
    "question-marks-30000-deep": lambda: b"? " * 30_000 + b"x\n",
    "blocks-1500-deep": lambda: b"".join(b" " * depth + b"a:\n" for depth in range(1500)),
    "line-of-a-million-characters": lambda: b"batch_exports: {a: " + b"lake " * 200_000 + b"\n",
    "number-of-a-million-digits": lambda: b"a: " + b"9" * 1_000_000 + b"\n",
}

_LINKS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "link-that-leads-nowhere": (("lake.yaml", "gone.yaml"),),
    "link-that-leads-outside": (("lake.yaml", "/etc/hosts"),),
    "link-to-itself": (("lake.yaml", "lake.yaml"),),
}


def _generated() -> list[Case]:
    big = [Case("generated", name, {**BASE, "big.yaml": make()}) for name, make in _BIG.items()]
    odd = {**BASE, "a\x1b[31m\n::error::forged.yaml": b"a: no\n"}
    names = [Case("generated", "file-name-with-line-end", odd)]
    return [*big, *names, *(Case("generated", name, BASE, each) for name, each in _LINKS.items())]


CASES = sorted([*_stored(), *_generated()], key=lambda case: case.id)
