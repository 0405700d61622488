"""References read only what the workspace lists, and no credential ends up in a plain field."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from reconciler.errors import SecretUnavailable
from reconciler.model.settings import Readable, SecretSettings
from reconciler.model.values import SecretRef
from reconciler.service.http import SecretResolver
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator

SECRET = "hunter2-of-the-machine"
RUNNERS = [
    *("GITHUB_TOKEN", "ACTIONS_RUNTIME_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL", "CI_JOB_TOKEN"),
    *("CI_JOB_JWT_V2", "CI_REPOSITORY_URL", "SYSTEM_ACCESSTOKEN", "RECONCILER_API_KEY", "OWN_KEY"),
]
"""Variables with the API key, and with tokens of CI runners."""
CREDENTIALS = ["AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DB_PASSWORD", "STRIPE_KEY", "LISTED_SECRET"]
WEB = "projects: {web: {name: %s}}\n"
PLAIN = {
    "name": WEB % "'x REF'",
    "prefix": "batch_exports: {lake: {project: {id: 1}, name: Lake, interval: hour, destination: "
    "{type: S3, config: {bucket_name: b, region: r, prefix: 'REF'}}}}\n",
    "variable": WEB % "'${var:v}'",
}
HTTP = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: HTTP, config: {url: https://eu.i.posthog.com/batch/, token: '%s'}}
"""
OWN_KEY = "environments: {a: {api_key: '${env:OWN_KEY}'}}"


@dataclass(frozen=True)
class Job:
    """A workspace and a service that no command has called."""

    folder: Path
    service: RunningEmulator

    def write(self, resources: str, *lines: str) -> None:
        """Write the workspace."""
        text = "\n".join(["version: 1", *lines, ""])
        write(self.folder, {"reconciler.yaml": text, "a.yaml": resources})

    def run(self, command: str, environ: Mapping[str, str] | None = None) -> Ran:
        """Run a command, with RECONCILER_* variables for the connection."""
        variables = {**self.service.environ(), **(environ or {})}
        return reconciler(*command.split(), "-C", self.folder, environ=variables)

    def refused(self, command: str, *texts: str, environ: Mapping[str, str] | None = None) -> Ran:
        """Check that a command fails with some texts, without a secret and without a request."""
        ran = self.run(command, environ)
        assert ran.code == 1, ran.out
        for text in texts:
            assert text in ran.err
        assert SECRET not in ran.out + ran.err
        assert self.service.requests() == []
        return ran


@pytest.fixture
def job(tmp_path: Path, emulator: RunningEmulator) -> Job:
    emulator.clear_requests()
    return Job(tmp_path / "w", emulator)


def read(
    folder: Path,
    *paths: str | Path,
    environ: Mapping[str, str] | None = None,
    listed: tuple[str, ...] = (),
) -> set[str]:
    """Return the secrets in files, and "not read: …" for the others. `listed` are folders."""
    settings = SecretSettings(str(folder), trusted=Readable(secret_files=listed))
    resolver, found = SecretResolver(settings, environ or {}), set()
    for path in paths:
        try:
            found.add(resolver.resolve(SecretRef.of("file", str(path))).reveal())
        except SecretUnavailable as error:
            found.add(f"not read: {error}")
    return found


def assert_not_read(found: set[str], message: str = "") -> None:
    assert found
    for text in found:
        assert text.startswith("not read: ")
        assert message in text


# Commands


@pytest.mark.parametrize("switch", ["", "0", "true"])
@pytest.mark.parametrize("command", ["plan", "import --dry-run", "apply --auto-approve"])
def test_security_1_files_alone_start_no_command(job: Job, command: str, switch: str) -> None:
    started = job.folder / "started"
    service = job.service
    job.write(
        WEB % "Web",
        "policy: {allow_exec_secrets: true}",
        "environments:",
        f"  a: {{base_url: '{service.base_url}', organization: '{service.organization}',"
        f" api_key: '${{secret:exec:touch {started}}}'}}",
    )
    ran = reconciler(*command.split(), "-C", job.folder, environ={"RECONCILER_ALLOW_EXEC": switch})
    assert (ran.code, service.requests()) == (1, []), ran.out
    assert "RECONCILER_ALLOW_EXEC is not set" in ran.err
    assert not started.exists()


@pytest.mark.parametrize("command", ["plan", "validate", "import --dry-run"])
def test_security_1_commands_of_resources_run_only_in_apply(job: Job, command: str) -> None:
    started = job.folder / "started"
    job.write(HTTP % f"${{secret:exec:touch {started}}}", "policy: {allow_exec_secrets: true}")
    assert job.run(command, {"RECONCILER_ALLOW_EXEC": "1"}).code in (0, 1)
    assert not started.exists()


# Variables


@pytest.mark.parametrize("command", ["plan", "validate -e a", "plan --format json"])
@pytest.mark.parametrize("place", PLAIN)
def test_security_4_a_variable_that_is_not_listed_is_not_read(
    job: Job, place: str, command: str
) -> None:
    resources = PLAIN[place].replace("REF", "${env:REGION}")
    job.write(resources, "vars: {v: '${env:REGION}'}", "env: [REGIO]", "environments: {a: {}}")
    ran = job.refused(command, environ={"REGION": SECRET})
    texts = ran.out + ran.err
    assert "environment variable REGION is not listed in `env:`" in texts
    assert "did you mean 'REGIO'? add REGION to the list `env:` of reconciler.yaml" in texts


@pytest.mark.parametrize("name", [*CREDENTIALS, *RUNNERS, "RECONCILER_SECRET_X"])
@pytest.mark.parametrize("place", PLAIN)
def test_security_4_a_credential_in_a_plain_field_is_refused_even_if_it_is_listed(
    job: Job, place: str, name: str
) -> None:
    reference = f"${{env:{name}:-none}}"
    lists = f"env: [{name}]", "secrets: [LISTED_SECRET]", f"vars: {{v: '{reference}'}}"
    job.write(PLAIN[place].replace("REF", reference), *lists, OWN_KEY)
    key = {} if name == "RECONCILER_API_KEY" else {name: SECRET}
    ran = job.refused("plan", f"environment variable {name} ", environ=key)
    assert job.service.environ()["RECONCILER_API_KEY"] not in ran.out + ran.err


def test_security_4_a_credential_in_an_address_is_refused_from_a_variable_too(job: Job) -> None:
    job.write(PLAIN["prefix"].replace("REF", "h.example/?token=${env:REGION}"), "env: [REGION]")
    message = "is a secret, but this reference is filled in as plain text"
    job.refused("plan", message, "remove the credentials", environ={"REGION": SECRET})
    assert job.run("plan", {"REGION": "eu"}).code == 0


def test_security_4_listed_and_prefixed_variables_are_read(job: Job) -> None:
    job.write(WEB % "'${env:REGION} ${env:RECONCILER_VAR_SORT_KEY}'", "env: [REGION]")
    ran = job.run("plan", {"REGION": "Europe", "RECONCILER_VAR_SORT_KEY": "day"})
    assert ran.code == 0, ran.err
    assert '+ project.web "Europe day"' in ran.out


def test_security_4_validate_of_all_environments_reads_no_variable(job: Job) -> None:
    job.write("projects: {web: {name: Web, timezone: '${env:ZONE}'}}\n", "env: [ZONE]")
    ran = job.run("validate", {"ZONE": SECRET})
    assert (ran.code, SECRET in ran.out + ran.err) == (0, False)


@pytest.mark.parametrize("name", RUNNERS)
def test_security_4_no_secret_comes_from_the_api_key_or_a_runner(job: Job, name: str) -> None:
    job.write(HTTP % f"${{secret:env:{name}}}", f"secrets: [{name}]", OWN_KEY)
    message = f"environment variable {name} contains "
    job.refused("apply --auto-approve", message, environ={"OWN_KEY": SECRET})


def test_security_4_a_secret_that_is_not_listed_is_an_error(job: Job) -> None:
    job.write(HTTP % "${secret:env:OTHER}")
    texts = "OTHER is not listed in `secrets:`", "add `secrets: [OTHER]`"
    job.refused("plan", *texts, environ={"OTHER": SECRET})


def test_security_4_a_secret_that_the_trusted_branch_does_not_list_is_not_resolved() -> None:
    environ = {"NEW": SECRET, "OLD": "an-old-value", "RECONCILER_SECRET_X": "prefixed"}
    trusted = Readable(secrets=frozenset({"OLD"}), strict=True, reason="main does not")
    resolver = SecretResolver(SecretSettings(".", trusted=trusted), environ)
    assert resolver.resolve(SecretRef.of("env", "OLD")).reveal() == "an-old-value"
    assert resolver.resolve(SecretRef.of("env", "RECONCILER_SECRET_X")).reveal() == "prefixed"
    with pytest.raises(SecretUnavailable, match="here: main does not"):
        resolver.resolve(SecretRef.of("env", "NEW"))
    # The API key is no entry of the list, and does not open it for resources.
    assert resolver.resolve(SecretRef.of("env", "NEW"), for_api_key=True).reveal() == SECRET
    with pytest.raises(SecretUnavailable):
        resolver.resolve(SecretRef.of("env", "NEW"))


# Files


@pytest.mark.parametrize("path", [".git/config", ".env", "a/.hidden/b", "./.env", "a/../.env"])
@pytest.mark.parametrize("resources", [WEB % "'${file:PATH}'", HTTP % "${secret:file:PATH}"])
def test_security_5_a_hidden_file_is_not_read(job: Job, path: str, resources: str) -> None:
    write(job.folder, dict.fromkeys((".git/config", ".env", "a/.hidden/b"), SECRET))
    job.write(resources.replace("PATH", path))
    job.refused("plan", path)


@pytest.mark.parametrize("target", [".git/config", "../outside", "loop", "deep/.env"])
def test_security_26_a_link_to_a_hidden_file_or_out_of_the_folder_is_not_followed(
    job: Job, target: str
) -> None:
    write(job.folder, dict.fromkeys((".git/config", "deep/.env", "../outside"), SECRET))
    job.write(WEB % "'${file:loop}'")
    (job.folder / "loop").symlink_to(target)
    job.refused("plan", "loop")
    assert_not_read(read(job.folder, "loop"))


def test_security_5_secret_files_are_read_below_listed_folders_only(tmp_path: Path) -> None:
    names = ("listed/key", "temporary/key", "project.tmp/key", "w/key", "elsewhere/key")
    write(tmp_path, dict.fromkeys(names, f"{SECRET}\n"))
    environ = {
        "RUNNER_TEMP": str(tmp_path / "temporary"),
        "CI_PROJECT_DIR": str(tmp_path / "project"),
        "AGENT_TEMPDIRECTORY": "",
    }
    folder, listed = tmp_path / "w", ("../listed",)
    own = read(folder, "key", "../listed/key", environ=environ, listed=listed)
    paths = [tmp_path / name for name in names]
    assert own | read(folder, *paths[:3], environ=environ, listed=listed) == {SECRET}
    (tmp_path / "listed/link").symlink_to("../elsewhere/key")
    foreign = "../elsewhere/key", "../listed/link", paths[-1]
    found = read(folder, *foreign, environ=environ, listed=listed)
    assert_not_read(found, "outside the workspace")


TOKENS = ("kubernetes.io/serviceaccount/token", "azure/tokens/t", "a/..2026_11_23/b")


@pytest.mark.parametrize("name", TOKENS)
def test_security_n6_the_token_of_a_cluster_is_not_a_secret_of_the_workspace(
    job: Job, name: str
) -> None:
    path = f"/run/secrets/{name}"
    job.write(HTTP % f"${{secret:file:{path}}}")
    job.refused("plan", f"{path} is outside the workspace")
    job.write(HTTP % f"${{secret:file:{path}}}", f"secret_files: [{Path(path).parent}]")
    assert job.run("validate").code == 0


def test_security_n6_files_of_containers_are_read_and_links_to_tokens_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = write(tmp_path / "run", dict.fromkeys((*TOKENS, "..2026_11_23/key", "plain"), SECRET))
    (mount / "..data").symlink_to("..2026_11_23")
    (mount / "key").symlink_to("..data/key")
    monkeypatch.setattr("reconciler.providers.file._CONTAINER", str(mount))
    folder = write(tmp_path / "w", {"own": SECRET})
    assert read(folder, mount / "key", mount / "plain") == {SECRET}
    for name in TOKENS:
        (folder / Path(name).name).symlink_to(mount / name)
        assert_not_read(read(folder, mount / name, Path(name).name), "outside the workspace")


def test_attack_28_a_link_gives_a_secret_no_second_name(tmp_path: Path) -> None:
    mount = write(tmp_path / "mount", {"known": SECRET})
    folder = write(tmp_path / "w", {"known": SECRET})
    (folder / "beside").symlink_to("known")
    (folder / "above").symlink_to(".")
    (folder / "outside").symlink_to(mount / "known")
    listed = (str(mount),)
    assert read(folder, "known", mount / "known", listed=listed) == {SECRET}
    assert_not_read(read(folder, "beside", "above/known", "outside", listed=listed), "is a link")


def test_attack_28_another_path_of_a_file_is_the_same_secret(job: Job) -> None:
    job.write(HTTP % "${secret:file:./keys//token}")
    write(job.folder, {"keys/token": SECRET})
    ran = job.run("plan")
    assert "(file:keys/token)" in ran.out, ran.err


@pytest.mark.parametrize("name", ["pipe", "folder", "large"])
def test_security_5_only_regular_files_of_a_bounded_size_are_read(job: Job, name: str) -> None:
    job.write(WEB % f"'${{file:{name}}}'")
    os.mkfifo(job.folder / "pipe")
    (job.folder / "folder").mkdir()
    (job.folder / "large").write_bytes(b"x" * (2**20 + 1))
    assert_not_read(read(job.folder, name), "not a regular file of at most 1 MB")
    job.refused("plan", name)


# Literals


def test_security_15_separators_between_secrets_are_no_literals(job: Job) -> None:
    job.write(HTTP % "${secret:env:A}:${secret:env:B}", "secrets: [A, B]")
    ran = job.run("plan", {"A": "a-value", "B": "b-value"})
    assert ran.code == 0, ran.err
