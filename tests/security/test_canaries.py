"""Canaries: secrets of all shapes and sources, looked for in all output and all files written."""

from __future__ import annotations

import base64
import html
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.conftest import LONG
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.workspaces import lake

_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"
SHAPES = {
    "three characters": "q7Z",
    "quotes": 'it\'s "q7Z4" `x`',
    "lines": "{first-line-q7Z4-1\nsecond-line-q7Z4-2\n\tthird-line-q7Z4-3}",
    "pem": "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(f"{_LINE}{number:02}/q7+" for number in range(24))
    + "\n-----END PRIVATE KEY-----",
    "unicode": "pässwörd-日本-✓-q7Z4",
    "json": json.dumps({"type": "x", "private_key": f"{_LINE}\nq7Z4/{_LINE}", "id": "q7Z4"}),
    "base64": base64.b64encode(b"\x00\xffq7Z4-canary-of-bytes\xfe").decode(),
    "backslash": "q7Z4\\back\\\\slash\\n",
    "percent": "q7Z4%41%2F100%",
    "spaces": "q7Z4 with  some   spaces",
    "long": "q7Z4-long-" * 90,
    "common word": "acme",
}
UNKNOWN = "cr3d-of-nobody-here"
SOURCES = ("env", "file", "exec")
REFERENCES = {
    "env": "${secret:env:RECONCILER_SECRET_PASSWORD}",
    "file": "${secret:file:password.txt}",
    "exec": "${secret:exec:cat password.txt}",
}
EXPORT = lake(
    destination="{type: Postgres, config: {host: acme.example, port: 5432, database: d, "
    "schema: public, table_name: acme_2026, "
    'user: "${secret:env:RECONCILER_SECRET_USER}", password: "%s"}}'
)
_WIDTH = re.compile(r"\s+")


def forms(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret would be a leak, each long enough not to be chance."""
    lines = [line for line in secret.splitlines() if "PRIVATE KEY" not in line and len(line) > 11]
    for text in {secret, *lines, " ".join(secret.split())}:
        yield text
        yield json.dumps(text)[1:-1]
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield json.dumps(json.dumps(text)[1:-1])[1:-1]
        yield from (quote(text, safe=""), quote(text), quote_plus(text), html.escape(text))
        yield base64.b64encode(text.encode()).decode().rstrip("=")
        yield base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        yield from (text.encode().hex(), text.encode().hex().upper())


@dataclass
class Hunt:
    """Runs commands with a canary, and keeps what they write."""

    folder: Path
    emulator: RunningEmulator
    secret: str
    source: str
    outputs: list[tuple[str, str]] = field(default_factory=list)

    def prepare(self) -> None:
        """Write the workspace, create its objects, and paste the canary into live fields."""
        policy = "policy: {allow_exec_secrets: true}\n" if self.source == "exec" else ""
        exports = EXPORT % REFERENCES[self.source]
        files = {"reconciler.yaml": f"version: 1\n{policy}", "exports.yaml": exports}
        write(self.folder / "w", files)
        if self.source != "env":
            (self.folder / "w/password.txt").write_text(self.secret, encoding="utf-8")
        assert self.run("apply", "--auto-approve", "--no-inventory").code == 0
        # What a command prints is known only once it runs.
        if self.source != "exec":
            self.paste()

    def paste(self) -> None:
        """Put the canary into live fields and names."""
        lake = self.emulator.exports()["Lake"]
        path = f"/api/projects/{lake['team_id']}/batch_exports/"
        for number, form in enumerate([str, quote, json.dumps, html.escape, _base64]):
            name = f"Stray {number} {form(self.secret) if number % 2 else ''}"
            keys = {"aws_access_key_id": "i", "aws_secret_access_key": "s"}
            config = {"bucket_name": "b", "region": "r", "prefix": form(self.secret), **keys}
            self.call("POST", path, "S3", config, name=name, interval="hour")
        config = {"table_name": f"x {self.secret} y", "schema": f"https://h/in?a=b&token={UNKNOWN}"}
        self.call("PATCH", f"{path}{lake['id']}/", "Postgres", config)

    def call(self, method: str, path: str, type_: str, config: dict[str, str], **more: str) -> None:
        """Create or change a live export."""
        body = {**more, "destination": {"type": type_, "config": config}}
        self.emulator.call(method, path, body).raise_for_status()

    def run(self, *arguments: str, in_workspace: bool = True) -> Ran:
        """Run a command, and keep its output."""
        where = ("-C", self.folder / "w") if in_workspace else ()
        secrets = {
            "RECONCILER_SECRET_USER": "canary-user-4711",
            "RECONCILER_SECRET_PASSWORD": self.secret if self.source == "env" else "",
            "RECONCILER_ALLOW_EXEC": "1",
        }
        ran = reconciler(*arguments, *where, environ={**self.emulator.environ(), **secrets})
        assert ran.code != 64, ran.err
        self.outputs += [(f"{arguments} out", ran.out), (f"{arguments} err", ran.err)]
        return ran

    def fail(self, method: str, detail: str = "Bad value.", *, echo: bool = True) -> None:
        """Let the service refuse writes, and repeat what it received."""
        match = {"method": method, "path": "*/batch_exports/*"}
        rule = {"match": match, "fault": "error", "status": 400, "detail": detail, "echo": echo}
        self.emulator.admin("PUT", "faults", [rule])

    def finds(self) -> list[str]:
        """Return where the canary, or the key, appears."""
        texts = list(self.outputs)
        texts += [
            (path.name, path.read_text(encoding="utf-8"))
            for path in self.folder.rglob("*")
            if path.is_file() and path.name != "password.txt"
        ]
        wanted = {*forms(self.secret), UNKNOWN, self.emulator.api_key, "canary-user-4711"}
        return [
            f"{place}: {form!r}"
            for place, text in texts
            for form in wanted
            for shown in (text, _WIDTH.sub(" ", text))
            if form in shown
        ]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _hunt(hunt: Hunt) -> None:
    """Run the commands that show live state, then those that fail with an echo."""
    for output_format in ("text", "json", "markdown") if LONG else ("json", "markdown"):
        hunt.run("plan", "--no-inventory", "--show-unmanaged", "--format", output_format)
    hunt.run("plan", "--no-inventory", "--out", str(hunt.folder / "plan.json"))
    hunt.run("import", "--dry-run")
    hunt.run("show", "lake")
    if LONG:
        hunt.run("import", "--into", "imported")
        shutil.rmtree(hunt.folder / "w/imported", ignore_errors=True)
        for output_format in ("text", "json", "sarif", "github"):
            hunt.run("validate", "--format", output_format)
    hunt.fail("PATCH")
    log = str(hunt.folder / "audit.jsonl")
    apply = ("apply", "--auto-approve", "--no-inventory", "--rotate-secrets", "--log-file", log)
    assert hunt.run(*apply, "--verbose").code == 3
    hunt.fail("PATCH", f"Could not parse {hunt.secret} as a password", echo=False)
    assert hunt.run(*apply, "--format", "json").code == 3
    if LONG and hunt.source != "exec":
        hunt.fail("POST", f"Bad {_base64(hunt.secret)} {quote(hunt.secret)}", echo=False)
        backfill = ("backfill", "batch_export.lake", "--from", "2026-01-01T00:00:00Z")
        hunt.run(*backfill, "--to", "2026-01-02T00:00:00Z", "--auto-approve")
        hunt.fail("GET", f"Bad {hunt.secret}", echo=False)
        for command in (("plan", "--no-inventory"), ("import", "--dry-run"), apply):
            assert hunt.run(*command).code == 1
    hunt.emulator.admin("PUT", "faults", [])
    applied = hunt.run("apply", "--auto-approve", "--no-inventory", "--log-file", log)
    assert applied.code == 0, applied.err
    hunt.run("show", log, in_workspace=False)


_CASES = itertools.product(SHAPES, SOURCES) if LONG else zip(SHAPES, itertools.cycle(SOURCES))


@pytest.mark.parametrize(("shape", "source"), list(_CASES))
def test_no_canary_is_in_any_output(
    shape: str, source: str, tmp_path: Path, emulator: RunningEmulator
) -> None:
    hunt = Hunt(tmp_path, emulator, SHAPES[shape], source)
    hunt.prepare()
    _hunt(hunt)
    if shape == "common word":
        # It is a part of the configuration, so only the texts of the service hide it.
        assert "as a password" not in "".join(text for _, text in hunt.outputs)
    else:
        assert hunt.finds() == []
