"""`reconciler fmt`: what it writes, what it shows, and what it refuses."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.cli import reconciler, write

TIDY = "projects:\n  app: {name: App}\n"
UNTIDY = "projects:\n  web:\n    timezone: UTC  # for now\n    name: Web\n"
IN_ORDER = "projects:\n  web:\n    name: Web\n    timezone: UTC  # for now\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(
        tmp_path / "workspace",
        {"reconciler.yaml": "version: 1\n", "a/tidy.yaml": TIDY, "b/untidy.yaml": UNTIDY},
    )


def test_files_are_formatted_and_listed(workspace: Path) -> None:
    ran = reconciler("fmt", "-C", workspace)
    assert (ran.code, ran.out) == (0, "b/untidy.yaml\n")
    assert ran.err == "1 file formatted, 2 files unchanged\n"
    assert (workspace / "b/untidy.yaml").read_text() == IN_ORDER
    again = reconciler("fmt", "-C", workspace)
    assert (again.code, again.out, again.err) == (0, "", "3 files unchanged\n")


def test_check_lists_the_files_and_writes_nothing(workspace: Path) -> None:
    ran = reconciler("fmt", "-C", workspace, "--check")
    assert (ran.code, ran.out) == (1, "b/untidy.yaml\n")
    assert "1 file would be formatted, 2 files unchanged\n" in ran.err
    assert (workspace / "b/untidy.yaml").read_text() == UNTIDY
    reconciler("fmt", "-C", workspace)
    assert reconciler("fmt", "-C", workspace, "--check").code == 0


def test_diff_shows_what_would_change_and_writes_nothing(workspace: Path) -> None:
    ran = reconciler("fmt", "-C", workspace, "--diff")
    assert ran.code == 0
    assert ran.out == (
        "--- a/b/untidy.yaml\n"
        "+++ b/b/untidy.yaml\n"
        "@@ -1,4 +1,4 @@\n"
        " projects:\n"
        "   web:\n"
        "+    name: Web\n"
        "     timezone: UTC  # for now\n"
        "-    name: Web\n"
    )
    assert (workspace / "b/untidy.yaml").read_text() == UNTIDY
    assert reconciler("fmt", "-C", workspace, "--diff", "--check").code == 1


def test_a_diff_shows_no_secret(workspace: Path) -> None:
    secrets = ["phx_literal", "old-one-1", "AKIAQUOTED", "MIIEline", "MIIEmore", "s3cret", "dflt99"]
    write(
        workspace,
        {
            "reconciler.yaml": (
                "environments:\n"
                "    staging:\n"
                "        api_key: phx_literal   # before: api_key: old-one-1\n"
                "        # phx_literal is not to be found anywhere\n"
                "        base_url: https://x.example\n"
                "version: 1"
            ),
            "b/untidy.yaml": (
                "batch_exports:\n"
                "    lake:\n"
                "        destination:\n"
                "            config:\n"
                '                "aws_secret_access_key": "AKIAQUOTED"\n'
                "                aws_access_key_id: ${secret:env:SHOWN}\n"
                "                private_key: |\n"
                "                    MIIEline\n"
                "\n"
                "                    MIIEmore\n"
                "                private_key_passphrase: 's3cret\n"
                "                    s3cret'\n"
                "                password: ${env:PASSWORD:-dflt99}\n"
                "                type: {password: s3cret, user: x}\n"
                "        name: Lake\n"
            ),
        },
    )
    ran = reconciler("fmt", "-C", workspace, "--diff")
    assert ran.code == 0
    for secret in secrets:
        assert secret not in ran.out + ran.err
    assert "+        aws_access_key_id: ${secret:env:SHOWN}" in ran.out
    assert "api_key: ***   # before: api_key: ***" in ran.out
    assert "\\ No newline at end of file" in ran.out
    assert len(re.findall(r"^\+ +\*\*\*$", ran.out, re.MULTILINE)) == 3


def test_only_the_named_files_and_folders_are_formatted(workspace: Path) -> None:
    write(workspace, {"c/more.yaml": UNTIDY.replace("web", "web2")})
    ran = reconciler("fmt", "-C", workspace, workspace / "b")
    assert (ran.out, ran.err) == ("b/untidy.yaml\n", "1 file formatted\n")
    ran = reconciler("fmt", "-C", workspace, workspace / "a/tidy.yaml", workspace / "c/more.yaml")
    assert ran.out == "c/more.yaml\n"


def test_a_file_outside_the_workspace_is_refused(workspace: Path) -> None:
    elsewhere = write(workspace.parent, {"other.yaml": UNTIDY}) / "other.yaml"
    write(workspace, {"reconciler.yaml": "version: 1\nresources: ['a/*.yaml']\n"})
    for path in (elsewhere, workspace / "b/untidy.yaml"):
        ran = reconciler("fmt", "-C", workspace, path)
        assert ran.code == 64
        assert "is not a file of this workspace" in ran.err
    ran = reconciler("fmt", "-C", workspace, workspace / "none.yaml")
    assert ran.code == 64
    assert "does not exist" in ran.err
    assert elsewhere.read_text() == UNTIDY


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"c.yaml": "projects: {web: {name: no}}\n"}, "c.yaml:1:24"),
        ({"c.yaml": "projects:\n  x: {}\n  x: {}\n"}, "c.yaml:3:3"),
        ({"c.yaml": "projects: b: c\n"}, "c.yaml:1:12"),
        ({"reconciler.yaml": "version: 1\nversion: 1\n"}, "reconciler.yaml:2:1"),
        ({"reconciler.yaml": "version: 1\nresources: b/*.yaml\n"}, "reconciler.yaml:2:12"),
    ],
)
def test_a_mistake_is_reported_and_nothing_is_written(
    workspace: Path, files: dict[str, str], code: str
) -> None:
    write(workspace, files)
    ran = reconciler("fmt", "-C", workspace)
    assert ran.code == 1
    assert ran.out == ""
    assert code in ran.err
    assert (workspace / "b/untidy.yaml").read_text() == UNTIDY


def test_without_a_workspace_no_file_is_touched(tmp_path: Path) -> None:
    write(tmp_path, {"untidy.yaml": UNTIDY})
    ran = reconciler("fmt", "-C", tmp_path)
    assert ran.code == 1
    assert "no reconciler.yaml in this folder" in ran.err
    assert (tmp_path / "untidy.yaml").read_text() == UNTIDY


def test_modes_line_ends_and_inner_links_are_kept(workspace: Path) -> None:
    private = workspace / "b/private.yaml"
    private.write_bytes(UNTIDY.replace("web", "private").replace("\n", "\r\n").encode())
    private.chmod(0o640)
    link = workspace / "b/link.yml"
    link.symlink_to("untidy.yaml")
    ran = reconciler("fmt", "-C", workspace)
    assert ran.code == 0
    assert private.read_bytes() == IN_ORDER.replace("web", "private").replace("\n", "\r\n").encode()
    assert stat.S_IMODE(private.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert (workspace / "b/untidy.yaml").read_text() == IN_ORDER
    assert sorted(path.name for path in (workspace / "b").iterdir()) == [
        "link.yml",
        "private.yaml",
        "untidy.yaml",
    ]


def test_a_link_to_a_file_outside_is_reported_and_not_followed(workspace: Path) -> None:
    elsewhere = write(workspace.parent, {"other.yaml": UNTIDY}) / "other.yaml"
    (workspace / "link.yaml").symlink_to(elsewhere)
    ran = reconciler("fmt", "-C", workspace)
    assert ran.code == 1
    assert "cannot read link.yaml" in ran.err
    assert elsewhere.read_text() == UNTIDY
    assert (workspace / "b/untidy.yaml").read_text() == UNTIDY


def test_a_file_that_cannot_be_formatted_is_a_warning(workspace: Path) -> None:
    write(workspace, {"b/untidy.yaml": "batch_exports:\n  a:\n    sql_query: |\n      select 1"})
    ran = reconciler("fmt", "-C", workspace)
    assert (ran.code, ran.out) == (0, "")
    assert "end it with a line break" in ran.err
    assert ran.err.endswith("2 files unchanged, 1 file skipped\n")


def test_the_examples_are_formatted() -> None:
    for workspace in (path.parent for path in (ROOT / "examples").rglob("reconciler.yaml")):
        ran = reconciler("fmt", "-C", workspace, "--check")
        assert (ran.code, ran.out) == (0, "")


# From stdin, as editors do


@pytest.mark.parametrize("text", [UNTIDY, IN_ORDER, "", "# only\n"])
def test_experience_wish_a_text_on_stdin_is_formatted_to_stdout(tmp_path: Path, text: str) -> None:
    ran = reconciler("fmt", "-", "-C", tmp_path / "none", stdin=text)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (IN_ORDER if text == UNTIDY else text)


def test_line_ends_on_stdin_are_kept() -> None:
    ran = reconciler("fmt", "-", stdin=UNTIDY.replace("\n", "\r\n"))
    assert ran.out == IN_ORDER.replace("\n", "\r\n")


def test_a_mistake_on_stdin_is_reported_with_its_name_and_nothing_is_printed() -> None:
    for options, name in (((), "<stdin>"), (("--stdin-filename", "a/b.yaml"), "a/b.yaml")):
        ran = reconciler("fmt", "-", *options, stdin="projects: b: c\n")
        assert (ran.code, ran.out) == (1, "")
        assert f"{name}:1:12: error: " in ran.err


def test_check_and_diff_of_stdin() -> None:
    ran = reconciler("fmt", "--check", "-", "--stdin-filename", "a.yaml", stdin=UNTIDY)
    assert (ran.code, ran.out) == (1, "a.yaml\n")
    assert reconciler("fmt", "--check", "-", stdin=IN_ORDER).code == 0
    ran = reconciler("fmt", "--diff", "-", stdin=UNTIDY)
    assert ran.code == 0
    assert ran.out.startswith("--- a/<stdin>\n+++ b/<stdin>\n")


def test_the_name_of_stdin_selects_the_order_of_the_workspace_file() -> None:
    text = "environments: {}\nversion: 1\n"
    assert reconciler("fmt", "-", stdin=text).out == text
    ran = reconciler("fmt", "-", "--stdin-filename", "pipelines/reconciler.yaml", stdin=text)
    assert ran.out == "version: 1\n\nenvironments: {}\n"


def test_a_text_that_cannot_be_formatted_is_printed_unchanged_with_a_warning() -> None:
    text = "batch_exports:\n  a:\n    sql_query: |\n      select 1"
    ran = reconciler("fmt", "-", stdin=text)
    assert (ran.code, ran.out) == (0, text)
    assert "cannot be formatted" in ran.err


def test_a_text_that_would_not_be_printed_as_it_is_is_refused() -> None:
    ran = reconciler("fmt", "-", stdin="# ##[error]stop\nprojects: {}\n")
    assert (ran.code, ran.out) == (1, "")
    assert "not printed" in ran.err


@pytest.mark.parametrize("words", [("-", "a.yaml"), ("--stdin-filename", "a.yaml")])
def test_stdin_and_files_exclude_each_other(workspace: Path, words: tuple[str, ...]) -> None:
    assert reconciler("fmt", "-C", workspace, *words).code == 64
