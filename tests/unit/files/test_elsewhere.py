"""What other YAML files declare, or may declare: then nothing of theirs is deleted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.files import resource_files
from reconciler.files.resource_files import declared_in_others
from reconciler.git.repository import Repository
from reconciler.model.resource import Desired
from reconciler.model.values import Address
from reconciler.paths import MAX_FILE_BYTES
from tests.support.cli import write
from tests.support.git import Git

SERVICE = Desired("one", "https://a.example", "o", {})
LAKE = Address("batch_export", "lake")
DECLARED = "batch_exports:\n  lake: {name: Lake, project: {name: Web}}\n"
LARGE = f"#{'x' * MAX_FILE_BYTES}\n{DECLARED}"


def reasons(root: Path) -> list[str]:
    """Return why a removed export is left in the workspace `w` of a repository."""
    Git.init(root)
    for name in ("w", "v"):
        (root / name).mkdir(exist_ok=True)
        if not (root / name / "reconciler.yaml").exists():
            (root / name / "reconciler.yaml").write_text("version: 1\n")
    read, names = [root / "w/reconciler.yaml"], {LAKE: ("Lake", "Web")}
    declared = declared_in_others(Repository(root, "w"), root / "w", read, names, service=SERVICE)
    return [reason for address, reason in declared if address == LAKE]


@pytest.mark.parametrize(
    ("text", "is_declared"),
    [
        (DECLARED.replace("Lake", "Pond"), False),
        (DECLARED.replace("Web", "App"), False),
        (DECLARED.replace("name: Lake", "name: 'L${x}'"), True),
        (DECLARED.replace("name: Lake", "name: {a: b}"), True),
        (DECLARED.replace("name: Lake", "overrides: {two: {name: Lake}}"), True),
        ("on: push\nmode: 0644\nrun: reconciler backfill lake\n", False),
        ("a: !!bool maybe\nb: !!timestamp x\n", False),
        (f"a: !Ref x\n{DECLARED}", True),
        (f"a: &a {{name: Lake}}\n{DECLARED.replace('name: Lake', '<<: *a')}", True),
        ("{{ if lake }}: [\n", True),
    ],
)
def test_files_of_others_are_read_as_any_reader_does(
    tmp_path: Path, text: str, *, is_declared: bool
) -> None:
    """A tag that the value does not fit stopped the plan."""
    write(tmp_path, {"v/b.yaml": text})
    assert reasons(tmp_path) == ["perhaps declared in v/b.yaml"] * is_declared


def _unreadable(path: Path) -> None:
    path.mkdir()
    (path / "x.yaml").write_text(DECLARED)
    path.chmod(0)


UNREAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "too large": (lambda path: path.write_text(LARGE), "v/b.yaml has 10,000,0"),
    "no UTF-8": (lambda path: path.write_bytes(DECLARED.encode("utf-16")), "v/b.yaml"),
    "a pipe": (os.mkfifo, "v/b.yaml: not a regular file"),
    "a broken link": (lambda path: path.symlink_to("none"), "v/b.yaml"),
    "a circle": (lambda path: path.symlink_to("b.yaml"), "v/b.yaml"),
    "a link out": (lambda path: path.symlink_to("/etc/hostname"), "v/b.yaml"),
    "an unreadable folder": (_unreadable, "v/b.yaml"),
}


@pytest.mark.parametrize(("make", "part"), UNREAD.values(), ids=UNREAD)
def test_a_file_that_is_not_read_may_declare_anything(
    tmp_path: Path, make: Callable[[Path], object], part: str
) -> None:
    """They were skipped, so what they declare was deleted."""
    path = tmp_path / "v/b.yaml"
    path.parent.mkdir()
    make(path)
    if path.is_dir() and os.access(path, os.R_OK):
        path.chmod(0o700)
        pytest.skip("this user reads every folder")
    (reason,) = reasons(tmp_path)
    assert reason.startswith("perhaps declared in another file: ")
    assert part in reason


def test_a_link_to_a_file_of_the_repository_is_read(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/b.yaml").symlink_to("../text")
    (tmp_path / "text").write_text(DECLARED)
    assert reasons(tmp_path) == ["perhaps declared in v/b.yaml"]


def test_more_entries_than_are_looked_at_may_declare_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource_files, "MAX_ENTRIES", 4)
    assert reasons(tmp_path) == []
    (tmp_path / "v/b.txt").touch()
    (reason,) = reasons(tmp_path)
    assert reason.endswith("more than 4 files and folders in the repository")


@pytest.mark.parametrize("organization", ["'${x}'", "other"])
def test_a_workspace_of_another_organization_does_not_count(
    tmp_path: Path, organization: str
) -> None:
    files = {"v/reconciler.yaml": f"organization: {organization}\n", "v/b.yaml": DECLARED}
    write(tmp_path, files)
    assert bool(reasons(tmp_path)) is (organization != "other")
