"""Every command, with its main forms, in every kind of workspace.

A command that reads neither writes to the service nor changes a file of the workspace; none
crashes or shows a secret; each exits with the code of its form, or of `EXCEPTIONS`. Its JSON has a
format version and is as its published schema says (issue 32).
"""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import yaml
from jsonschema import Draft202012Validator

from reconciler.commands.program import cli, command_of
from reconciler.model.schemas import schema
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator, start_emulator
from tests.support.git import Git
from tests.support.simulated import no_op_export

COMMANDS = cli.list_commands(click.Context(cli))

# Kinds of workspaces: each with live state, files, and the variables of its commands.

KEY = "phx_key_of_the_matrix_q7Z4"
IN_FILES, IN_SERVICE = "token-of-the-files-q7Z4", "token-in-the-service-q7Z4"
WEB_TOKEN = "phc_token_of_web_q7Z4"
HIDDEN = (KEY, IN_FILES, IN_SERVICE, WEB_TOKEN)
"""What no command may show: the key, the secrets of files and of live exports, a token."""
FIRST, LAST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"
_ONE, _TWO = "4dc8564d-bd82-1065-2f40-97f7c50f67cf", "0188461e-55a4-0000-1cb3-0b1d3b6c6ac0"
_BOTH = "version: 1\ndefault: staging\nenvironments:\n  staging: %s\n  production: %s\n"


def _http(token: str) -> dict[str, Any]:
    """Return a destination that every server accepts, with a secret."""
    return {"type": "HTTP", "config": {"url": "https://us.i.posthog.com/batch/", "token": token}}


def _live(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "destination": _http(IN_SERVICE), **fields}


def _declared(name: str, **fields: Any) -> dict[str, Any]:
    destination = _http("${secret:env:RECONCILER_SECRET_TOKEN}")
    return {"project": "web", **no_op_export(name, destination=destination), **fields}


LIVE = [_live("Lake"), _live("Orders"), _live("Stray")]
"""One as declared, one to change, one that no file declares. Orders failed, Stray is paused."""
WEB = {"web": {"name": "Web"}}
EXPORTS = {
    "lake": _declared("Lake"),
    "orders": _declared("Orders", interval="day"),
    "fresh": _declared("Fresh"),
}
FILES = {"projects": WEB, "batch_exports": EXPORTS}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of workspace.

    `settings` is its reconciler.yaml, `options` are those of the service, `key` is what the API key
    may do. `stored` has fields of stored exports, by name, that the service does not accept today.
    """

    exports: list[dict[str, Any]] = field(default_factory=lambda: LIVE)
    files: Mapping[str, Any] = field(default_factory=lambda: FILES)
    settings: str = "version: 1\n"
    options: tuple[str, ...] = ()
    key: Mapping[str, Any] = field(default_factory=dict)
    integrations: list[dict[str, Any]] = field(default_factory=list)
    stored: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def texts(self) -> dict[str, str]:
        """Its files by name."""
        # What is written twice in Python is no anchor in YAML.
        plain = json.loads(json.dumps(self.files))
        return {"reconciler.yaml": self.settings, "all.yaml": yaml.safe_dump(plain)}

    def environ(self, service: RunningEmulator) -> dict[str, str]:
        """Return the variables of its commands."""
        own = {"KEY": KEY, "RECONCILER_SECRET_TOKEN": IN_FILES, **service.environ()}
        if "organization:" in self.settings:
            del own["RECONCILER_ORGANIZATION"], own["RECONCILER_API_KEY"]
        return own

    @contextmanager
    def service(self, folder: Path) -> Iterator[RunningEmulator]:
        """Run a service with the live state, which its snapshot `new` keeps."""
        seed, database = folder / "seed.json", folder / "service.db"
        seed.write_text(json.dumps(self._seed()), encoding="utf-8")
        with start_emulator(seed=seed, db=database, extra=self.options):
            pass
        self._store(database)
        with start_emulator(db=database, extra=self.options) as running:
            running.admin("POST", "snapshots/new")
            yield running

    def _seed(self) -> dict[str, Any]:
        """Return two organizations, the first with two projects."""
        web = {"id": 1, "name": "Web", "api_token": WEB_TOKEN, "batch_exports": self.exports}
        other = {"id": 3, "name": "Web", "batch_exports": [_live("Lake")]}
        failing = [{"match": {"name": "Orders"}, "status": "Failed"}]
        return {
            "organizations": [
                {"id": _ONE, "name": "Acme", "projects": [web, {"id": 2, "name": "App"}]},
                {"id": _TWO, "name": "Other", "projects": [other]},
            ],
            "keys": [{"value": KEY, **self.key}],
            "integrations": self.integrations,
            "lived": "6h",
            "events": [{"ago": "5h", "outcomes": failing}, {"ago": "3h", "pause": "Stray"}],
        }

    def _store(self, database: Path) -> None:
        with closing(sqlite3.connect(database)) as connection, connection:
            for row, text in connection.execute("SELECT rowid, body FROM exports").fetchall():
                body = json.loads(text)
                body |= self.stored.get(body["name"], {})
                values = (json.dumps(body).encode(), row)
                connection.execute("UPDATE exports SET body = ? WHERE rowid = ?", values)


_2026 = ("--dialect", "2026")
_BUCKET = {"bucket_name": "b", "region": "eu-central-1", "prefix": "events/"}
_READING = [f"{what}:read" for what in ("batch_export", "project", "organization", "integration")]


def _integrated(name: str | int) -> dict[str, Any]:
    return {"type": "AwsS3", "integration": name, "config": _BUCKET}


KINDS: dict[str, Kind] = {
    "plain": Kind(),
    "integrations": Kind(
        exports=[*LIVE, _live("Bucket", destination=_integrated(7))],
        files={
            "projects": WEB,
            "batch_exports": {
                **EXPORTS,
                "bucket": _declared("Bucket", destination=_integrated("lake")),
            },
        },
        integrations=[{"id": 7, "project": 1, "kind": "aws-s3", "config": {"name": "lake"}}],
        options=_2026,
    ),
    "defaults": Kind(
        files={
            "defaults": {"batch_export": {"project": "web", "interval": "${var:every}"}},
            "projects": WEB,
            "batch_exports": {
                **EXPORTS,
                "lake": {
                    "name": "Lake",
                    "destination": EXPORTS["lake"]["destination"],
                    "overrides": {"staging": {"model": "events"}, "production": {"paused": True}},
                },
            },
        },
        settings=_BOTH % ("{vars: {every: hour}}", "{vars: {every: day}}"),
    ),
    "environments": Kind(settings=_BOTH % ("{}", "{}")),
    "organizations": Kind(
        settings=_BOTH
        % tuple(f"{{organization: {own}, api_key: '${{env:KEY}}'}}" for own in (_ONE, _TWO))
    ),
    "ambiguous": Kind(exports=[_live("Lake", paused=True), *LIVE]),
    "calendar": Kind(
        stored={
            "Lake": {"start_at": FIRST, "end_at": LAST, "created_at": FIRST},
            "Orders": {"start_at": LAST, "end_at": LAST, "created_at": LAST},
            "Stray": {"start_at": FIRST, "end_at": FIRST, "last_updated_at": LAST},
        }
    ),
    "unknown-type": Kind(
        stored={
            "Orders": {"destination": {"type": "Glacier", "config": {"to": "h", "sas_key": "x"}}},
            "Stray": {"destination": {"type": "Glacier", "config": {"sas_key": IN_SERVICE}}},
        }
    ),
    "2025": Kind(options=("--dialect", "2025")),
    "2026": Kind(options=_2026),
    "no-list": Kind(options=(*_2026, "--no-organization-list")),
    "limited-key": Kind(
        files={"projects": {"web": {"name": "Web", "id": 1}}, "batch_exports": EXPORTS},
        key={"projects": [1]},
        options=_2026,
    ),
    "reading-key": Kind(key={"scopes": _READING}, options=_2026),
}
"""The kinds. Each has one thing that the plain one has not."""

# The commands.

TABLE = """\
reads    0   plan
reads    0   plan -e *
reads    0   plan --out {out}/saved.json --show-unmanaged -v
reads    2   plan --detailed-exitcode
reads    0   plan --target lake --summary
reads    0   plan --format json
reads    0   plan -e * --format json
reads    0   plan --format github
reads    0   plan --format gitlab
reads    0   plan --format sarif
reads    0   plan --format markdown
reads    0   plan --format html
reads    64  apply
reads    64  apply --format json
service  0   apply --auto-approve --log-file {out}/log.jsonl
service  0   apply --auto-approve --target orders --format json
service  0   apply {plan}
reads    2   drift
reads    0   drift lake
reads    2   drift --format json
reads    2   drift --format markdown
reads    2   drift --format html
reads    0   show {plan}
reads    0   show {plan} --format markdown
reads    0   show {log}
reads    0   show {log} --format json
reads    0   show lake
reads    0   show orders --format json
reads    1   init
files    0   init --schemas
reads    0   init -C {out}/new
files    0   init --ci github
reads    0   validate
reads    0   validate --strict
reads    0   validate --format json
reads    0   validate --format github
reads    0   validate --format gitlab
reads    0   validate --format sarif
reads    0   import --dry-run
reads    0   import --dry-run --format json
files    0   import Stray
files    0   import {Stray}
files    0   import
reads    2   drift orders --write --diff
files    2   drift orders --write
files    2   drift orders --write --format json
reads    0   mv lake pond --diff
files    0   mv lake pond
files    0   mv project.web shop
reads    0   compare staging production
reads    0   compare staging production --format json
reads    0   promote --from staging --to production --diff
files    0   promote --from staging --to production
reads    0   status
reads    0   status -e *
reads    0   status orders
reads    0   status {Lake} --links
reads    0   status --all --project web
reads    2   status --fail-on failing,lagging,paused
reads    0   status --html {out}/page.html
reads    0   status --format json
reads    0   status -e * --format json
reads    0   status --format markdown
reads    0   status --format html
reads    0   runs lake
reads    0   runs {Orders} --status Failed
reads    0   runs orders --all --format json
reads    0   runs {Lake} --run {run}
reads    0   runs {Lake} --run {run} --format markdown
reads    0   runs
reads    0   runs * --status Failed --limit 3
reads    0   runs {Lake} {Orders} --project web --format json
reads    0   logs lake
reads    0   logs {Lake} --run {run}
reads    0   logs orders --level error --format json
reads    2   gaps
reads    2   gaps -e *
reads    0   gaps lake --since 3h
reads    2   gaps {Orders}
reads    2   gaps --format json
reads    2   gaps --format markdown
reads    2   gaps --format html
reads    0   backfill lake --from 2020-01-01 --to 2020-01-01T03:00 --dry-run
reads    0   backfill * --gaps --dry-run
reads    0   backfill orders --failed --dry-run --format json
service  0   backfill {Lake} --from 2020-01-01 --to 2020-01-01T03:00 --auto-approve
reads    64  pause lake
service  0   pause lake --auto-approve
service  0   pause {Stray} {Lake} --auto-approve --format json
reads    64  unpause stray
service  0   unpause {Stray} --auto-approve
service  0   unpause {Stray} --auto-approve --format json
reads    0   projects list
reads    0   projects list --format json
reads    0   projects show web
reads    0   projects show web --format json
reads    0   projects activity web
reads    0   projects demo-data web
service  0   projects reset-token web --auto-approve
reads    0   doctor
service  0   doctor lake --auto-approve
reads    0   doctor --format json
reads    0   explain
reads    0   explain policy.prune
reads    0   emulator --help
reads    0   demo --help
reads    0   completion bash
"""
"""The main forms of each command: what it writes to, its exit code, its words.

`World.__getitem__` says what the names in braces are. Delete the lines of a removed command, and
add those of a new one.
"""
IN_GIT = ("drift",)
"""Commands that run in a repository in which the workspace is committed."""


class Form(NamedTuple):
    writes: str
    code: int
    command: str
    words: str

    @property
    def text(self) -> str:
        return f"{self.command} {self.words}".rstrip()


FORMS = [
    Form(writes, int(code), command, " ".join(words))
    for writes, code, command, *words in map(str.split, TABLE.splitlines())
]


SCHEMAS = {
    "-e *": "environments",
    "projects list": "projects",
    "projects show": "project_details",
    "show {log}": "audit",
    "show": "resolved",
    "validate": "diagnostics",
    **dict.fromkeys(("apply", "pause", "unpause"), "event"),
}
"""Schemas of JSON by a part of the form. Others are named as the command."""


def not_as_its_schema(form: Form, out: str) -> list[str]:
    """Return what is wrong with the JSON that a form prints: one document, or events."""
    name = next((SCHEMAS[part] for part in SCHEMAS if part in form.text), form.command)
    known = schema(name)
    assert known is not None, f"add the schema of the JSON of {form.text} to SCHEMAS"
    documents = out.splitlines() if name == "event" else [out] * bool(out)
    check = Draft202012Validator(known)
    return [
        f"is not as the schema {name} says: {error.message}"
        for document in documents
        for error in check.iter_errors(json.loads(document))
    ]


class Exceptional(NamedTuple):
    """Another exit code of forms (globs) in kinds, and why. The first that fits applies."""

    kinds: tuple[str, ...]
    forms: tuple[str, ...]
    code: int
    reason: str


NEWER = ("integrations", "2025", "2026", "no-list", "limited-key", "reading-key")
EXCEPTIONS = [
    Exceptional(
        ("plain", "ambiguous", "calendar", "unknown-type", *NEWER),
        ("compare *", "promote *"),
        64,
        "the workspace has no environments",
    ),
    Exceptional(("defaults",), ("compare *",), 2, "its environments differ"),
    Exceptional(("calendar",), ("gaps {Orders}",), 0, "Orders starts in the year 9999"),
    Exceptional(("2025",), ("logs *",), 1, "the server refuses logs to API keys"),
    Exceptional(
        NEWER,
        ("projects activity*", "projects demo-data*", "projects reset-token*"),
        1,
        "the server refuses it to API keys",
    ),
    Exceptional(
        ("reading-key",),
        ("apply --auto*", "apply {plan}", "show {log}*", "*pause *--auto*", "backfill *--auto*"),
        3,
        "the key may not write",
    ),
    Exceptional(
        ("ambiguous",),
        ("apply * --target orders*",),
        0,
        "the selection leaves lake out",
    ),
    Exceptional(
        ("ambiguous",), ("plan*", "apply --auto*", "apply {plan}"), 5, "the plan of lake is refused"
    ),
    Exceptional(
        ("ambiguous",),
        (
            *("runs lake", "logs lake", "gaps lake*", "backfill lake*", "pause lake --*"),
            *("doctor lake*", "drift lake", "import", "import --dry-run*", "show {log}*"),
        ),
        1,
        "lake may be two exports",
    ),
]
"""The exceptions. Each concerns at least one cell."""


def exception_of(kind: str, form: Form) -> Exceptional | None:
    """Return the first exception for a form in a kind."""
    rows = (row for row in EXCEPTIONS if kind in row.kinds)
    fitting = (row for row in rows if any(fnmatchcase(form.text, glob) for glob in row.forms))
    return next(fitting, None)


def test_the_table_has_every_listed_command_and_no_other() -> None:
    named = {form.command for form in FORMS}
    in_json = {form.command for form in FORMS if "--format json" in form.words}
    for name in named - in_json:
        assert not any("--format" in param.opts for param in command_of(name).params), name
    missing, removed = set(COMMANDS) - named, (named | set(IN_GIT)) - set(COMMANDS)
    assert not missing, f"new commands: add lines with their main forms to TABLE in {__file__}"
    assert not removed, f"removed commands: delete their lines of TABLE or IN_GIT in {__file__}"
    used = [exception_of(kind, form) for kind in KINDS for form in FORMS]
    unused = [row for row in EXCEPTIONS if row not in used]
    assert not unused, f"rows of EXCEPTIONS without a cell: delete them in {__file__}"


@dataclass
class World:
    """A workspace of a kind: in the folder `w`, beside `out` for output and `home`."""

    folder: Path
    kind: str
    service: RunningEmulator

    def prepare(self, command: str) -> None:
        """Write the files, and restore the live state."""
        self.service.admin("POST", "snapshots/new/restore")
        for name in ("out", "home"):
            (self.folder / name).mkdir(parents=True)
        write(self.folder / "w", KINDS[self.kind].texts)
        if command in IN_GIT:
            Git.init(self.folder / "w").commit()

    def run(self, command: str, words: str) -> Ran:
        """Run a command in the workspace."""
        home = dict.fromkeys(
            ("HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(self.folder / "home")
        )
        # With an option of the program first, `demo` and `emulator` run in this process, too.
        arguments = ("--no-color", command, *shlex.split(words.replace("*", "'*'")))
        return reconciler(*arguments, environ={**KINDS[self.kind].environ(self.service), **home})

    def __getitem__(self, name: str) -> str:
        """Return what a form names: a path, a saved plan, a log, a run of Lake, or a live id."""
        out = self.folder / "out"
        match name:
            case "out":
                return str(out)
            case "plan":
                self.run("plan", f"--out {out}/plan.json")
                return f"{out}/plan.json"
            case "log":
                self.run("apply", f"--auto-approve --log-file {out}/log.jsonl")
                return f"{out}/log.jsonl"
            case "run":
                path = f"/api/projects/1/batch_exports/{self['Lake']}/runs/"
                return str(self.service.call("GET", path, key=KEY).json()["results"][0]["id"])
        web = next(item for item in self.service.state()["projects"] if item["id"] == 1)
        named = [item for item in web["batch_exports"] if item["name"] == name]
        return str(min(named, key=lambda item: item["paused"])["id"])

    def files(self, *, outside: bool = False) -> dict[str, bytes]:
        """Return the contents of all files, or without those that an option asks for."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and (outside or not path.is_relative_to(self.folder / "out"))
        }


Services = Callable[[str], RunningEmulator]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Return a function that starts the service of a kind once."""
    running: dict[str, RunningEmulator] = {}
    with ExitStack() as stack:

        def start(kind: str) -> RunningEmulator:
            if kind not in running:
                service = KINDS[kind].service(tmp_path_factory.mktemp("service"))
                running[kind] = stack.enter_context(service)
            return running[kind]

        yield start


def faults_of(world: World, form: Form) -> list[str]:
    """Run a form, and return what is wrong in its cell."""
    world.prepare(form.command)
    try:
        words = form.words.format_map(world)
        before = world.files()
        world.service.clear_requests()
        ran = world.run(form.command, words)
    except AssertionError as crash:
        return [f"{form.text}: {str(crash)[:2000]}"]
    faults = []
    code = (exception_of(world.kind, form) or form).code
    if ran.code != code:
        faults.append(
            f"exits with {ran.code}, not {code}: if that is documented, change TABLE or EXCEPTIONS"
            f"\n{ran.out[-500:]}{ran.err[-1500:]}"
        )
    if form.writes != "service" and (writes := world.service.writes()):
        faults.append(f"writes to the service: {writes}")
    after = world.files()
    if form.writes != "files" and after != before:
        changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
        faults.append(f"changes files: {changed}")
    written = b"\n".join(world.files(outside=True).values()).decode(errors="replace")
    shown = [secret for secret in HIDDEN if secret in ran.out + ran.err + written]
    if shown:
        faults.append(f"shows secrets: {shown}")
    if "--format json" in form.words:
        faults += not_as_its_schema(form, ran.out)
        faults += ["prints no JSON"] if code in (0, 2, 3, 5) and not ran.out else []
    return [f"{form.text}: {fault}" for fault in faults]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_a_command_in_a_kind_of_workspace(
    kind: str, command: str, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = []
    forms = [form for form in FORMS if form.command == command]
    for number, form in enumerate(forms):
        world = World(tmp_path / str(number), kind, services(kind))
        (world.folder / "w").mkdir(parents=True)
        monkeypatch.chdir(world.folder / "w")
        faults += faults_of(world, form)
    assert not faults, "\n".join(faults)
