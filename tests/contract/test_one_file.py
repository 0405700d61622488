"""A provider, a kind, a destination type and a consequence: each is added by one file.

Each test copies the package and its schemas, adds or changes the one file, and runs the copy. The
objects of a third kind, whose schema is the one file that knows it, live as long as those of the
other two: every command runs twice, and the second run has nothing to do.
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
from tests.support.limits import TIMEOUT

WORKSPACE = """\
version: 1
environments:
  staging: {base_url: "http://127.0.0.1:1", organization: o, api_key: "${env:KEY}"}
secrets: [QUEUE_KEY]
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
EXPORT = """\
projects: {{web: {{name: "{name}"}}}}
batch_exports:
  events:
    project: web
    name: Events
    interval: hour
    destination: {destination}
"""
HTTP = '{type: HTTP, config: {url: "https://eu.i.posthog.com/batch/", token: "%s"}}'


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program, with a workspace in `workspace`."""
    # Compiled modules come along, and are valid: times of files are kept.
    for folder in ("reconciler", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/reconciler.yaml").write_text(WORKSPACE)
    return tmp_path


def run(copy: Path, *arguments: str | Path, code: int | None = None) -> str:
    """What the copy prints. Fails for another exit code."""
    environ = environment({"PYTHONPATH": str(copy), "KEY": "phx_1", "NO_COLOR": "1"})
    ended = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        cwd=copy,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
    )
    assert code in (None, ended.returncode), ended.stdout
    return ended.stdout


def validate(copy: Path, resources: str) -> str:
    (copy / "workspace/resources.yaml").write_text(resources)
    return run(copy, "-m", "reconciler", "validate", "-C", "workspace")


def test_a_provider_is_one_file(copy: Path) -> None:
    resources = EXPORT.format(name="${vault:web}", destination=HTTP % "${secret:vault:kv/token}")
    before = validate(copy, resources)
    assert "unknown reference ${vault:web}" in before
    assert "unknown secret reference ${secret:vault:kv/token}" in before
    (copy / "reconciler/providers/vault.py").write_text(VAULT)
    assert validate(copy, resources) == "The configuration is valid.\n"
    shown = run(copy, "-m", "reconciler", "show", "project.web", "-C", "workspace")
    assert "value of web" in shown
    assert "${vault:web} from vault" in shown
    looked_up = (
        "from reconciler.service.http import SecretResolver\n"
        "from reconciler.model.settings import SecretSettings\n"
        "from reconciler.model.values import SecretRef\n"
        "resolver = SecretResolver(SecretSettings('.'), {})\n"
        "print(resolver.resolve(SecretRef.of('vault', 'kv/token')).reveal())\n"
    )
    assert run(copy, "-c", looked_up) == "secret of kv/token\n"
    assert "${vault:PATH}" in validate(copy, EXPORT.format(name="${no:x}", destination="{}"))


def test_a_kind_is_one_file(copy: Path) -> None:
    resources = """\
projects: {web: {name: Web}}
hog_functions:
  main: {project: web, name: Main, hog: "1", enabled: maybe, lifecycle: {protect: true}}
"""
    assert "unknown field 'hog_functions'" in validate(copy, resources)
    (copy / "schemas/hog_function.schema.json").write_text(json.dumps(SCHEMA))
    message = "enabled of hog_function.main must be a boolean, not 'maybe'"
    assert message in validate(copy, resources)
    assert validate(copy, resources.replace("maybe", "true")) == "The configuration is valid.\n"


def test_a_destination_type_is_one_file(copy: Path) -> None:
    destination = '{type: Queue, config: {topic: t, key: "%s"}}'
    resources = EXPORT.format(name="Web", destination=destination % "${secret:env:QUEUE_KEY}")
    assert "unknown value 'Queue'" in validate(copy, resources)
    (copy / "schemas/destinations/Queue.schema.json").write_text(json.dumps(QUEUE))
    assert validate(copy, resources) == "The configuration is valid.\n"
    pasted = validate(copy, EXPORT.format(name="Web", destination=destination % "hunter2-hunter2"))
    assert "destination.config.key of batch_export.events is a secret" in pasted
    assert "hunter2" not in pasted


def test_a_consequence_is_one_change_of_one_file(copy: Path) -> None:
    workspace = copy / "workspace/reconciler.yaml"
    workspace.write_text(f"{WORKSPACE}policy: {{deny: [toy-rule]}}\n")
    resources = "projects: {web: {name: Web}}\n"
    assert "'toy-rule'" in validate(copy, resources)
    module = copy / "reconciler/kinds/project/behaviour.py"
    module.write_text(module.read_text(encoding="utf-8").replace("BEHAVIOUR = ", RULE), "utf-8")
    assert validate(copy, resources) == "The configuration is valid.\n"


SERVED = """\
version: 1
environments:
  staging: {base_url: "%s", organization: o, api_key: "${env:KEY}"}
policy: {prune: true}
"""
PROJECTS = "projects: {web: {name: Web}, app: {name: App}}\n"
RESOURCES = f"""\
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
    """A copy of the program with the kind, a workspace in a repository, and a service."""

    folder: Path
    service: Service
    git: Git

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command in the workspace; return what it prints."""
        return run(self.folder, "-m", "reconciler", *words, "-C", self.git.folder, code=code)

    def apply(self, *words: str) -> str:
        """Commit the files, and apply them twice: the second time there is nothing to do."""
        self.git.commit()
        applied = self.run("apply", "--auto-approve", *words)
        written = list(self.service.writes)
        assert NOTHING in self.run("apply", "--auto-approve")
        assert self.service.writes == written
        return applied

    def edit(self, old: str, new: str) -> None:
        """Change the text of the resources."""
        file = self.git.folder / "resources.yaml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))


@pytest.fixture
def program(copy: Path) -> Iterator[Program]:
    (copy / "schemas/hog_function.schema.json").write_text(json.dumps(SCHEMA))
    with hog_service() as service:
        git = Git.init(copy / "repository")
        files = {"reconciler.yaml": SERVED % service.base_url, "resources.yaml": RESOURCES}
        write(git.folder, files)
        yield Program(copy, service, git)


def test_it_is_created_updated_renamed_moved_and_deleted(program: Program) -> None:
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
    assert program.service.writes == written

    program.edit("project: web", "project: app")
    program.apply("--allow-replace")
    ((name, project, live_id),) = program.service.places()
    assert (name, project) == ("To Slack", "App")
    assert live_id != made["id"]

    program.edit("project: app\n", "project: app\n    state: absent\n")
    assert "- delete" in program.apply()
    assert program.service.alive() == []


def test_it_is_imported_and_pruned(program: Program) -> None:
    program.apply()
    written = list(program.service.writes)
    for _ in range(2):
        (program.git.folder / "resources.yaml").write_text(PROJECTS)
        program.run("import", "--into", "resources.yaml")
        assert "hog: return event" in program.run("show", "hog_function.to-slack")
        assert "Imported: nothing" in program.run("import", "--into", "resources.yaml")
    program.apply()
    assert program.service.writes == written

    (program.git.folder / "resources.yaml").write_text(PROJECTS)
    assert "- delete" in program.apply()
    assert program.service.alive() == []
