"""What `init --ci` writes runs as it is, once what it prints is set at the host.

A pull request, its comment, the merge, the apply and the drift of the night, on three hosts, each
with one environment and with three.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import StartService
from tests.recipes.azure import Azure
from tests.recipes.github import Forge, after_plan, context, proposal
from tests.recipes.gitlab import GitLab
from tests.recipes.hosts import JobResult, source_repository
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git

pytestmark = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("bash")), reason="jq or bash is not installed"
)
ORGANIZATIONS = ("0188461e-55a4-0000-1cb3-0b1d3b6c6ac0", "0188461e-55a4-0000-1cb3-0b1d3b6c6ac1")
ADDRESSES = (
    "https://us.posthog.com",
    "https://eu.posthog.com",
    "https://posthog.acme.example/analytics",
)
BRANCHES = ("main", "master")
LAYOUTS: tuple[Mapping[str, str], ...] = (
    {"production": ORGANIZATIONS[0]},
    {"production": ORGANIZATIONS[0], "staging": ORGANIZATIONS[1], "dev": ORGANIZATIONS[1]},
)
CASES = [
    (host, ADDRESSES[(h + n) % 3], BRANCHES[(h + n) % 2], layout)
    for h, host in enumerate(("github", "gitlab", "azure"))
    for n, layout in enumerate(LAYOUTS)
]
SCOPES = {
    "read": ["project:read", "batch_export:read"],
    "write": ["project:write", "batch_export:write"],
}
SEED = {
    "organizations": [{"id": id_, "name": id_[-1], "projects": []} for id_ in ORGANIZATIONS],
    "keys": [
        {"value": f"phx_{role}_{id_[-1]}", "scopes": scopes, "organizations": [id_]}
        for id_ in ORGANIZATIONS
        for role, scopes in SCOPES.items()
    ],
}
RESOURCES = """\
projects:
  web: {name: "Web ${var:label}"}
batch_exports:
  lake:
    project: web
    name: lake ${var:label}
    interval: hour
    destination: {type: NoOp, config: {}}
"""


@dataclass
class Pipelines:
    """The pipelines of a repository at a host, by environment. `values` are set at the host.

    `check` runs those of a pull request and returns what a reviewer sees, `deploy` those of a push
    with an approval, and `drift` those of the night: whether they report drift.
    """

    folder: Path
    origin: Git
    branch: str
    environments: Collection[str]
    values: Mapping[str, str]


@dataclass
class OnGitHub(Pipelines):
    def __post_init__(self) -> None:
        self.forge = Forge(
            self.folder,
            self.origin,
            {name: text for name, text in self.values.items() if name.split("_")[2:3] == ["KEY"]},
            {name: text for name, text in self.values.items() if "ORGANIZATION" in name},
        )

    def run(self, workflow: str, job: str, environment: str, event: dict[str, Any]) -> JobResult:
        commit = event["sha"]
        checkout = self.folder / f"files-{commit}"
        if not checkout.exists():
            self.origin.clone(checkout)
            Git(checkout).run("checkout", "--quiet", "--detach", commit)
        self.forge.workflows = checkout / ".github/workflows"
        name = f"reconciler-{workflow}{suffix_of(environment)}.yml"
        needs = event.pop("needs", {})
        result = self.forge.run(name, job, github=event, needs=needs)
        assert (result.code, result.skipped) == (0, False), result.log
        return result

    def check(self, environment: str, commit: str) -> str:
        branch = self.branch
        self.run("plan", "plan", environment, proposal(branch, commit))
        if environment == "production":
            group = {"base_sha": self.origin.head(f"{commit}~")}
            queued = context(branch, commit, "merge_group", merge_group=group)
            self.run("plan", "plan", environment, queued)
        self.run("comment", "comment", environment, after_plan(branch, commit))
        return self.forge.state()["comments"][-1]["body"]

    def deploy(self, environment: str, commit: str, before: str) -> None:
        event = context(self.branch, commit, "push", before=before)
        plan = self.run("apply", "plan", environment, {**event})
        self.run("apply", "apply", environment, {**event, "needs": {"plan": plan}})

    def drift(self, environment: str, commit: str) -> bool:
        event = context(self.branch, commit, "schedule")
        drift = self.run("drift", "drift", environment, {**event})
        self.run("drift", "issue", environment, {**event, "needs": {"drift": drift}})
        title = f"Drift in {environment}"
        issues = self.forge.state()["issue"]
        assert any(issue["title"] == title for issue in issues) == (
            drift.outputs["drift"] == "true"
        )
        return drift.outputs["drift"] == "true"


@dataclass
class OnGitLab(Pipelines):
    def __post_init__(self) -> None:
        scopes = {f"POSTHOG_WRITE_KEY{end_of(name)}": name for name in self.environments}
        values = {
            (name, scopes[name]) if name in scopes else name: value
            for name, value in self.values.items()
        }
        self.pipelines: dict[tuple[str, str], Mapping[str, JobResult]] = {}
        self.gitlab = GitLab(self.folder, self.origin, self.branch, values)

    def job(self, source: str, commit: str, before: str, name: str) -> JobResult:
        """Return how a job ended. One pipeline has the jobs of all environments."""
        if (source, commit) not in self.pipelines:
            self.pipelines[source, commit] = self.gitlab.run(source, commit, before)
        return self.pipelines[source, commit][f"reconciler {name}"]

    def check(self, environment: str, commit: str) -> str:
        before = self.origin.head(f"{commit}~")
        check = self.job("merge_request_event", commit, before, f"check pipelines {environment}")
        assert check.code == 0, check.log
        return check.summary

    def deploy(self, environment: str, commit: str, before: str) -> None:
        for name in ("plan", "apply"):
            job = self.job("push", commit, before, f"{name} pipelines {environment}")
            assert job.code == 0, job.log

    def drift(self, environment: str, commit: str) -> bool:
        self.pipelines.pop(("schedule", commit), None)
        drift = self.job("schedule", commit, commit, f"drift pipelines {environment}")
        assert drift.code in (0, 2), drift.log
        return drift.code == 2


@dataclass
class OnAzure(Pipelines):
    def __post_init__(self) -> None:
        groups = {}
        for environment, role in product(self.environments, SCOPES):
            end = end_of(environment)
            names = (f"POSTHOG_ORGANIZATION{end}", f"POSTHOG_{role.upper()}_KEY{end}")
            group = f"posthog-{role}{suffix_of(environment)}"
            groups[group] = {name: self.values[name] for name in names}
        self.azure = Azure(self.folder, self.origin, groups)

    def run(self, environment: str, reason: str, commit: str) -> Mapping[str, JobResult]:
        file = f".azure-pipelines/reconciler{suffix_of(environment)}.yml"
        return self.azure.run(file, reason, commit, self.branch)

    def check(self, environment: str, commit: str) -> str:
        (check,) = self.run(environment, "PullRequest", commit).values()
        assert check.code == 0, check.log
        return check.summary

    def deploy(self, environment: str, commit: str, before: str) -> None:
        # Azure does not say what was there before a push.
        del before
        results = self.run(environment, "IndividualCI", commit)
        assert list(results) == ["plan", "apply"]
        assert all(result.code == 0 for result in results.values()), results
        assert (self.azure.folder / "artifacts/audit/audit.jsonl").exists()

    def drift(self, environment: str, commit: str) -> bool:
        (drift,) = self.run(environment, "Schedule", commit).values()
        assert drift.code in (0, 2), drift.log
        return drift.code == 2


PIPELINES: Mapping[str, Any] = {"github": OnGitHub, "gitlab": OnGitLab, "azure": OnAzure}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[2]}-{len(case[3])}")
def test_ecosystem_1_the_first_day(
    case: tuple[str, str, str, Mapping[str, str]],
    tmp_path: Path,
    service_of: StartService,
) -> None:
    host, address, branch, layout = case
    service = service_of(SEED)
    git, origin = repository(tmp_path, branch)
    steps = {
        environment: initialise(git, host, environment, address, layout) for environment in layout
    }
    values = dict(values_for(steps, layout))
    assert all(re.search(rf"\b{branch}\b", text) for text in steps.values())
    check_files(git, address, branch, layout)

    # The only changes of what was written: the address, and that GitLab records applies.
    for file in git.run("grep", "-l", "--untracked", address).splitlines():
        path = git.folder / file
        text = path.read_text().replace(address, service.base_url)
        path.write_text(text.replace("      suffix:", "      push: true\n      suffix:"))
    pin(git)
    before = git.commit()
    git.run("push", "--quiet", "origin", f"HEAD:{branch}")
    pipelines = PIPELINES[host](tmp_path / "host", origin, branch, layout, values)

    write(git.folder, {"pipelines/resources.yaml": RESOURCES})
    proposed = git.commit()
    git.run("push", "--quiet", "origin", "HEAD:feature")
    for environment in layout:
        assert "2 to create" in pipelines.check(environment, proposed)
    assert service.exports() == {}

    git.run("push", "--quiet", "origin", f"HEAD:{branch}")
    for environment in layout:
        pipelines.deploy(environment, proposed, before)
        assert f"lake {environment}" in service.exports()
    assert {origin.head(f"{ref}^1") for ref in origin.inventories()} == {proposed}
    assert {name: place_of(service, name) for name in service.exports()} == {
        f"lake {environment}": organization for environment, organization in layout.items()
    }

    environment, organization = list(layout.items())[-1]
    assert pipelines.drift(environment, proposed) is False
    path, key = service.path_of(f"lake {environment}"), f"phx_write_{organization[-1]}"
    service.call("PATCH", path, {"interval": "day"}, key=key).raise_for_status()
    assert pipelines.drift(environment, proposed) is True


def repository(folder: Path, branch: str) -> tuple[Git, Git]:
    """Return a clone and its origin, with a default branch."""
    git = Git.init(folder / "repo")
    git.run("symbolic-ref", "HEAD", f"refs/heads/{branch}")
    git.commit()
    origin = git.bare(folder / "origin.git", branch)
    # The current branch is not the default one.
    git.run("switch", "--quiet", "--create", "first-day")
    return git, origin


def initialise(
    git: Git, host: str, environment: str, address: str, layout: Mapping[str, str]
) -> str:
    """Write a pipeline for an environment; return the next steps that are printed."""
    words = ["init", "-C", git.folder / "pipelines", "--ci", host, "-e", environment]
    file = git.folder / "pipelines/reconciler.yaml"
    if environment == "production":
        words += ["--base-url", address, "--organization", layout[environment]]
    else:
        connection = f"base_url: {address}, organization: {layout[environment]}"
        text = f"  {environment}: {{{connection}, vars: {{label: {environment}}}}}\n"
        file.write_text(file.read_text() + text)
    ran = reconciler(*words)
    assert ran.code == 0, ran.err
    if environment == "production":
        file.write_text(file.read_text() + "    vars: {label: production}\n")
    elif host == "gitlab":
        # What the next steps say about a .gitlab-ci.yml of one's own.
        own = git.folder / ".gitlab-ci.yml"
        own.write_text(own.read_text() + f"  - local: /.gitlab/reconciler-{environment}.yml\n")
    return ran.err


def values_for(steps: Mapping[str, str], layout: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the secrets and variables that the next steps ask for, with their values."""
    for environment, text in steps.items():
        end, organization = end_of(environment), layout[environment]
        expected = {
            f"POSTHOG_ORGANIZATION{end}": organization,
            f"POSTHOG_READ_KEY{end}": f"phx_read_{organization[-1]}",
            f"POSTHOG_WRITE_KEY{end}": f"phx_write_{organization[-1]}",
        }
        assert set(re.findall(r"POSTHOG_\w+", text)) == expected.keys()
        assert f"POSTHOG_ORGANIZATION{end}: {organization}\n" in text.replace(",", "\n")
        yield from expected.items()


def check_files(git: Git, address: str, branch: str, environments: Collection[str]) -> None:
    """Check what no script reads: triggers, and that no other address or branch is left."""
    files = git.run("ls-files", "--others", ":(glob).g*/**", ".azure-pipelines").splitlines()
    for file in files:
        text = (git.folder / file).read_text()
        others = {*ADDRESSES, "ADDRESS-OF-RECONCILER"} - {address}
        if "component" not in file:
            assert not any(other in text for other in others), file
        unused = "master" if branch == "main" else "main"
        assert not re.search(rf"\b{unused}\b", text.replace("# v4", "")), file
    for environment in environments:
        push = git.folder / f".github/workflows/reconciler-apply{suffix_of(environment)}.yml"
        if push.exists():
            # YAML 1.1 reads the key `on` as true.
            on = yaml.safe_load(push.read_text())[True]
            assert on["push"]["branches"] == [branch]
            assert on["push"]["paths"][0] == "pipelines/**"


def pin(git: Git) -> None:
    """Set the repository and the commit of the program, as the next steps say, for Azure."""
    source = source_repository(git.folder.parent / "source")
    for path in (git.folder / ".azure-pipelines").glob("*.yml"):
        text = path.read_text()
        text = re.sub(r'(?<=name: SOURCE, value: )"[^"]*"', str(source.folder), text)
        path.write_text(text.replace("FULL-COMMIT-ID", source.head()))


def place_of(service: RunningEmulator, name: str) -> str:
    """Return the organization that has an export."""
    (project,) = [
        project
        for project in service.state()["projects"]
        if any(export["name"] == name for export in project["batch_exports"])
    ]
    return str(project["organization"])


def suffix_of(environment: str) -> str:
    """Return the end of the names of files of an environment."""
    return "" if environment == "production" else f"-{environment}"


def end_of(environment: str) -> str:
    """Return the end of the names of variables of an environment."""
    return suffix_of(environment).upper().replace("-", "_")
