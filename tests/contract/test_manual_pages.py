"""Manual pages: every command and option, as groff prints them without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import click
import pytest

from reconciler.commands.command import Command
from reconciler.commands.program import COMMANDS, command_of
from scripts.man import FOLDER, manual_pages
from tests.support.limits import TIMEOUT

_SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION")


@cache
def pages() -> dict[str, str]:
    return {name.removeprefix(f"{FOLDER}/"): text for name, text in manual_pages().items()}


def plain(text: str) -> str:
    """Return a page without the escapes of roff."""
    return re.sub(r"\\f[BR]", "", text).replace(r"\-", "-")


def test_every_command_has_a_page() -> None:
    assert set(pages()) == {"reconciler.1", *(f"reconciler-{name}.1" for name in COMMANDS)}
    for name in COMMANDS:
        assert f"reconciler-{name}(1)" in plain(pages()["reconciler.1"])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option_and_example(name: str) -> None:
    text = plain(pages()[f"reconciler-{name}.1"])
    headings = re.findall(r'^\.SH "?([^"\n]+)', text, re.MULTILINE)
    assert tuple(headings[:3]) == _SECTIONS
    command = command_of(name)
    assert isinstance(command, Command)
    for param in command.get_params(click.Context(command)):
        if isinstance(param, click.Option) and not param.hidden:
            assert all(written in text for written in param.opts), param.opts
    assert text.count("\n.nf\n") == text.count("\n.fi\n") == len(command.examples)
    assert text.isascii()


def test_no_line_of_text_is_a_request() -> None:
    known = r"\.(TH|SH|PP|TP|nf|fi|RS|RE)( |$)"
    for name, text in pages().items():
        for line in text.splitlines():
            assert not line.startswith((".", "'")) or re.match(known, line), (name, line)


def test_groff_prints_every_page() -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    for text in pages().values():
        printed = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww"],
            input=text.encode(),
            capture_output=True,
            timeout=TIMEOUT,
            check=True,
        )
        assert printed.stderr == b""
        assert b"SYNOPSIS" in re.sub(b"\x1b\\[[0-9;]*m|.\x08", b"", printed.stdout)
