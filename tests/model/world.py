"""A world of the model: live state, versions of the files as commits, and what a user runs there.

Everything is plain data. `written` makes a clone of it, as a user would have one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from tests.support.cli import write
from tests.support.git import Git
from tests.support.inventories import write_inventory


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes values that occur twice without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - called so
        return True


Files = dict[str, Any]
"""The values of the files by name; `reconciler.yaml` is one of them."""
SECRETS = {f"RECONCILER_SECRET_{name}": f"the-secret-{name}" for name in ("A", "B", "C")}


@dataclass
class Commit:
    """The files at a commit. `parents` are numbers of earlier commits, the first parent first."""

    files: Files
    parents: tuple[int, ...] = ()


Sent = tuple[str, ...]
"""What decided the secrets of a resource: its version, then each path with its reference."""
ELSEWHERE = "Elsewhere"
"""The project of another organization."""
LOST = -1
"""A commit that the clone lacks."""


@dataclass(frozen=True)
class Entry:
    """What was applied to an address. `commit` is a number, None for files without commit."""

    id: str
    name: str
    parent: str | None
    commit: int | None
    sent: Sent | None = None


@dataclass
class World:
    """Live state, a clone and options.

    projects
        The live projects with their exports, as the embedded service is planted with them.
    commits, head, branch
        The commits, and what is checked out.
    default
        The commit of origin/main, None without a remote.
    record, newest
        The entries of the inventory by address, None without one, and the newest applied commit.
    work, later
        The files of the checkout, and those after a plan was saved, if they change.
    sparse
        The files that the checkout leaves out.
    job
        Whether a CI job runs the commands.
    """

    seed: int
    dialect: str
    projects: list[dict[str, Any]]
    commits: list[Commit]
    head: int
    work: Files
    branch: str = "main"
    default: int | None = None
    record: dict[str, Entry] | None = None
    newest: int = 0
    no_inventory: bool = False
    rollback: bool = False
    sparse: tuple[str, ...] = ()
    job: bool = False
    environment: str = "one"
    targets: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    rotate: tuple[str, ...] = ()
    allow_replace: bool = False
    later: Files | None = None
    log: list[str] = field(default_factory=list)

    @property
    def is_partial(self) -> bool:
        """Whether options select resources."""
        return bool(self.targets or self.excludes or self.parents or self.kinds)

    def whole(self) -> World:
        """Return the world without options that select."""
        return replace(self, targets=(), excludes=(), parents=(), kinds=(), rotate=())

    @property
    def left_out(self) -> list[str]:
        """The files of HEAD that the checkout leaves out."""
        return [name for name in self.sparse if name in self.commits[self.head].files]

    def ancestors(self, commit: int | None) -> set[int]:
        """Return a commit and everything before it."""
        found: set[int] = set()
        left = [] if commit is None else [commit]
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                left += self.commits[number].parents
        return found

    def first_parents(self, commit: int | None) -> set[int]:
        """Return a commit and those before it in which only first parents are followed."""
        found: set[int] = set()
        while commit is not None:
            found.add(commit)
            commit = next(iter(self.commits[commit].parents), None)
        return found


def written(world: World, folder: Path) -> list[str]:
    """Write the clone of a world; return the ids of the commits."""
    git = Git.init(folder)
    marks = folder / ".git/marks"
    stream = "".join(_stream(world)).encode()
    subprocess.run(
        ["git", "fast-import", "--quiet", f"--export-marks={marks}"],
        cwd=folder,
        input=stream,
        check=True,
    )
    lines = (line.split() for line in marks.read_text(encoding="utf-8").splitlines())
    ids = {int(mark[1:]) - 1: commit for mark, commit in lines}
    texts = {"HEAD": f"ref: refs/heads/{world.branch}"}
    texts[f"refs/heads/{world.branch}"] = ids[world.head]
    if world.default is not None:
        texts["refs/remotes/origin/main"] = ids[world.default]
        texts["refs/remotes/origin/HEAD"] = "ref: refs/remotes/origin/main"
        with (folder / ".git/config").open("a", encoding="utf-8") as file:
            file.write('[remote "origin"]\n\turl = /none\n')
            file.write("\tfetch = +refs/heads/*:refs/remotes/origin/*\n")
    write(folder, {f".git/{name}": f"{text}\n" for name, text in texts.items()})
    git.run("read-tree", "HEAD")
    if world.left_out:
        git.run("update-index", "--skip-worktree", *world.left_out)
    checkout(world, folder, world.work)
    return [ids[number] for number in range(len(world.commits))]


def write_record(world: World, folder: Path, ids: list[str], ref: str) -> None:
    """Write the inventory of a world at a reference."""
    if world.record is None:
        return
    lines = {address: line_of(entry, ids) for address, entry in world.record.items()}
    write_inventory(folder, ref, ids[world.newest], lines)


def line_of(entry: Entry, ids: list[str]) -> dict[str, str]:
    commit = None if entry.commit is None else "0" * 39 + "1"
    commit = ids[entry.commit] if entry.commit not in (None, LOST) else commit
    sent = None if entry.sent is None else sha256("\n".join(entry.sent).encode()).hexdigest()[:12]
    names = {"id": entry.id, "name": entry.name, "parent": entry.parent}
    line = names | {"commit": commit, "secrets": sent}
    return {key: value for key, value in line.items() if value is not None}


def checkout(world: World, folder: Path, files: Files) -> None:
    """Write files into the checkout in place of those that are there."""
    for path in folder.glob("*.yaml"):
        path.unlink()
    write(folder, {name: text_of(files[name]) for name in files if name not in world.sparse})


def checked_out(world: World) -> Files:
    return {name: value for name, value in world.work.items() if name not in world.sparse}


def text_of(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False)


def _stream(world: World) -> Iterator[str]:
    for number, commit in enumerate(world.commits):
        yield f"commit refs/heads/c{number}\nmark :{number + 1}\n"
        yield f"committer T <t@t.example> {1_770_000_000 + number * 3600} +0000\ndata 1\nx\n"
        for place, parent in enumerate(commit.parents):
            yield f"{'merge' if place else 'from'} :{parent + 1}\n"
        yield "deleteall\n"
        for name, value in commit.files.items():
            text = text_of(value)
            yield f"M 644 inline {name}\ndata {len(text.encode())}\n{text}\n"
        yield "\n"


def seed_of(world: World, organization: str, key: str) -> Mapping[str, Any]:
    """Return what the embedded service is planted with."""
    integrations = [
        {"id": 100 + project["id"], "project": project["id"], "kind": "aws-s3", "keyless": False}
        for project in world.projects
    ]
    # The service never uses an id of a deleted project again.
    other = [{"id": 100, "name": ELSEWHERE}]
    return {
        "organizations": [
            {"id": organization, "name": "Acme", "projects": world.projects},
            {"id": organization.replace("0188", "0199"), "name": "Other", "projects": other},
        ],
        "keys": [{"value": key}],
        "integrations": integrations if world.dialect == "2026" else [],
    }
