"""Files are written whole or not at all, and never outside the workspace."""

from __future__ import annotations

import os
from errno import EROFS
from pathlib import Path

import pytest

from reconciler.editing.writing import write_files
from reconciler.errors import ReconcilerError


def test_folders_are_made_and_line_ends_kept(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/b/c.yaml": "x: 1\r\ny: ä\n"})
    assert (tmp_path / "a/b/c.yaml").read_bytes() == "x: 1\r\ny: ä\n".encode()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a/../../out.yaml", "outside the workspace"),
        ("/out.yaml", "outside the workspace"),
        ("link/out.yaml", "outside the workspace"),
        ("loop.yaml", "loop.yaml can't be written"),
        ("file/b.yaml", "file/b.yaml can't be written: "),
        ("folder", "folder can't be written: it is a folder"),
        ("last.yaml", "surrogates not allowed"),
    ],
)
def test_one_file_that_is_refused_leaves_all_as_they_were(
    tmp_path: Path, name: str, message: str
) -> None:
    folder = tmp_path / "workspace"
    (folder / "folder").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path)
    (folder / "loop.yaml").symlink_to("loop.yaml")
    for file in ("a.yaml", "file", "last.yaml"):
        (folder / file).write_text("old")
    before = {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")}
    # A text that cannot be encoded is noticed when it is written.
    is_text = name == "last.yaml"
    error, text = (UnicodeEncodeError, "\ud800") if is_text else (ReconcilerError, "x")
    with pytest.raises(error, match=message):
        write_files(folder, {"a.yaml": "new", "b.yaml": "new", name: text})
    assert {path: path.is_file() and path.read_text() for path in tmp_path.rglob("*")} == before
    assert (folder / "loop.yaml").is_symlink()


def test_an_error_on_a_read_only_file_system_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux refuses there to remove a file that does not exist, too."""

    def refuse(path: Path, *_: int) -> int:
        raise OSError(EROFS, os.strerror(EROFS), str(path))

    monkeypatch.setattr(os, "open", refuse)
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(ReconcilerError) as caught:
        write_files(tmp_path, {"a.yaml": "new"})
    assert caught.value.message == "a.yaml can't be written: Read-only file system"
