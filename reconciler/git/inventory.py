"""Keep the inventory in git: a commit with one file, at a reference of its own.

The parents of the commit are the newest applied commit and the former inventory, so git keeps what
entries name. It is data, not trust: whoever may push can write it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from reconciler.errors import GitUnavailable
from reconciler.git.repository import Objects, Repository
from reconciler.kinds import kinds_by_name
from reconciler.model.resource import Entry
from reconciler.model.text import quoted
from reconciler.model.values import Address

REMOTE = "origin"
REFS = "refs/reconciler"
_FILE = "inventory.json"
_TRIES = 3
_LONGEST_NAME = 60
_PORTS = {"http": 80, "https": 443}
_Entries: TypeAlias = Mapping[Address, Entry]
_Changes: TypeAlias = Mapping[Address, Entry | None]


def ref_of(repository: Repository, environment: str, base_url: str, organization: str) -> str:
    """Return the full name of the reference of an environment of a workspace."""
    url = urlsplit(base_url)
    port = "" if url.port in (None, _PORTS.get(url.scheme.lower())) else f":{url.port}"
    address = f"{url.scheme.lower()}://{(url.hostname or '').lower()}{port}{url.path.rstrip('/')}"
    parts = [repository.path, environment, address, organization]
    digest = sha256("\n".join(parts).encode()).hexdigest()[:12]
    words = re.sub("[^a-z0-9]+", "-", "-".join(filter(None, parts[:2])).lower())
    return f"{REFS}/{words.strip('-')[:_LONGEST_NAME].strip('-')}-{digest}"


def read_entries(repository: Repository, commit: str | None) -> _Entries:
    """Return the entries of an inventory. Raises GitUnavailable for one that cannot be read."""
    if commit is None:
        return {}
    blob = repository.entry(commit, _FILE)[2]
    if not blob:
        raise damaged(commit, f"it has no {_FILE}")
    try:
        lines = msgspec.json.decode(Objects(repository).content(blob), type=dict[str, Entry])
        entries = {Address.parse(text): entry for text, entry in lines.items()}
    except ValueError as error:
        raise damaged(commit, str(error)) from None
    if unknown := sorted({at.kind for at in entries} - kinds_by_name().keys()):
        raise damaged(commit, f"unknown kind {quoted(unknown[0])}")
    return entries


def damaged(commit: str, reason: str) -> GitUnavailable:
    """Return the error of an inventory that cannot be used."""
    hint = "delete its reference (`doctor` prints the commands); the next apply writes it again"
    return GitUnavailable(f"the inventory {commit[:7]} cannot be read: {reason}", hint=hint)


def record(
    repository: Repository, ref: str, head: str, own: _Changes, *, began: str | None, push: bool
) -> None:
    """Write what a run applied, None for what left, and push it.

    `began` is the inventory that the run began from: what another run recorded since is kept.
    """
    base = read_entries(repository, began)
    for tries_left in reversed(range(_TRIES)):
        tip = repository.fetched(REMOTE, ref) if push else repository.tip(ref)
        theirs = read_entries(repository, tip)
        entries, commit = _merged(base, own, theirs), tip
        if commit is None or entries != theirs or repository.commit(f"{commit}^1") != head:
            commit = _written(repository, entries, [head, *filter(None, [tip])])
        try:
            if push and commit != tip:
                repository.push(REMOTE, ref, commit, tip)
            if commit != (local := repository.tip(ref)):
                repository.update_ref(ref, commit, local)
        except GitUnavailable:
            if not tries_left:
                raise
        else:
            return


def _written(repository: Repository, entries: _Entries, parents: list[str]) -> str:
    lines = [msgspec.json.encode({str(at): entries[at]})[1:-1] for at in sorted(entries)]
    return repository.commit_file(_FILE, b"{\n" + b",\n".join(lines) + b"\n}\n", parents)


def _merged(base: _Entries, own: _Changes, theirs: _Entries) -> _Entries:
    """Return the entries of others with those that this run changed or dropped.

    If the others have other secrets now, it is not known which of them were sent last.
    """
    changed = {at: mine for at, mine in own.items() if mine != base.get(at)}
    for at, other in theirs.items():
        mine = own.get(at)
        if mine and other != base.get(at) and other.secrets != mine.secrets:
            changed[at] = replace(changed.get(at) or other, secrets=None)
    return {at: entry for at, entry in {**theirs, **changed}.items() if entry is not None}
