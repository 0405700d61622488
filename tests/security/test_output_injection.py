"""No line of output is a command of a CI runner, whatever files, names and errors contain."""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.text import Annotations, Command, misleading, safe_output
from reconciler.render import formats_of
from reconciler.render.plan_markdown import plan_as_markdown
from tests.conftest import LONG, ROOT, StartService
from tests.support.cli import Ran, reconciler, write
from tests.support.drifting import Applied
from tests.support.emulator import RunningEmulator
from tests.support.worlds import desired_of, export, live_of, planned, project

COMMANDS = [
    "::stop-commands::pwn",
    "::set-output name=x::y",
    "::error file=a.yaml,line=1::x",
    "::add-mask::x",
    "##[command]pwn",
    "##[error]pwn",
    "##vso[task.setvariable variable=PATH]/evil",
    "##VSO[task.complete result=Failed]",
    "##teamcity[buildStatus status='SUCCESS']",
    "###[group]x",
]
PAYLOADS = [
    *COMMANDS,
    *(f"  {command} indented" for command in COMMANDS),
    *(f"{'x' * 84} {command}" for command in COMMANDS),
    *(f"\u2028{command} separated" for command in COMMANDS[:3]),
    *(f"x\n{command}" for command in COMMANDS[:3]),
    *(f"x\r{command}" for command in COMMANDS[:2]),
    "\u3000::stop-commands::wide",
    "\x1b[31m::stop-commands::red",
]
assert len(set(PAYLOADS)) == 40
MISLEADING = {
    "variation \ufe0f": r"variation \ufe0f",
    "hidden \u200b\u00ad": r"hidden \u200b\xad",
    "p\u0430ge view": r"p\u0430ge view",
    "be\u03c4a \u4e2d\u6587abc": "be\\u03c4a \u4e2d\u6587abc",
    "\u043c\u0438\u0440 Lake": "\u043c\u0438\u0440 Lake",
}
"""R2: names that a reader takes for others, and as they are shown; the last is not misleading."""
SERVED = [*(PAYLOADS if LONG else PAYLOADS[::3]), *MISLEADING]
"""Names of live objects."""
_ANYWHERE = re.compile(r"##\w*\[", re.IGNORECASE)
_OURS = re.compile(
    r"::(error|warning|notice) (file=[^:,]*,line=\d+,col=\d+,endColumn=\d+,)?title=[\w-]+::"
)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def commands_in(text: str, *, annotations: bool = False) -> list[str]:
    """Return the lines that a runner would execute."""
    lines = [_COLOUR.sub("", line) for line in text.splitlines()]
    return [
        line
        for line in lines
        if _ANYWHERE.search(line)
        or (line.lstrip().startswith("::") and not (annotations and _OURS.match(line)))
    ]


def assert_safe(ran: Ran, *, annotations: bool = False) -> None:
    assert commands_in(ran.out, annotations=annotations) == []
    assert commands_in(ran.err) == []
    text = ran.out + ran.err
    assert {text[place] for place in misleading(text)} <= {"\n"}


def run(
    *words: object, codes: tuple[int, ...] = (0,), annotations: bool = False, **environ: str
) -> Ran:
    """Run a command, and check that nothing that it prints is a command or misleads."""
    ran = reconciler(*map(str, words), environ=environ)
    assert ran.code in codes, (words, ran.err)
    assert_safe(ran, annotations=annotations)
    return ran


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from texts_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_of(item)
    elif isinstance(value, str):
        yield value


def test_security_8_text_is_broken_visibly() -> None:
    assert safe_output("a\n  ::x::y\n") == "a\n  \\x3a:x::y\n"
    assert safe_output("see ##vso[a] and ##[b]") == "see \\x23#vso[a] and \\x23#[b]"
    assert safe_output("\x1b[31m::x") == "\x1b[31m\\x3a:x"
    assert safe_output("\x1b[2J\u202e\r\n") == "\\x1b[2J\\u202e\r\n"
    assert safe_output("std::string ## [a] #[b] c::") == "std::string ## [a] #[b] c::"
    for payload in PAYLOADS:
        assert commands_in(safe_output(payload)) == []


def test_security_8_only_annotations_that_we_build_stay_commands() -> None:
    mark = Command("error", {"file": "::a,b.yaml", "title": "code"}, ("100%", "##[x]\n::y"))
    text = Annotations.of([mark, "::stop-commands::x"])
    assert text == (
        "::error file=%3A%3Aa%2Cb.yaml,title=code::100%25%0A\\x23#[x]\\n::y\n"
        "\\x3a:stop-commands::x\n"
    )
    assert safe_output(text) is text
    assert safe_output(text + "x").startswith("\\x3a:error")


EXPORT = {"model": "events", "destination": {"type": "NoOp", "config": {}}}
LIVE = [{**EXPORT, "name": name, "interval": "day"} for name in SERVED]
PROJECTS = [
    *({"id": 2 + number, "name": name, "batch_exports": []} for number, name in enumerate(SERVED)),
    {"id": 1, "name": "Web", "batch_exports": LIVE},
]
SEED = {
    "organizations": [{"id": "org", "name": "Acme", "projects": PROJECTS}],
    "keys": [{"value": "phx_key"}],
}
WORKSPACE = "version: 1\n"
S3_FILE = """\
projects: {web: {name: Web}}
batch_exports:
  lake:
    project: web
    name: Lake
    interval: hour
    destination:
      type: S3
      config:
        bucket_name: b
        region: r
        prefix: p/
        aws_access_key_id: ${secret:env:RECONCILER_SECRET_ID}
        aws_secret_access_key: ${secret:env:RECONCILER_SECRET_KEY}
"""


def hostile_workspace(folder: Path) -> Path:
    """Write resources that update every export, and one that is new."""
    names = [*SERVED, f"new {PAYLOADS[6]}"]
    exports = {
        f"export_{number}": {**EXPORT, "project": "web", "name": name, "interval": "hour"}
        for number, name in enumerate(names)
    }
    text = yaml.safe_dump({"projects": {"web": {"name": "Web"}}, "batch_exports": exports})
    return write(folder, {"reconciler.yaml": WORKSPACE, "exports.yaml": text})


@pytest.fixture
def service(service_of: StartService) -> RunningEmulator:
    return service_of(SEED)


@pytest.mark.parametrize("output_format", formats_of("plan"))
def test_security_8_plans_of_hostile_names(
    service: RunningEmulator, tmp_path: Path, output_format: str
) -> None:
    workspace, saved = hostile_workspace(tmp_path), tmp_path / "plan.json"
    options = ("-C", workspace, "--format", output_format, "--show-unmanaged")
    environ = service.environ()
    runner = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    is_github = output_format == "github"
    ran = run("plan", *options, "--out", saved, annotations=is_github, **environ, **runner)
    has_counts = output_format in ("text", "github", "html", "markdown")
    assert (f"{len(SERVED)} to update" in ran.out) is has_counts
    for file in map(Path, runner.values()):
        assert file.exists() is is_github
        assert not is_github or commands_in(file.read_text()) == []
    assert commands_in(saved.read_text()) == []
    run("show", saved, "--format", output_format, annotations=is_github)
    if output_format == "text":
        coloured = reconciler("plan", *options, environ={**environ, "FORCE_COLOR": "1"})
        assert commands_in(coloured.out) == []
    if output_format == "sarif":
        read = (text for text in texts_of(json.loads(ran.out)))
        assert all(misleading(text.replace("\n", "")) == frozenset() for text in read)
    if output_format == "json":
        content = json.loads(ran.out)
        assert {payload.strip() for payload in SERVED} <= set(map(str.strip, texts_of(content)))
        assert content == json.loads(saved.read_text())


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_security_8_runs_on_hostile_names_with_errors_that_repeat_them(
    service: RunningEmulator, tmp_path: Path, output_format: str
) -> None:
    workspace = hostile_workspace(tmp_path)
    rule = {"match": {"method": "PATCH"}, "fault": "error", "status": 400, "echo": True}
    service.admin("PUT", "faults", [rule])
    log = tmp_path / "audit.jsonl"
    options = ("-C", workspace, "--auto-approve", "--format", output_format, "--verbose")
    ran = run("apply", *options, "--log-file", log, codes=(3,), **service.environ())
    assert "Received: " in ran.out + ran.err
    assert commands_in(log.read_text()) == []
    for audit_format in formats_of("audit"):
        run("show", log, "--format", audit_format, codes=(3,))


def test_security_8_import_and_what_it_writes(service: RunningEmulator, tmp_path: Path) -> None:
    """Security 20: hidden characters too are escaped in JSON."""
    environ = service.environ()
    write(tmp_path, {"reconciler.yaml": WORKSPACE})
    for output_format in formats_of("imported"):
        options = ("-C", tmp_path, "--dry-run", "--format", output_format)
        ran = run("import", *options, **environ)
        if output_format == "json":
            assert set(SERVED) <= set(texts_of(json.loads(ran.out)))
    run("import", "-C", tmp_path, **environ)
    ran = run("plan", "-C", tmp_path, **environ)
    assert "No changes. Live state matches the configuration (" in ran.out
    for path in tmp_path.rglob("*.yaml"):
        assert not _ANYWHERE.search(path.read_text())


@pytest.mark.parametrize("output_format", formats_of("diagnostics"))
def test_security_8_files_named_as_commands(tmp_path: Path, output_format: str) -> None:
    names = [payload.replace("/", "_")[-60:] for payload in PAYLOADS]
    files = {f"{name}.yaml": "projects: [\n" for name in names}
    keys = {
        f"{name}.yml": f"projects:\n{json.dumps(payload)}: 1\n"
        for name, payload in zip(names, PAYLOADS, strict=True)
    }
    skipped = {f"other/{name}": "services: {}\n" for name in files}
    write(tmp_path, {"reconciler.yaml": WORKSPACE, **files, **keys, **skipped})
    options = ("-C", tmp_path, "--format", output_format)
    ran = run("validate", *options, codes=(1,), annotations=output_format == "github")
    if output_format == "text":
        for words in (("plan",), ("show", "a")):
            run(*words, "-C", tmp_path, codes=(1,))
    if output_format in ("json", "sarif"):
        assert json.loads(ran.out)
    if output_format == "github":
        assert sum(line.startswith("::") for line in ran.out.splitlines()) >= len(files)


@pytest.mark.parametrize(
    "name",
    ["GH-1", "gh-22", "a" * 40, "!1", "%1", '%"v1"', "#1", "@user", "&1", "$1", "~bug", "a/b#1"],
)
def test_security_22_references_of_forges_do_not_become_links(name: str) -> None:
    plan = planned(desired_of(project(), export(name=f"x {name} y")), live_of())
    text = re.sub(r"```.*?```|<code>.*?</code>", "", plan_as_markdown(plan), flags=re.DOTALL)
    shown = html.unescape(text)
    assert name not in shown
    assert name in shown.replace("\u200b", "")


def test_only_one_module_writes_to_the_standard_streams() -> None:
    writes = re.compile(
        r"click\.s?echo\(|\bprint\(|\bsys\.(stdout|stderr)\.(write|buffer)|\.show\(\)"
    )
    for path in (ROOT / "reconciler").rglob("*.py"):
        if "emulator" not in path.parts and path.name != "process.py":
            assert not writes.search(path.read_text(encoding="utf-8")), path


@pytest.mark.parametrize(
    "value", ["##vso[task.complete]/x", "::error::x", "a\n::error::x\nb", "a\n  ##[x]\nb\n"]
)
def test_security_n7_a_difference_of_files_is_a_patch_whatever_live_values_contain(
    tmp_path: Path, emulator: RunningEmulator, value: str
) -> None:
    secrets = {"RECONCILER_SECRET_ID": "an-access-key", "RECONCILER_SECRET_KEY": "a-secret-value"}
    applied = Applied.of(
        tmp_path / "w", emulator, {"reconciler.yaml": WORKSPACE, "a.yaml": S3_FILE}, **secrets
    )
    for fields in (
        {"destination": {"type": "S3", "config": {"prefix": value}}},
        {"destination": {"type": "S3", "config": {"region": "r2"}}},
    ):
        applied.change("Lake", **fields)
        shown = applied.run("drift", "--write", "--diff")
        assert_safe(shown)
        subprocess.run(
            ["git", "apply", "-"], input=shown.out, text=True, cwd=applied.folder, check=True
        )
        patched = applied.text("a.yaml")
        applied.git.run("checkout", "--", "a.yaml")
        assert applied.run("drift", "--write").code == 2
        assert applied.text("a.yaml") == patched
        applied.git.commit("pulled")
