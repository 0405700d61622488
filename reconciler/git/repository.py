"""Run git on one repository without variables, hooks and the network; name its trusted branch.

The repository is the first `.git` upwards from the workspace, and git is given its place. It never
looks for one, since the files of a pull request could look like a repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from posixpath import dirname, join, normpath
from typing import IO, TypeAlias, cast

from msgspec import Struct, field

from reconciler.errors import BadUsage, GitMissing, GitUnavailable
from reconciler.git.ci import HEADS, REMOTE_BRANCHES, TRUST_VARIABLE, default_branch_of
from reconciler.model.settings import API_KEY
from reconciler.model.text import printable, quoted
from reconciler.paths import (
    MAX_FILE_BYTES,
    WORKSPACE_FILE,
    YAML_SUFFIXES,
    content_id,
    is_own,
    too_large,
)
from reconciler.providers.env import SECRET_PREFIX
from reconciler.providers.file import is_hidden

HEAD = "HEAD"
_SECONDS = 60.0
_LINK, _FOLDER, _SUBMODULE = "120000", "40000", "160000"
"""Modes of entries of a tree that are no files."""
_IN_SUPERPROJECT = re.compile(r"\.git/(worktrees/[^/]+/)?modules/")
"""What the `.git` file of a submodule contains."""
_FULL_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_EXPRESSION = re.compile(r"[~^:]|@\{")
"""What begins the rest of an expression such as `main~3`. No name of a reference contains it."""
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_AUTHOR = ("-c", "user.name=reconciler", "-c", "user.email=reconciler@localhost")
_ISOLATED = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_LOCAL = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # Versions before 2.45 would fetch lazily.
}
_DROPPED = ("GIT_", API_KEY, SECRET_PREFIX)
"""Prefixes of variables that redirect git, or that it does not need."""
_FOR_PUSH = ("GIT_ASKPASS", "GIT_SSH", "GIT_CONFIG")
"""Prefixes of variables that say how to log in, which a push needs."""
_MOST_LINKS = 10
_Pipes: TypeAlias = tuple[IO[bytes], IO[bytes]]


class Entry(Struct, frozen=True):
    """A file in a commit: a regular one, or a link whose content is its target."""

    blob: str
    mode: str

    @property
    def is_link(self) -> bool:
        """Whether it is a link."""
        return self.mode == _LINK


class Repository(Struct, frozen=True):
    """A repository, and the path of a workspace in it, empty at its root.

    Methods raise GitUnavailable if git fails.
    """

    root: Path
    path: str

    @classmethod
    def containing(cls, folder: Path) -> Repository | None:
        """Return the repository of a folder, None outside of one."""
        folder = folder.resolve()
        for parent in (folder, *folder.parents):
            if (parent / ".git").exists():
                path = folder.relative_to(parent).as_posix()
                return cls(parent, "" if path == "." else path)
        return None

    def commit(self, ref: str) -> str | None:
        """Return the id of the commit that a reference names, None for an unknown one."""
        if ref.startswith("refs/"):
            # rev-parse would also find a tag of this full name, which is below refs/tags.
            full, *rest = _EXPRESSION.split(ref, maxsplit=1)
            tip = self.tip(full)
            if tip is None or not rest:
                return tip
        name = ["--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
        ended = self._run("rev-parse", *name)
        return _line(ended) if ended.returncode == 0 else None

    def tip(self, ref: str) -> str | None:
        """Return the id of the commit of a reference with exactly this full name."""
        references = self.references([ref])
        return next((commit for name, _, commit, _ in references if name == ref), None)

    @property
    def is_alone(self) -> bool:
        """Whether nothing in it came from another repository, as far as it shows."""
        ended = self._run("rev-parse", "--git-dir", "--git-common-dir")
        files = (Path(self.root, folder, "FETCH_HEAD") for folder in _line(ended).splitlines())
        if ended.returncode or self.is_nested or any(file.exists() for file in files):
            return False
        return not (self.is_shallow or self.remotes or any(self.references(["refs/remotes"])))

    @property
    def is_nested(self) -> bool:
        """Whether it may be a submodule: then its references came with the files of another one."""
        git = self.root / ".git"
        link = git.read_text(errors="replace") if git.is_file() else ""
        inside = any((parent / ".git").exists() for parent in self.root.parents)
        return inside or _IN_SUPERPROJECT.search(link) is not None

    def blob(self, commit: str, name: str) -> str | None:
        """Return the id of the content of a file of the workspace in a commit.

        None if it does not exist. Raises GitUnavailable for a link or a folder.
        """
        path = f"{self.path}/{name}" if self.path else name
        mode, kind, blob = self.entry(commit, path)
        if blob and (kind != "blob" or mode == _LINK):
            raise GitUnavailable(f"{printable(path)} in {commit[:7]} is not a regular file")
        return blob or None

    def link(self, commit: str, path: str) -> bytes | None:
        """Return the target of a link in a commit, None if there is no link at this path."""
        mode, _, blob = self.entry(commit, path)
        return Objects(self).read(blob, path) if mode == _LINK else None

    def entry(self, commit: str, path: str) -> Sequence[str]:
        """Return the mode, the type and the id of an entry in a commit, empty without one."""
        listed = _checked(self._run("ls-tree", "-z", "--full-tree", commit, "--", path)).stdout
        return listed.partition(b"\t")[0].decode().split() or ("", "", "")

    def references(self, patterns: Sequence[str]) -> Iterator[tuple[str, str, str, bool]]:
        """Yield the references to commits that full names or globs select, sorted by name.

        Each with the one that it refers to or "", its commit, and whether it is checked out.
        """
        # rev-parse also looks below refs/tags and refs/heads, and for-each-ref below the name.
        form = "--format=%(refname) %(symref) %(objecttype) %(objectname) %(HEAD)"
        listed = _checked(self._run("for-each-ref", form, "--", *patterns)).stdout
        for line in os.fsdecode(listed).splitlines():
            name, target, kind, named, current = line.split(" ", 4)
            commit = named if kind == "commit" else self.commit(named)
            if commit is not None:
                yield name, target, commit, current == "*"

    def branch(self) -> str | None:
        """Return the short name of the branch that is checked out, None for a detached HEAD."""
        name = self.symbolic_target(HEAD) or HEAD
        return name.removeprefix(HEADS) if name.startswith(HEADS) else None

    def branch_to_be(self) -> str | None:
        """Return the short name of the branch of the first commit, None for a detached HEAD."""
        name = _line(self._run("symbolic-ref", "--quiet", HEAD))
        return name.removeprefix(HEADS) if name.startswith(HEADS) else None

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the best common ancestor of two commits, None without one."""
        if one == other:
            return one
        ended = self._run("merge-base", "--end-of-options", one, other)
        return None if ended.returncode == 1 else _line(_checked(ended))

    def is_ancestor(self, ancestor: str, commit: str) -> bool:
        """Return whether a commit is an ancestor of another one, or the same."""
        return self.merge_base(ancestor, commit) == ancestor

    @property
    def is_shallow(self) -> bool:
        """Whether the clone lacks a part of the history."""
        return _line(_checked(self._run("rev-parse", "--is-shallow-repository"))) == "true"

    def symbolic_target(self, ref: str) -> str | None:
        """Return the full name of the reference that a symbolic one refers to."""
        ended = self._run("rev-parse", "--verify", "--quiet", "--symbolic-full-name", ref)
        return _line(ended) or None

    def times(self, commits: Iterable[str]) -> dict[str, datetime]:
        """Return the times of commits by their full ids, without those that the clone lacks.

        Other texts are left out: git reads options and expressions from its input, too.
        """
        wanted = "".join(f"{commit}\n" for commit in commits if _FULL_ID.fullmatch(commit))
        options = ("--timestamp", "--no-walk", "--ignore-missing", "--stdin")
        ended = _checked(self._run("rev-list", *options, stdin=wanted.encode()))
        lines = [line.split() for line in ended.stdout.decode().splitlines() if wanted]
        return {commit: datetime.fromtimestamp(int(time), tz=UTC) for time, commit in lines}

    def lacking(self, commits: Collection[str], head: str) -> Collection[str]:
        """Return those of some commits that are no ancestors of another one, and not it itself."""
        wanted = "".join(f"{commit}\n" for commit in (*commits, f"^{head}"))
        ended = _checked(self._run("rev-list", "--stdin", stdin=wanted.encode()))
        return set(commits).intersection(ended.stdout.decode().split()) if commits else set()

    def count_since(self, base: str, head: str) -> int:
        """Return the number of first-parent commits after `base` that touch the workspace."""
        below = ["--", self.path] if self.path else ["--"]
        count = ["--count", "--first-parent", f"{base}..{head}"]
        return int(_line(_checked(self._run("rev-list", *count, *below))))

    @property
    def is_sparse(self) -> bool:
        """Whether a sparse checkout leaves out YAML files."""
        listed = os.fsdecode(_checked(self._run("ls-files", "-t", "-z")).stdout).split("\0")
        return any(line[:2] == "S " and line.lower().endswith(YAML_SUFFIXES) for line in listed)

    def update_ref(self, ref: str, commit: str, former: str | None) -> None:
        """Move a reference from its former commit, None to create it."""
        old = former or "0" * len(commit)
        _checked(self._run("update-ref", "--no-deref", ref, commit, old))

    def commit_file(self, name: str, content: bytes, parents: Sequence[str]) -> str:
        """Write a commit with one file, and return its id."""
        blob = _line(_checked(self._run("hash-object", "-w", "--stdin", stdin=content)))
        entry = f"100644 blob {blob}\t{name}\n".encode()
        tree = _line(_checked(self._run("mktree", stdin=entry)))
        flags = [item for parent in parents for item in ("-p", parent)]
        message = b"Record what reconciler applied\n"
        return _line(_checked(self._run("commit-tree", tree, *flags, stdin=message, author=True)))

    def fetched(self, remote: str, ref: str) -> str | None:
        """Return the commit of a reference of a remote, with its objects; None without one."""
        listed = _checked(self._run("ls-remote", remote, ref, network=True)).stdout.decode()
        tips = [commit for commit, name in map(str.split, listed.splitlines()) if name == ref]
        if not tips:
            return None
        options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"]
        _checked(self._run("fetch", *options, remote, ref, network=True))
        return tips[0]

    def first_parents(self, tip: str) -> frozenset[str]:
        """Return a commit and its ancestors by first parents, as far as the clone has them."""
        listed = _checked(self._run("rev-list", "--first-parent", tip)).stdout.decode()
        return frozenset(listed.split())

    @property
    def remotes(self) -> Sequence[str]:
        """The names of the remotes."""
        names = self._run("config", "--name-only", "--get-regexp", r"^remote\..*\.url$").stdout
        return [name[len("remote.") : -len(".url")] for name in os.fsdecode(names).splitlines()]

    def push(self, remote: str, ref: str, commit: str, former: str | None) -> None:
        """Move a reference of a remote, if it still has its former commit."""
        lease = f"--force-with-lease={ref}:{former or ''}"
        options = ["--quiet", "--no-verify", "--no-follow-tags", "--recurse-submodules=no", lease]
        _checked(self._run("push", *options, remote, f"{commit}:{ref}", network=True))

    def reading(self) -> subprocess.Popen[bytes]:
        """Return a git process that prints the objects whose names are written to it."""
        return subprocess.Popen(  # noqa: S603 - no shell
            ["git", "--no-pager", *_SETTINGS, "cat-file", "--batch"],  # noqa: S607 - git of the PATH
            cwd=self.root,
            env=self._environment(network=False),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _run(
        self, *arguments: str, stdin: bytes = b"", network: bool = False, author: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git in the root of the repository. Raises GitUnavailable if it cannot run."""
        try:
            return subprocess.run(  # noqa: S603 - no shell; references are checked before
                ["git", "--no-pager", *_SETTINGS, *(_AUTHOR if author else ()), *arguments],  # noqa: S607 - git of the PATH
                cwd=self.root,
                env=self._environment(network=network),
                input=stdin,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
            )
        except FileNotFoundError:
            raise GitMissing(
                "git is not installed",
                hint="install git; `plan` and `apply` work without it with --no-inventory",
            ) from None
        except subprocess.TimeoutExpired:
            raise GitUnavailable(
                f"git {arguments[0]} timed out after {_SECONDS:g} seconds"
            ) from None

    def _environment(self, *, network: bool) -> dict[str, str]:
        """Return the variables of a git process, without inherited ones that redirect it."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_DROPPED) or (network and name.startswith(_FOR_PUSH))
        }
        place = {"GIT_DIR": str(self.root / ".git"), "GIT_WORK_TREE": str(self.root)}
        return {**kept, **_ISOLATED, **({} if network else _LOCAL), **place}


def _checked(ended: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[bytes]:
    """Return a process that ended well. Raises GitUnavailable with the message of git."""
    if ended.returncode == 0:
        return ended
    command = ended.args[len(_SETTINGS) + 2]
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    said = next((line for line in lines if line.startswith(("fatal:", "error:", " !"))), "")
    reason = printable(said.strip()) if said else f"exit code {ended.returncode}"
    raise GitUnavailable(f"git {command} failed: {reason}")


def _partial_clone() -> GitUnavailable:
    return GitUnavailable(
        "this partial clone lacks files of older commits", hint="clone without --filter"
    )


def _line(ended: subprocess.CompletedProcess[bytes]) -> str:
    return os.fsdecode(ended.stdout).strip()


# With a dict, since cached properties need one.
class Objects(Struct, dict=True, weakref=True):
    """The files and folders in commits, by id, which one git process reads."""

    repository: Repository
    contents: dict[str, bytes] = field(default_factory=dict)
    _trees: dict[str, str | None] = field(default_factory=dict)
    _folders: dict[str, Sequence[tuple[str, Entry]]] = field(default_factory=dict)

    @cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        process = self.repository.reading()
        weakref.finalize(self, _end, process)
        return process

    def tree(self, commit: str) -> str | None:
        """Return the tree of the workspace in a commit, None where it does not exist."""
        if commit not in self._trees:
            path = self.repository.path
            kind, tree, _ = self._object(f"{commit}:{path}" if path else f"{commit}^{{tree}}")
            self._trees[commit] = tree if kind == "tree" else None
        return self._trees[commit]

    def entries(self, tree: str) -> Mapping[str, Entry]:
        """Return the files and links below a tree by path. Submodules are left out."""
        entries, left = dict[str, Entry](), [("", tree)]
        while left:
            folder, item = left.pop()
            if item not in self._folders:
                self._folders[item] = [*_entries(self.content(item), len(item) // 2)]
            for name, entry in self._folders[item]:
                if entry.mode == _FOLDER:
                    left.append((f"{folder}{name}/", entry.blob))
                elif entry.mode != _SUBMODULE:
                    entries[f"{folder}{name}"] = entry
        return entries

    def read(self, blob: str, name: str) -> bytes:
        """Return the content of a blob, the file `name`. Raises UnreadableFile if it is large."""
        if blob not in self.contents:
            self.contents[blob] = self.content(blob, name)
        return self.contents[blob]

    def content(self, item: str, name: str = "") -> bytes:
        """Return the content of an object, which a partial clone may lack."""
        kind, _, content = self._object(item, name)
        if kind == "missing":
            raise _partial_clone()
        return content

    def _object(self, name: str, file: str = "") -> tuple[str, str, bytes]:
        """Return the type, the id and the content of an object, a file that must not be large."""
        stdin, stdout = cast("_Pipes", (self._process.stdin, self._process.stdout))
        with suppress(BrokenPipeError):
            stdin.write(os.fsencode(name.replace("\n", "")) + b"\n")
            stdin.flush()
        line = os.fsdecode(stdout.readline())
        if not line:
            raise _partial_clone()
        item, kind, *sizes = line.rsplit(maxsplit=2)
        if not sizes or not sizes[0].isdigit():
            return "missing", "", b""
        size = int(sizes[0])
        if file and size > MAX_FILE_BYTES:
            for start in range(0, size + 1, MAX_FILE_BYTES):
                stdout.read(min(MAX_FILE_BYTES, size + 1 - start))
            raise too_large(file, size)
        return kind, item, stdout.read(size + 1)[:-1]


def _entries(tree: bytes, size: int) -> Iterator[tuple[str, Entry]]:
    """Yield the entries of a folder by name, whose ids have so many bytes."""
    start = 0
    while start < len(tree):
        end = tree.index(b"\0", start)
        mode, _, name = tree[start:end].partition(b" ")
        start = end + 1 + size
        yield os.fsdecode(name), Entry(tree[end + 1 : start].hex(), mode.decode())


def _end(process: subprocess.Popen[bytes]) -> None:
    process.communicate()


# Without slots, since cached properties need a dict.
class GitSource(Struct, frozen=True, dict=True):
    """The files of a workspace in a commit, none for a workspace that does not exist there."""

    objects: Objects
    commit: str

    @property
    def tree(self) -> str | None:
        """The tree of the workspace."""
        return self.objects.tree(self.commit)

    @cached_property
    def _entries(self) -> Mapping[str, Entry]:
        return self.objects.entries(self.tree) if self.tree is not None else {}

    @cached_property
    def _names(self) -> Sequence[str]:
        # Folders are not among the entries, and links to them are not files.
        has_links = any(entry.is_link for entry in self._entries.values())
        names = self._entries if has_links else ()
        folders = {str(parent) for name in names for parent in PurePosixPath(name).parents}
        nested = {dirname(name) for name in self._entries if name.endswith(f"/{WORKSPACE_FILE}")}
        return sorted(
            name
            for name, entry in self._entries.items()
            if is_own(name, nested) and not (entry.is_link and self._target(name) in folders)
        )

    def names(self) -> Sequence[str]:
        """Return every file, without hidden and vendored ones and those of other workspaces."""
        return self._names

    def read(self, name: str) -> bytes | None:
        """Return the content of a file. Links to hidden files or out of the workspace have none.

        Raises UnreadableFile for a file that is too large.
        """
        blob = self._blob(name)
        return self.objects.read(blob, name) if blob is not None else None

    def has(self, name: str, content: str) -> bool:
        """Return whether a file has the content of an id. Git reads it only if its own id differs.

        Raises UnreadableFile for one that is too large.
        """
        if self._blob(name) == content:
            return True
        raw = self.read(name)
        return raw is not None and content_id(raw) == content

    def _blob(self, name: str) -> str | None:
        """Return the id of the content of a file, behind links too."""
        path = normpath(name)
        for _ in range(_MOST_LINKS):
            entry = self._entries.get(path)
            if entry is None or not entry.is_link:
                return entry.blob if entry is not None else None
            path = self._target(path)
            if is_hidden(path):
                return None
        return None

    def _target(self, link: str) -> str:
        text = self.objects.read(self._entries[link].blob, link).decode(errors="replace")
        return normpath(join(dirname(link), text))


def shallow_hint() -> str:
    """Return how to get the history that a shallow clone lacks."""
    return (
        "fetch the history of this shallow clone: `git fetch --unshallow`, or fetch-depth: 0 in "
        "the checkout step of the job"
    )


class TrustedBranch(Struct, frozen=True):
    """The full name of the trusted branch, and the commit at its tip."""

    ref: str
    commit: str


def trusted_branch(repository: Repository, environ: Mapping[str, str]) -> TrustedBranch | None:
    """Return the trusted branch, None if it is unknown here.

    Raises GitUnavailable if the one of the environment variable does not exist.
    """
    named = environ.get(TRUST_VARIABLE)
    if named and not named.startswith("refs/"):
        raise BadUsage(
            f"{TRUST_VARIABLE} is {quoted(named)}, not a full name",
            hint="use one such as refs/remotes/origin/main",
        )
    ref = named or default_branch_of(environ) or default_branch(repository)
    tip = repository.tip(ref) if ref is not None else None
    if ref is not None and tip is not None:
        return TrustedBranch(ref, tip)
    if named:
        raise GitUnavailable(
            f"the trusted branch {quoted(named)} of {TRUST_VARIABLE} does not exist",
            hint=f"fetch it, or correct {TRUST_VARIABLE}",
        )
    return None


def default_branch(repository: Repository) -> str | None:
    """Return the full name that HEAD of origin names, None if this clone does not know it.

    Whoever can push may make a branch of the name HEAD, which a fetch stores in its place, or a tag
    of its full name. Both name a commit and no branch.
    """
    head = f"{REMOTE_BRANCHES}{HEAD}"
    named = repository.symbolic_target(head)
    return named if named is not None and _is_branch_of(head, named) else None


def _is_branch_of(head: str, named: str) -> bool:
    return named != head and named.startswith(head.removesuffix(HEAD))
