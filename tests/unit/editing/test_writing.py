"""Files are written whole or not at all, and never outside the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.editing.writing import write_files
from reconciler.errors import ReconcilerError


def test_folders_are_made_and_line_ends_kept(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/b/c.yaml": "x: 1\r\ny: ä\n"})
    assert (tmp_path / "a/b/c.yaml").read_bytes() == "x: 1\r\ny: ä\n".encode()


@pytest.mark.parametrize("name", ["../out.yaml", "a/../../out.yaml", "/out.yaml", "link/out.yaml"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path)
    with pytest.raises(ReconcilerError, match="outside the workspace"):
        write_files(folder, {name: "x"})
    assert not (tmp_path / "out.yaml").exists()


@pytest.mark.parametrize("name", ["a.yaml", "a.yaml/b.yaml"])
def test_links_in_a_circle_are_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.yaml").symlink_to("a.yaml")
    with pytest.raises(ReconcilerError, match=f"{name} cannot be written"):
        write_files(tmp_path, {name: "x"})
    assert (tmp_path / "a.yaml").is_symlink()


def test_a_text_that_cannot_be_written_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_files(tmp_path, {"a.yaml": "\ud800"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
    assert (tmp_path / "a.yaml").read_text() == "old"


def test_what_the_system_refuses_is_told_with_the_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file")
    with pytest.raises(ReconcilerError, match=r"a/b.yaml cannot be written: "):
        write_files(tmp_path, {"a/b.yaml": "x"})


def test_one_file_that_is_refused_leaves_all_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("old")
    (tmp_path / "z.yaml").mkdir()
    with pytest.raises(ReconcilerError, match=r"z\.yaml cannot be written: it is a folder"):
        write_files(tmp_path, {"a.yaml": "new", "b.yaml": "new", "z.yaml": "new"})
    assert (tmp_path / "a.yaml").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "z.yaml"]
