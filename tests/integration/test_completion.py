"""Completion: the protocol of every shell, and the values from files that may be broken."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.cli import Ran, reconciler, write
from tests.support.limits import TIMEOUT

ACME = ROOT / "examples/acme"
ENVIRONMENTS = ["production", "staging"]


def completed(shell: str, *words: str | Path) -> Ran:
    """Ask for the last word, as the script of a shell does."""
    texts = [str(word) for word in words]
    environ = {
        "_RECONCILER_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["reconciler", *texts]),
        "COMP_CWORD": texts[-1] if shell == "fish" else str(len(texts)),
    }
    ended = reconciler(environ=environ)
    assert (ended.code, ended.err) == (0, "")
    return ended


def values(*words: str | Path) -> list[str]:
    """Return the values for the last word."""
    lines = completed("bash", *words).out.splitlines()
    return [line.removeprefix("plain,") for line in lines if line]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_experience_34_other_shells_get_environments(shell: str) -> None:
    lines = completed(shell, "plan", "-C", ACME, "-e", "").out.replace("plain\n", "plain,")
    shown = [line for line in lines.splitlines() if line != "_"]
    assert shown == [f"plain,{name}" for name in ENVIRONMENTS]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("stat",), ["status"]),
        (("plan", "-C", ACME, "--target", "batch_export.web-p"), ["batch_export.web-persons-s3"]),
        (("plan", "-C", ACME, "--exclude", "web-p"), ["web-persons-s3"]),
        (("plan", "-C", ACME, "--project", ""), ["app", "internal", "web"]),
        (("plan", "--kind", ""), ["batch_export", "project"]),
        (("status", "-C", ACME, "project.i"), ["project.internal"]),
        (("compare", "-C", ACME, ""), ENVIRONMENTS),
        (("promote", "-C", ACME, "--from", "staging", "--to", "p"), ["production"]),
        (("projects", "-C", ACME, "show", "w"), ["web"]),
        (("show", "--format", "m"), ["markdown"]),
        (("apply", "pl"), ["file,pl"]),
    ],
)
def test_experience_34_words_are_completed(words: tuple[str, ...], expected: list[str]) -> None:
    assert values(*words) == expected


def test_the_workspace_above_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"reconciler.yaml": "environments: {one: {}}\n", "below/readme": ""})
    monkeypatch.chdir(tmp_path / "below")
    assert values("plan", "-e", "") == ["one"]


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"reconciler.yaml": "environments: [", "a.yaml": "projects: {ok: {name: A}}"},
        {"reconciler.yaml": "- 1", "a.yaml": "projects:\n  ok: {name: A}\n  - 1"},
        {"reconciler.yaml": "resources: ['../*.yaml', 7]", "a.yaml": "projects: 3"},
        {"reconciler.yaml": "environments: [a]\nresources: ['**/**/[']", "a.yaml": "[]"},
        {"reconciler.yaml": "environments: {'$(touch x)': {}, 'a b': {}, '*': {}, \"a\\nb\": {}}"},
        {"reconciler.yaml": "", "a.yaml": "projects: {'`id`': {}, 'a;b': {}, ${var.x}: {}}"},
        {"reconciler.yaml": "a: &a [*a]", "a.yaml": "projects: &p {<<: *p}"},
        {"reconciler.yaml/file": ""},
    ],
)
def test_files_that_are_broken_or_hostile_leave_values_out(
    tmp_path: Path, files: dict[str, str]
) -> None:
    folder = write(tmp_path, files)
    assert values("plan", "-C", folder, "-e", "") == []
    assert values("plan", "-C", folder, "--target", "") in ([], ["project.ok"])
    assert values("plan", "-C", folder / "missing", "--target", "") == []


def program_of(shell: str) -> str:
    """Return the program of a shell, or skip the test."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    return program


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_accepted_by_their_shell(shell: str, tmp_path: Path) -> None:
    script = reconciler("completion", shell)
    assert script.err == ""
    assert f"_RECONCILER_COMPLETE={shell}_complete" in script.out
    file = write(tmp_path, {"script": script.out}) / "script"
    subprocess.run([program_of(shell), "-n", file], check=True, timeout=TIMEOUT)


def test_bash_completes_environments(tmp_path: Path) -> None:
    bash, script = program_of("bash"), reconciler("completion", "bash").out
    program = tmp_path / "reconciler"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reconciler "$@"\n')
    program.chmod(0o700)
    lines = (
        "complete -p reconciler",
        f"COMP_WORDS=({program} plan -C {ACME} -e p) COMP_CWORD=5",
        f"_reconciler_completion {program}",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    )
    ended = subprocess.run(
        [bash, "--norc", "-c", "\n".join([script, *lines])],
        capture_output=True,
        timeout=TIMEOUT,
        check=True,
        text=True,
    )
    assert ended.stderr == ""
    registered, *replies = ended.stdout.splitlines()
    assert registered.endswith("-F _reconciler_completion reconciler")
    assert replies == ["production"]
