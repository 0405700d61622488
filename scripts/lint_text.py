"""Check what readers see: plain words, links, paths, and what the pages list from the code."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
PLAINER: Mapping[str, str] = {
    r"told": "reported, shown, printed",
    r"tells": "reports, shows",
    r"somebody|someone else": "a user, another client",
    r"nobody": "no user",
    r"anew": "again, overwrite",
    r"by hand": "manually",
    r"live side": "live state",
    r"the files say": "the configuration",
    r"leads? nowhere": "cannot be resolved, does not exist",
    r"which there (?:is|are) not": "unknown …, not a …",
    r"(?:which|that) (?:is|are) none": "invalid …, not a …",
    r"not there yet": "does not exist yet",
    r"in doubt": "outcome unknown",
    r"the way out": "the fix, the hint",
    r"the way back": "undo, reversal",
    r"(?:the )?whole way": "end to end",
    r"doomed|condemned": "to delete, to prune",
    r"complain(?:s|ed|ing|ts?)?": "report",
    r"carried out|carry out": "applied, executed",
    r"blanks": "whitespace",
    r"(?:goes|go) with": "requires, is sent together with",
    r"brings": "requires, is sent together with",
    r"stands(?! for| out)|stood": "is, appears, is defined",
    r"meant": "intended, matching, selected",
    r"strangers?|colleagues?": "a user",
    r"houses?|floors?|doors?|rooms|a room": "package, module, layer",
}
"""Patterns of words that are never right here, with what to write. A space matches a line break."""
PATTERNS = {
    re.compile(rf"(?<![\w-])(?:{words})(?![\w-])".replace(" ", r"[\s\"#]+"), re.IGNORECASE): plainer
    for words, plainer in PLAINER.items()
}
PRIVATE = re.compile(
    r"service-facts|\btraps? \d+|design,? sections?|interface \d\.\d|fidelity-\d|[Ff]indings? A\d"
)
"""References to documents that are not in the repository."""
PYTHON = sorted((ROOT / "reconciler").rglob("*.py"))
PAGES = sorted(
    path
    for folder in ("", "docs/**/", "changelog.d/", "examples/**/")
    for path in ROOT.glob(f"{folder}*.md")
)
_SPOKEN = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def prose_of(path: Path) -> tuple[str, list[int]]:
    """Return what a file says to readers, and where each line of that is in the file.

    Of Python these are comments, docstrings and strings.
    """
    text = path.read_text(encoding="utf-8")
    pieces = [(1, text)]
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        pieces = [(token.start[0], token.string) for token in tokens if token.type in _SPOKEN]
    lines = [
        (start + offset, line)
        for start, piece in pieces
        for offset, line in enumerate(piece.split("\n"))
    ]
    return "\n".join(line for _, line in lines), [number for number, _ in lines]


def words() -> Iterator[str]:
    """Yield words that are not plain, and references that readers cannot follow."""
    suffixes = (".json", ".md", ".toml", ".yaml", ".yml")
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for name in ("docs", "examples", "schemas"):
        texts += [path for path in (ROOT / name).rglob("*") if path.suffix in suffixes]
    for path in (*PYTHON, *texts):
        prose, lines = prose_of(path)
        for pattern, plainer in PATTERNS.items():
            for match in pattern.finditer(prose):
                line = lines[prose.count("\n", 0, match.start())]
                yield f"{_name(path)}:{line}: {' '.join(match[0].split())!r}: write {plainer}"
    for path in (*PYTHON, *texts, *(ROOT / "tests").rglob("*.py")):
        for line, match in _matches(PRIVATE, path):
            yield f"{_name(path)}:{line}: {match[0]!r}: cite service.md, n.m"


def links() -> Iterator[str]:
    """Yield links that lead to no file or heading, and paths that do not exist."""
    for page in PAGES:
        for line, match in _matches(re.compile(r"\]\(([^)\s]+)\)"), page, re.compile(r"`[^`\n]*`")):
            path, _, anchor = match[1].partition("#")
            file = (page.parent / path).resolve() if path else page
            is_outside = re.match(r"[a-z]+:", match[1])
            if not is_outside and (not file.exists() or (anchor and anchor not in _anchors(file))):
                yield f"{_name(page)}:{line}: broken link {match[1]}"
    path_of = re.compile(r"`([\w./-]+/[\w.-]*\.(?:py|md|json|yaml)|[\w./-]+/)`")
    for name in ("CONTRIBUTING.md", "docs/inside/architecture.md", "docs/inside/maintaining.md"):
        for line, match in _matches(path_of, ROOT / name):
            if not any((folder / match[1]).exists() for folder in (ROOT, ROOT / "reconciler")):
                yield f"{name}:{line}: {match[1]} does not exist"


@cache
def _anchors(page: Path) -> frozenset[str]:
    """Return the anchors of the headings as GitHub makes them: a repeated one gets a number."""
    uses: Counter[str] = Counter()
    anchors = set()
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for heading in re.findall(r"^#{1,6} +(.+?) *$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        anchors.add(f"{slug}-{uses[slug]}" if uses[slug] else slug)
        uses[slug] += 1
    return frozenset(anchors)


def listed() -> Iterator[str]:
    """Yield environment variables without documentation, and messages that no code has."""
    page = ROOT / "docs/configuration.md"
    table = page.read_text(encoding="utf-8").split("\n## Environment variables\n")[1]
    documented = set(re.findall(r"`(RECONCILER_[A-Z_]+)\*?`", table.split("\n## ")[0]))
    code = "".join(path.read_text(encoding="utf-8") for path in PYTHON)
    names = set(re.findall(r'"(RECONCILER_[A-Z_]+)"', code))
    for name in sorted(documented ^ names):
        yield f"{_name(page)}: {name} is in the table or in the code, not in both"
    page = ROOT / "docs/troubleshooting.md"
    texts = "\n".join(_texts()).replace("`", "")
    for line, match in _matches(re.compile(r"^### (`.*)$"), page):
        for message in re.findall(r"`([^`]+)`", match[1]):
            if not all(part.strip() in texts for part in message.split("…")):
                yield f"{_name(page)}:{line}: no message of the program is {message!r}"


def _texts() -> Iterator[str]:
    """Yield every text of the package, the variable parts of messages as …."""
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (getattr(part, "value", "…") for part in node.values)
                yield "".join(part if isinstance(part, str) else "…" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def workflows() -> Iterator[str]:
    """Yield pins, scripts and versions of workflows that differ from those elsewhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = re.findall(r"Python :: 3\.(\d+)", " ".join(project["classifiers"]))
    versions = ", ".join(f'"3.{minor}"' for minor in minors)
    pins: dict[str, str] = {}
    files = sorted((ROOT / ".github/workflows").glob("*.yml"))
    for path in (*files, *(ROOT / "recipes/github").glob("*.yml")):
        for line, match in _matches(re.compile(r"uses: ([\w-]+/[\w/-]+)@(.*)$"), path):
            if pins.setdefault(match[1], match[2]) != match[2]:
                yield f"{_name(path)}:{line}: {match[1]} has another pin in another file"
    for path in files:
        for line, match in _matches(re.compile(r"run: ([\w.]+/\w+)"), path):
            if not (ROOT / match[1]).exists():
                yield f"{_name(path)}:{line}: {match[1]} does not exist"
        for line, match in _matches(re.compile(r" python: \[(.*)\]"), path):
            if match[1] != versions:
                yield f"{_name(path)}:{line}: the classifiers of pyproject.toml have {versions}"


RIGHTS = {
    "ci": {"contents": "read"},
    "docs": {"contents": "read"},
    "newest": {"contents": "read"},
    "release": {},
    "release gate": {"contents": "read"},
    "release build": {"contents": "read"},
    "docs deploy": {"pages": "write", "id-token": "write"},
    "release publish": {"id-token": "write", "attestations": "write"},
    "release announce": {"contents": "write"},
}
"""The rights of each workflow, and of jobs with others. Only jobs that publish may write."""


def rights() -> Iterator[str]:
    """Yield rights, secrets and runs of workflows that are not as few as possible."""
    found: dict[str, object] = {}
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        name, workflow = path.stem, yaml.safe_load(path.read_text(encoding="utf-8"))
        parts = {name: workflow, **{f"{name} {key}": job for key, job in workflow["jobs"].items()}}
        found |= {key: part["permissions"] for key, part in parts.items() if "permissions" in part}
        for key in parts.keys() - {name}:
            yield from _unsafe(key, parts[key])
        if "secrets" in path.read_text(encoding="utf-8"):
            yield f"{_name(path)}: use the rights of a job, not a secret"
        events = workflow[True]  # YAML 1.1 reads the key `on` as true.
        only_pulls = "${{ github.event_name == 'pull_request' }}"
        cancelled = only_pulls if "pull_request" in events else False
        if workflow["concurrency"]["cancel-in-progress"] != cancelled:
            yield f"{_name(path)}: cancel runs of pull requests, and no other runs"
        if name == "release":
            needed = [parts[f"release {key}"].get("needs") for key in ("publish", "announce")]
            uses, approval = parts["release gate"].get("uses"), parts["release publish"]
            if (events, needed, uses, approval.get("environment")) != (
                {"push": {"tags": ["v*"]}},
                [["gate", "build"], "publish"],
                "./.github/workflows/ci.yml",
                "release",
            ):
                yield f"{_name(path)}: a release needs a tag, the gate, the build and an approval"
    if found != RIGHTS:
        yield f".github/workflows: the permissions are {found}"


def _unsafe(name: str, job: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong in a job and its steps."""
    if "uses" not in job and job.get("timeout-minutes", 61) > 60:
        yield f"{name}: timeout-minutes of at most 60 are required"
    for step in job.get("steps", []):
        action = step.get("uses", "")
        if action and not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action):
            yield f"{name}: {action} is not pinned to a commit"
        is_checkout = action.startswith("actions/checkout@")
        if is_checkout and step.get("with", {}).get("persist-credentials") is not False:
            yield f"{name}: a checkout needs persist-credentials: false"
        if "${{" in step.get("run", ""):
            yield f"{name}: pass an expression to a script in a variable"


def _matches(
    pattern: re.Pattern[str], path: Path, removed: re.Pattern[str] = re.compile(r"(?!)")
) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield what matches in a file with its line, outside of fenced blocks of a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md" and pattern is not PRIVATE:
        text = _FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)
    for number, line in enumerate(text.splitlines(), start=1):
        for match in pattern.finditer(removed.sub("", line)):
            yield number, match


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main(checks: Sequence[Iterable[str]]) -> int:
    """Print the problems. Return 1 if there are some."""
    lines = [line for check in checks for line in check]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main([words(), links(), listed(), workflows(), rights()]))
