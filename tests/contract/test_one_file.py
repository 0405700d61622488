"""A provider, a kind, a destination type and a consequence: each is added by one file.

The files are added to one copy of the package, which is run. The objects of a third kind, whose
schema is the one file that knows it, live as long as those of the other two: every command runs
twice, and the second run has nothing to do.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.contract.hog_functions import SCHEMA, Service, hog_service
from tests.support.cli import environment, write
from tests.support.git import Git
from tests.support.limits import time_limit

WORKSPACE = """\
version: 1
environments:
  staging: {base_url: "http://127.0.0.1:1", organization: o, api_key: "${env:KEY}"}
policy: {deny: [toy-rule]}
"""
VAULT = '''\
"""`${vault:PATH}` and `${secret:vault:PATH}`: a provider that a test adds."""

from reconciler.providers.provider import Provider

PROVIDER = Provider(
    "vault",
    "PATH",
    fill=lambda path, context: f"value of {path}",
    accepts=lambda path, context: True,
    look_up=lambda source, place: f"secret of {source.argument}",
)
'''
QUEUE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Queue destination",
    "description": "A destination type that a test adds.",
    "type": "object",
    "additionalProperties": False,
    "required": ["topic"],
    "properties": {
        "topic": {"type": "string", "description": "Its topic."},
        "key": {"type": "string", "description": "Its key.", "x-secret": True},
    },
    "x-credentials": [{"fields": ["key"]}],
}
RULE = '''\
@RULES.rule("toy-rule", Severity.WARNING)
def toy_rule(context: RuleContext) -> Outcome:
    """A consequence that a test adds."""
    return "toys are moved" if context.field("name") is not None else None


BEHAVIOUR = '''
RESOURCES = """\
projects: {web: {name: "${vault:web}"}}
batch_exports:
  events:
    project: web
    name: Events
    interval: hour
    destination: {type: Queue, config: {topic: t, key: "${secret:vault:kv/token}"}}
hog_functions:
  main: {project: web, name: Main, hog: "1", enabled: true, lifecycle: {protect: true}}
"""
BEHAVIOUR = (ROOT / "reconciler/kinds/project/behaviour.py").read_text(encoding="utf-8")
FILES = {
    "reconciler/kinds/project/behaviour.py": (
        BEHAVIOUR.replace("BEHAVIOUR = ", RULE),
        "'toy-rule'",
    ),
    "reconciler/providers/vault.py": (VAULT, "unknown reference ${vault:web}"),
    "schemas/destinations/Queue.schema.json": (json.dumps(QUEUE), "unknown value 'Queue'"),
    "schemas/hog_function.schema.json": (json.dumps(SCHEMA), "unknown field 'hog_functions'"),
}
"""The one file of each, and what is wrong without it."""
WRONG = [
    ("${secret:vault:kv/token}", "hunter2", "destination.config.key of batch_export.events is a"),
    ("${vault:web}", "${no:x}", "${vault:PATH}"),
    ("enabled: true", "enabled: maybe", "enabled of hog_function.main must be a boolean, not"),
]
"""What is wrong in place of another text, and a part of the message."""
LOOKED_UP = """\
from reconciler.service.http import SecretResolver
from reconciler.model.settings import SecretSettings
from reconciler.model.values import SecretRef
resolver = SecretResolver(SecretSettings('.'), {})
print(resolver.resolve(SecretRef.of('vault', 'kv/token')).reveal())
"""
DRIVER = """\
import json, os, sys
from tests.support.cli import reconciler
for line in sys.stdin:
    ran = reconciler(*json.loads(line), environ=os.environ)
    print(json.dumps([ran.code, ran.out + ran.err]), flush=True)
"""
"""Run the commands of the input in one process: a start takes longer than most of them."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program, with a workspace in `workspace`."""
    folder = tmp_path_factory.mktemp("copy")
    # Compiled modules come along, and are valid: times of files are kept.
    for name in ("reconciler", "schemas"):
        shutil.copytree(ROOT / name, folder / name)
    write(folder / "workspace", {"reconciler.yaml": WORKSPACE})
    return folder


def started(copy: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start Python with the copy."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=copy,
        env=environment({"PYTHONPATH": f"{copy}:{ROOT}", "KEY": "phx_1", "NO_COLOR": "1"}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(copy: Path, *arguments: str) -> str:
    """What Python prints with the copy."""
    with started(copy, *arguments) as process, time_limit(process):
        return process.communicate()[0]


def validated(copy: Path, resources: str = RESOURCES) -> str:
    write(copy / "workspace", {"resources.yaml": resources})
    return run(copy, "-m", "reconciler", "validate", "-C", "workspace")


def test_a_provider_a_kind_a_destination_type_and_a_consequence_are_one_file(copy: Path) -> None:
    for name, (text, wrong) in FILES.items():
        assert wrong in validated(copy)
        write(copy, {name: text})
        assert wrong not in validated(copy)
    assert validated(copy) == "The configuration is valid.\n"
    shown = run(copy, "-m", "reconciler", "show", "project.web", "-C", "workspace")
    assert "value of web" in shown
    assert "${vault:web} from vault" in shown
    assert run(copy, "-c", LOOKED_UP) == "secret of kv/token\n"
    for right, wrong, message in WRONG:
        printed = validated(copy, RESOURCES.replace(right, wrong))
        assert message in printed
        assert "hunter2" not in printed


SERVED = """\
version: 1
environments:
  staging: {base_url: "%s", organization: o, api_key: "${env:KEY}"}
policy: {prune: true}
"""
PROJECTS = "projects: {web: {name: Web}, app: {name: App}}\n"
FUNCTION = f"""\
{PROJECTS}hog_functions:
  slack:
    project: web
    name: To Slack
    enabled: true
    hog: "return event"
"""
NOTHING = "No changes. Live state matches the configuration"


@dataclass(frozen=True)
class Program:
    """A running copy of the program with the kind, a workspace in a repository, and a service."""

    process: subprocess.Popen[str]
    service: Service
    git: Git

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command in the workspace; return what it prints."""
        given, printed = self.process.stdin, self.process.stdout
        assert given
        assert printed
        given.write(json.dumps([*words, "-C", str(self.git.folder)]) + "\n")
        given.flush()
        ended, text = json.loads(printed.readline())
        assert ended == code, text
        return str(text)

    def apply(self, *words: str) -> str:
        """Commit the files, and apply them twice: the second time there is nothing to do."""
        self.git.commit()
        applied = self.run("apply", "--auto-approve", *words)
        written = list(self.service.writes)
        assert NOTHING in self.run("apply", "--auto-approve")
        assert self.service.writes == written
        return applied

    def write(self, resources: str) -> None:
        """Write the resources."""
        write(self.git.folder, {"resources.yaml": resources})

    def edit(self, old: str, new: str) -> None:
        """Change the text of the resources."""
        text = (self.git.folder / "resources.yaml").read_text()
        assert old in text
        self.write(text.replace(old, new))


@pytest.fixture
def program(copy: Path, tmp_path: Path) -> Iterator[Program]:
    write(copy, {"schemas/hog_function.schema.json": json.dumps(SCHEMA)})
    git = Git.init(tmp_path / "repository")
    with hog_service() as service, started(copy, "-c", DRIVER) as process, time_limit(process):
        write(git.folder, {"reconciler.yaml": SERVED % service.base_url})
        yield Program(process, service, git)
        process.kill()


def test_a_third_kind_lives_as_the_other_two(program: Program) -> None:
    program.write(FUNCTION)
    assert "+ create" in program.apply()
    (made,) = program.service.alive()
    assert (made["name"], made["enabled"], made["hog"]) == ("To Slack", True, "return event")
    program.edit("enabled: true", "enabled: false")
    program.apply()
    assert not made["enabled"]

    made["hog"] = "return null"
    for _ in range(2):
        assert "return null" in program.run("drift", "--no-attribute", code=2)
    program.apply()
    assert made["hog"] == "return event"
    program.run("drift", "--no-attribute")
    assert program.service.places() == [("To Slack", "Web", made["id"])]

    written = list(program.service.writes)
    program.run("mv", "hog_function.slack", "chat")
    program.apply()
    for _ in range(2):
        program.write(PROJECTS)
        program.run("import", "--into", "resources.yaml")
        assert "hog: return event" in program.run("show", "hog_function.to-slack")
        assert "Imported: nothing" in program.run("import", "--into", "resources.yaml")
    program.apply()
    assert program.service.writes == written

    program.edit("project: web", "project: app")
    program.apply("--allow-replace")
    ((name, project, live_id),) = program.service.places()
    assert (name, project) == ("To Slack", "App")
    assert live_id != made["id"]
    program.edit("project: app\n", "project: app\n    state: absent\n")
    assert "- delete" in program.apply()
    assert program.service.alive() == []

    program.write(FUNCTION)
    program.apply()
    program.write(PROJECTS)
    assert "- delete" in program.apply()
    assert program.service.alive() == []
