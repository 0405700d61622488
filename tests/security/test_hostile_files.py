"""Test files that are written to hang the reader, or to fill its memory or its output.

What is bounded is counted: files, bytes, nodes, steps and lines, never time. tests/corpus has bombs
of aliases, merges and depth.
"""

from __future__ import annotations

import json
import os
import random
import socket
import stat
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from reconciler import diagnostics
from reconciler import paths as limits
from reconciler.diagnostics import Diagnostic, Level, Mark
from reconciler.errors import ReconcilerError, UnreadableFile
from reconciler.files.loading import load_all
from reconciler.files.resource_files import fits_path
from reconciler.files.sources import FolderSource
from reconciler.git.repository import GitSource, Objects, Repository
from reconciler.kinds.batch_export.query import QueryText
from reconciler.render.ci_reports import diagnostics_as_github
from reconciler.render.diagnostics import diagnostics_as_text
from tests.conftest import LONG
from tests.support.cli import reconciler, write
from tests.support.git import Git
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

WORKSPACE = "version: 1\n"
PROJECT = "projects: {web: {name: '${var:v9}'}}\n"


def naming(*files: str) -> str:
    """Return a workspace file that names its resource files: they count whatever they contain."""
    return f"{WORKSPACE}resources: {json.dumps(files)}\n" if files else WORKSPACE


def checked(folder: Path, files: Mapping[str, str | bytes]) -> dict[str, Diagnostic]:
    """Return a diagnostic for each code of a workspace, whose files are named in it."""
    for name, content in {"reconciler.yaml": naming(*files), **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    diagnostics = load_all(folder, environ={})
    return {diagnostic.code: diagnostic for diagnostic in reversed(diagnostics)}


def limit(monkeypatch: pytest.MonkeyPatch, module: str, **limits_of: int) -> None:
    """Lower limits of a module, so that small files reach them."""
    for name, value in limits_of.items():
        monkeypatch.setattr(import_module(module), name, value)


def chained(first: int, last: int, value: str) -> str:
    """Return a workspace whose variables each repeat the one before: `%s` in a value."""
    before = ((number, f"${{var:v{number - 1}}}") for number in range(first + 1, last + 1))
    lines = [f"  v{number}: " + value.replace("%s", name) for number, name in before]
    return "\n".join([f"{WORKSPACE}vars:", f"  v{first}: lake", *lines, ""])


TENFOLD = "[" + "'%s', " * 10 + "]"


@pytest.mark.parametrize("glob", ["*a" * 99 + "b", "**/" * 99 + "b", "?*" * 99 + "b", "**a" * 99])
def test_security_13_patterns_do_not_backtrack(glob: str) -> None:
    assert not fits_path("a" * 64 + "/" + "a" * 4000 + "c", glob)
    assert not fits_path("/".join("a" * 40) + "b" + "c", glob)


@pytest.mark.parametrize("name", ["pipe.yaml", "reconciler.yaml"])
def test_security_13_a_pipe_does_not_hang(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"reconciler.yaml": WORKSPACE} if name == "pipe.yaml" else {})
    os.mkfifo(tmp_path / name)
    for command in ("validate", "plan"):
        ran = reconciler(command, "-C", tmp_path, environ={})
        assert ran.code == 1
        assert f"{name}: not a regular file" in ran.out + ran.err


def test_security_13_a_socket_and_a_folder_are_not_read(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "s.yaml"))
        source = FolderSource(tmp_path)
        with pytest.raises(UnreadableFile, match="not a regular file"):
            source.read("s.yaml")
    with pytest.raises(UnreadableFile, match="not a regular file"):
        source.read(".")


def test_security_13_a_large_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(900_000_000)  # Sparse: it has a size and no content.
    codes = checked(tmp_path, {})
    assert "900,000,000 bytes" in codes["file-too-large"].message
    with pytest.raises(UnreadableFile):
        FolderSource(tmp_path).read("large.yaml")


def test_security_13_the_number_of_files_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"{n}.yaml": "# lake\n" * 10 for n in range(9)}
    limit(monkeypatch, "reconciler.files.resource_files", MAX_FILES=8)
    assert "9 resource files" in checked(tmp_path, files)["workspace-too-large"].message


def test_security_13_deep_folders_are_walked(tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 100).mkdir(parents=True)
    assert FolderSource(tmp_path).names() == []


def test_security_13_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "root").symlink_to("/", target_is_directory=True)
    assert FolderSource(tmp_path).names() == ["a.yaml", "b.yaml"]
    assert checked(tmp_path, {})["unreadable-file"].at == Mark("a.yaml")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0)
    with pytest.raises(ReconcilerError, match="cannot read folder locked/"):
        FolderSource(tmp_path).names()
    (tmp_path / "locked").chmod(stat.S_IRWXU)


def test_security_13_a_commit_is_read_within_the_same_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, "reconciler.git.repository", MAX_FILE_BYTES=20)
    limit(monkeypatch, "reconciler.files.sources", MAX_FILE_BYTES=20)
    git = Git.init(tmp_path / "repository")
    write(git.folder, {"a.yaml": "a: 1\n", "b.yaml": "b: 1 # " + "lake" * 9})
    (git.folder / "c.yaml").symlink_to("../../outside.yaml")
    (git.folder / "d.yaml").symlink_to("/etc/hosts")
    git.commit()
    repository = Repository.containing(git.folder)
    assert repository is not None
    source = GitSource(Objects(repository), "HEAD")
    assert source.read("a.yaml") == b"a: 1\n"
    assert source.read("c.yaml") is source.read("d.yaml") is None
    with pytest.raises(UnreadableFile, match=r"b\.yaml has 43 bytes"):
        source.read("b.yaml")


def test_security_13_loading_stops_when_references_expand_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, "reconciler.files.references", MAX_TOTAL_EXPANDED=25)
    workspace = f"{WORKSPACE}vars: {{v9: lake}}\n"
    files = {
        "a.yaml": "projects:\n"
        + "".join(f"  p{n}: {{name: '${{var:v9}} {n}'}}\n" for n in range(50))
    }
    codes = checked(tmp_path, {"reconciler.yaml": workspace, **files})
    assert list(codes) == ["too-large-value"]
    assert "in total" in codes["too-large-value"].message


YAML = {
    "lists": ("[" + "[]," * 30_000 + "]", "file-too-large"),
    "anchors": ("[" + "".join(f"&a{n} x," for n in range(30_000)) + "]", "file-too-large"),
    "tags": ("".join(f"%TAG !a{n}! tag:x\n" for n in range(50)) + "---\na: 1\n", "bad-yaml"),
}
VARIABLES = {
    "tenfold": (chained(0, 9, TENFOLD), PROJECT, "100,000 values"),
    "lists in lists": (
        chained(0, limits.MAX_DEPTH + 2, "['%s']"),
        PROJECT.replace("v9", f"v{limits.MAX_DEPTH + 2}"),
        "levels deep",
    ),
}


@pytest.mark.parametrize(("text", "code"), YAML.values(), ids=YAML)
def test_security_13_yaml_bombs_are_bounded(
    text: str, code: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    limit(monkeypatch, "reconciler.files.yaml_construct", MAX_NODES=20_000)
    at = checked(tmp_path, {"a.yaml": text})[code].at
    assert at is not None
    assert at.file == "a.yaml"


@pytest.mark.parametrize(("workspace", "text", "message"), VARIABLES.values(), ids=VARIABLES)
def test_security_13_variables_are_bounded(
    workspace: str, text: str, message: str, tmp_path: Path
) -> None:
    codes = checked(tmp_path, {"reconciler.yaml": workspace, "a.yaml": text})
    assert message in codes["too-large-value"].message


def test_security_13_an_error_is_reported_once_for_all_aliases(tmp_path: Path) -> None:
    text = "a: &a [no]\nb: [" + "*a, " * 1_000 + "]"
    write(tmp_path, {"reconciler.yaml": naming("a.yaml"), "a.yaml": text})
    diagnostics = load_all(tmp_path, environ={})
    assert [diagnostic.code for diagnostic in diagnostics].count("ambiguous-boolean") == 1


def many(count: int) -> list[Diagnostic]:
    warnings = [Diagnostic("no-files", Level.WARNING, "w", at=Mark("a.yaml")) for _ in range(150)]
    long = "lake" * 9_999
    errors = [
        Diagnostic("unknown-field", Level.ERROR, long, at=Mark("b.yaml", n)) for n in range(count)
    ]
    return [*warnings, *errors]


def test_security_13_the_output_for_thousands_of_errors_is_short() -> None:
    text = diagnostics_as_text(many(2_000))
    assert len(text) < 300_000
    assert text.count("error: lake") == 1
    assert "  1,999 more like this: b.yaml:1:1, " in text
    assert text.endswith("2,000 errors, 150 warnings in 2 files\n")
    assert diagnostics_as_github(many(1_000)).count("::error ") == 100


def test_security_13_json_has_every_diagnostic(tmp_path: Path) -> None:
    mistakes = "".join(f"k{n}: 1\n" for n in range(300))
    write(tmp_path, {"reconciler.yaml": naming("a.yaml"), "a.yaml": mistakes})
    for output, path in (("json", "diagnostics"), ("sarif", "runs")):
        ran = reconciler("validate", "-C", tmp_path, "--format", output, environ={})
        content = json.loads(ran.out)[path]
        assert len(content if output == "json" else content[0]["results"]) == 300


def test_security_13_loading_stops_after_too_many_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert diagnostics.MAX_DIAGNOSTICS == 100_000
    monkeypatch.setattr("reconciler.diagnostics.MAX_DIAGNOSTICS", 100)
    write(tmp_path, {"reconciler.yaml": naming("a.yaml"), "a.yaml": "k: no\n" * 300})
    for command in ("validate", "plan"):
        ran = reconciler(command, "-C", tmp_path, environ={})
        assert ran.code == 1
        assert "stopped after 100 errors and warnings" in ran.out + ran.err


def hostile_text(dice: random.Random) -> str:
    """Return a file from a grammar of what readers dislike."""
    words = [
        *("no", "1e999", "'${var:v9}'", "${", "*a", "0o7", "~", "'", '"', "|", "?", "<<"),
        *("{<<:*a}", "[" * 300, "&a x", "!t x", "\t", "\x00", "x" * 5_000, "\ufeff", "- - - x"),
        "%TAG !a! b",
    ]
    keys = ["projects", "batch_exports", "a", "'<<'", "<<", "? [a]", "name", "password", "x" * 900]
    lines = []
    for _ in range(dice.randrange(1, 60)):
        key, indent = dice.choice(keys), "  " * dice.randrange(5)
        value = dice.choice(["", *words, "[" + ", ".join(dice.choices(words, k=8)) + "]"])
        lines.append(f"{indent}{key}: {value}" if dice.random() < 0.9 else indent + value)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(300 if LONG else 15))
def test_security_13_random_hostile_files_are_reported(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - not a secret
    value = "'" + "%s" * 10 + "'" if seed % 2 == 0 else TENFOLD
    workspace = chained(0, 9, value) if dice.random() < 0.5 else WORKSPACE
    files = {"reconciler.yaml": workspace, "a.yaml": hostile_text(dice), "b.yaml": PROJECT}
    write(tmp_path, files)
    for command in ("validate", "plan"):
        ran = reconciler(command, "-C", tmp_path, environ={})
        assert ran.code in (0, 1)
        assert "bug" not in ran.err
        assert len(ran.out + ran.err) < 500_000


@pytest.mark.parametrize("provider", ["env", "secret:file", "var", "nope"])
@pytest.mark.parametrize("output_format", ["text", "json"])
def test_security_n9_a_long_reference_is_not_printed(
    tmp_path: Path, provider: str, output_format: str
) -> None:
    text = f"projects: {{web: {{name: '${{{provider}:{'A' * 300_000}}}'}}}}\n"
    write(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    ran = reconciler("validate", "-C", tmp_path, "--format", output_format, environ={})
    assert ran.code == 1
    assert "a reference has more than 1,000 characters" in ran.out
    assert len(ran.out + ran.err) < 3_000


# Queries


def canonical(query: str) -> object:
    return QueryText().canonical(query)


def lines_run(query: str) -> int:
    """Return how many lines of code it takes to read a query."""
    count = 0

    def trace(*_: object) -> object:
        nonlocal count
        count += 1
        return trace

    former = sys.gettrace()
    sys.settrace(trace)
    try:
        canonical(query)
    finally:
        sys.settrace(former)
    return count


@pytest.mark.parametrize(
    "query",
    [
        f"select {'(' * 3_000}1{')' * 3_000}",
        f"select {'f(' * 3_000}1{')' * 3_000}",
        f"select {'not ' * 3_000}a",
        f"select a{' + 1' * 3_000}",
        f"select a {'is null ' * 3_000}",
    ],
    ids=["brackets", "calls", "prefixes", "operators", "tests"],
)
def test_security_s6_a_deeply_nested_query_is_compared_token_by_token(query: str) -> None:
    written = desired_of(project(), export(sql_query=query))
    live = live_of(live_project(), live_export(sql_query=query.replace(" ", "  ")))
    assert planned(written, live).empty
    assert canonical(query) != canonical(query.replace("1", "2").replace("a", "b"))


@pytest.mark.parametrize("repeated", [" and a = 1", " or (a and b)", " || a"])
def test_security_s6_a_long_query_takes_time_in_proportion_to_its_length(repeated: str) -> None:
    short, long = (lines_run(f"select a{repeated * times}") for times in (100, 1_000))
    assert long < 12 * short


def test_security_s6_a_comment_without_an_end_is_searched_for_its_end_once() -> None:
    assert canonical("select a /* b /* c") == "select a /* b /* c"


def test_security_s6_a_very_long_query_is_not_parsed() -> None:
    query = "select a from events where a = 1" + " and a = 1" * 10_000
    assert canonical(query) == query.upper().replace("A", "a").replace("EVENTS", "events").replace(
        "aND", "AND"
    )


def test_chains_of_operators_are_calls_with_many_arguments() -> None:
    query = "select 1 where (a and b) and c and (d or e or (f or g)) and and(h, i) = (j, k)"
    written = "SELECT 1 WHERE and(a, b, c, or(d, e, or(f, g)), equals(and(h, i), tuple(j, k)))"
    assert canonical(query) == written
    assert canonical("select and(a, b)[1] and c, (a || b).c || d") == (
        "SELECT and(and(a, b)[1], c), concat(concat(a, b).c, d)"
    )
