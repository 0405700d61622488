"""References read only what the workspace lists, and no credential ends up in a plain field."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    "GITHUB_TOKEN",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "CI_JOB_TOKEN",
    "CI_JOB_JWT_V2",
    "CI_REPOSITORY_URL",
    "SYSTEM_ACCESSTOKEN",
    "RECONCILER_API_KEY",
    "OWN_KEY",
]
"""Variables with the API key, and with tokens of CI runners."""
CREDENTIALS = ["AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DB_PASSWORD", "STRIPE_KEY", "LISTED_SECRET"]
PLAIN = {
    "name": "projects: {web: {name: 'x REF'}}\n",
    "prefix": "batch_exports: {lake: {project: {id: 1}, name: Lake, interval: hour, destination: "
    "{type: S3, config: {bucket_name: b, region: r, prefix: 'REF'}}}}\n",
    "variable": "projects: {web: {name: '${var:v}'}}\n",
}
HTTP = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: HTTP, config: {url: https://eu.i.posthog.com/batch/, token: '%s'}}
"""


def workspace(folder: Path, resources: str, *lines: str) -> Path:
    text = "\n".join(["version: 1", *lines, ""])
    return write(folder, {"reconciler.yaml": text, "a.yaml": resources})


def run(
    folder: Path, *words: str | Path, environ: Mapping[str, str], service: RunningEmulator
) -> Ran:
    """Run a command against a service, with RECONCILER_* variables for the connection."""
    return reconciler(*words, "-C", folder, environ={**service.environ(), **environ})


def assert_refused(ran: Ran, service: RunningEmulator, *texts: str) -> None:
    """Check that a run fails with some texts, without a secret and without a request."""
    assert ran.code == 1, ran.out
    for text in texts:
        assert text in ran.err
    assert SECRET not in ran.out + ran.err
    assert service.requests() == []


@pytest.fixture
def service(emulator: RunningEmulator) -> RunningEmulator:
    emulator.clear_requests()
    return emulator


SHOW = ("show", "lake")


# Commands


@pytest.mark.parametrize("switch", ["", "0", "true"])
@pytest.mark.parametrize("words", [("plan",), ("import", "--dry-run"), ("apply", "--auto-approve")])
def test_security_1_files_alone_start_no_command(
    tmp_path: Path, service: RunningEmulator, words: tuple[str, ...], switch: str
) -> None:
    started = tmp_path / "started"
    folder = workspace(
        tmp_path / "w",
        "projects: {web: {name: Web}}\n",
        "policy: {allow_exec_secrets: true}",
        "environments:",
        f"  a: {{base_url: '{service.base_url}', organization: '{service.organization}',"
        f" api_key: '${{secret:exec:touch {started}}}'}}",
    )
    ran = reconciler(*words, "-C", folder, environ={"RECONCILER_ALLOW_EXEC": switch})
    assert_refused(ran, service, "RECONCILER_ALLOW_EXEC is not set")
    assert not started.exists()


@pytest.mark.parametrize("words", [("plan",), ("validate",), ("import", "--dry-run")])
def test_security_1_commands_of_resources_run_only_in_apply(
    tmp_path: Path, service: RunningEmulator, words: tuple[str, ...]
) -> None:
    started = tmp_path / "started"
    folder = workspace(
        tmp_path / "w",
        HTTP % f"${{secret:exec:touch {started}}}",
        "policy: {allow_exec_secrets: true}",
    )
    ran = run(folder, *words, environ={"RECONCILER_ALLOW_EXEC": "1"}, service=service)
    assert ran.code in (0, 1)
    assert not started.exists()


# The connection


@pytest.mark.parametrize(
    "connection",
    [
        "{base_url: 'http://127.0.0.1:1/${env:PLAIN}', organization: o}",
        "{base_url: 'http://127.0.0.1:1', organization: '${env:PLAIN}'}",
        "{base_url: 'http://127.0.0.1:1', organization: o, api_key: '${env:GITHUB_TOKEN}'}",
        "{base_url: 'http://127.0.0.1:1', organization: o, api_key: '${secret:file:/etc/passwd}'}",
        "{base_url: 'http://127.0.0.1:1', organization: o, api_key: '${secret:file:../key}'}",
        "{base_url: 'http://127.0.0.1:1', organization: o, api_key: '${secret:file:.netrc}'}",
    ],
)
def test_security_2_a_connection_reads_nothing_that_is_not_listed(
    tmp_path: Path, service: RunningEmulator, connection: str
) -> None:
    write(tmp_path, {"key": SECRET, "w/.netrc": SECRET})
    folder = workspace(tmp_path / "w", "projects: {}\n", f"environments: {{a: {connection}}}")
    environ = {"PLAIN": SECRET, "GITHUB_TOKEN": SECRET}
    ran = reconciler("plan", "-C", folder, environ=environ)
    assert_refused(ran, service, "reconciler.yaml:2:")


# Variables


@pytest.mark.parametrize(
    "words", [("plan",), ("validate", "-e", "a"), ("plan", "--format", "json")]
)
@pytest.mark.parametrize("place", PLAIN)
def test_security_4_a_variable_that_is_not_listed_is_not_read(
    tmp_path: Path, service: RunningEmulator, place: str, words: tuple[str, ...]
) -> None:
    folder = workspace(
        tmp_path,
        PLAIN[place].replace("REF", "${env:REGION}"),
        "vars: {v: '${env:REGION}'}",
        "env: [REGIO]",
        "environments: {a: {}}",
    )
    ran = run(folder, *words, environ={"REGION": SECRET}, service=service)
    texts = ran.out + ran.err
    assert ran.code == 1
    assert "environment variable REGION is not listed in `env:`" in texts
    assert "did you mean 'REGIO'? add REGION to the list `env:` of reconciler.yaml" in texts
    assert SECRET not in texts
    assert service.requests() == []


@pytest.mark.parametrize("name", [*CREDENTIALS, *RUNNERS, "RECONCILER_SECRET_X"])
@pytest.mark.parametrize("place", PLAIN)
def test_security_4_a_credential_in_a_plain_field_is_refused_even_if_it_is_listed(
    tmp_path: Path, service: RunningEmulator, place: str, name: str
) -> None:
    reference = f"${{env:{name}:-none}}"
    folder = workspace(
        tmp_path,
        PLAIN[place].replace("REF", reference),
        f"vars: {{v: '{reference}'}}",
        f"env: [{name}]",
        "secrets: [LISTED_SECRET]",
        "environments: {a: {api_key: '${env:OWN_KEY}'}}",
    )
    key = {} if name == "RECONCILER_API_KEY" else {name: SECRET}
    ran = run(folder, "plan", environ=key, service=service)
    assert_refused(ran, service, f"environment variable {name} ")
    assert service.environ()["RECONCILER_API_KEY"] not in ran.out + ran.err


def test_security_4_listed_and_prefixed_variables_are_read(
    tmp_path: Path, service: RunningEmulator
) -> None:
    text = "projects: {web: {name: '${env:REGION} ${env:RECONCILER_VAR_SORT_KEY}'}}\n"
    folder = workspace(tmp_path, text, "env: [REGION]")
    environ = {"REGION": "Europe", "RECONCILER_VAR_SORT_KEY": "day"}
    ran = run(folder, "plan", environ=environ, service=service)
    assert ran.code == 0, ran.err
    assert '+ project.web "Europe day"' in ran.out


def test_security_4_validate_of_all_environments_reads_no_variable(tmp_path: Path) -> None:
    text = "projects: {web: {name: Web, timezone: '${env:ZONE}'}}\n"
    folder = workspace(tmp_path, text, "env: [ZONE]")
    ran = reconciler("validate", "-C", folder, environ={"ZONE": SECRET})
    assert (ran.code, SECRET in ran.out + ran.err) == (0, False)


@pytest.mark.parametrize("name", RUNNERS)
def test_security_4_no_secret_comes_from_the_api_key_or_a_runner(
    tmp_path: Path, service: RunningEmulator, name: str
) -> None:
    folder = workspace(
        tmp_path,
        HTTP % f"${{secret:env:{name}}}",
        f"secrets: [{name}]",
        "environments: {a: {api_key: '${env:OWN_KEY}'}}",
    )
    ran = run(folder, "apply", "--auto-approve", environ={"OWN_KEY": SECRET}, service=service)
    assert_refused(ran, service, f"environment variable {name} contains ")


def test_security_4_a_secret_that_is_not_listed_is_an_error(
    tmp_path: Path, service: RunningEmulator
) -> None:
    folder = workspace(tmp_path, HTTP % "${secret:env:OTHER}")
    ran = run(folder, "plan", environ={"OTHER": SECRET}, service=service)
    assert_refused(ran, service, "OTHER is not listed in `secrets:`", "add `secrets: [OTHER]`")


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
@pytest.mark.parametrize("kind", ["file", "secret:file"])
def test_security_5_a_hidden_file_is_not_read(
    tmp_path: Path, service: RunningEmulator, path: str, kind: str
) -> None:
    files = {".git/config": SECRET, ".env": SECRET, "a/.hidden/b": SECRET}
    field = (
        HTTP % f"${{{kind}:{path}}}"
        if kind != "file"
        else f"projects: {{w: {{name: '${{file:{path}}}'}}}}\n"
    )
    folder = workspace(write(tmp_path, files), field)
    ran = run(folder, "plan", environ={}, service=service)
    assert_refused(ran, service, path)


@pytest.mark.parametrize("target", [".git/config", "../outside", "loop", "deep/.env"])
def test_security_26_a_link_to_a_hidden_file_or_out_of_the_folder_is_not_followed(
    tmp_path: Path, service: RunningEmulator, target: str
) -> None:
    write(tmp_path, {"w/.git/config": SECRET, "w/deep/.env": SECRET, "outside": SECRET})
    folder = workspace(tmp_path / "w", "projects: {web: {name: '${file:loop}'}}\n")
    (folder / "loop").symlink_to(target)
    ran = run(folder, "plan", environ={}, service=service)
    assert_refused(ran, service, "loop")
    resolver = SecretResolver(SecretSettings(str(folder)), {})
    with pytest.raises(SecretUnavailable):
        resolver.resolve(SecretRef.of("file", "loop"))


def test_security_5_secret_files_are_read_below_listed_folders_only(tmp_path: Path) -> None:
    names = ("listed/key", "temporary/key", "project.tmp/key", "w/key", "elsewhere/key")
    write(tmp_path, dict.fromkeys(names, f"{SECRET}\n"))
    trusted = Readable(secret_files=("../listed",))
    environ = {
        "RUNNER_TEMP": str(tmp_path / "temporary"),
        "CI_PROJECT_DIR": str(tmp_path / "project"),
        "AGENT_TEMPDIRECTORY": "",
    }
    resolver = SecretResolver(SecretSettings(str(tmp_path / "w"), trusted=trusted), environ)
    for path in ("key", "../listed/key", *(str(tmp_path / name) for name in names[:3])):
        assert resolver.resolve(SecretRef.of("file", path)).reveal() == SECRET
    (tmp_path / "listed/link").symlink_to("../elsewhere/key")
    for path in ("../elsewhere/key", str(tmp_path / "elsewhere/key"), "../listed/link"):
        with pytest.raises(SecretUnavailable, match="outside the workspace"):
            resolver.resolve(SecretRef.of("file", path))


TOKENS = ("kubernetes.io/serviceaccount/token", "azure/tokens/t", "a/..2026_11_23/b")


@pytest.mark.parametrize("name", TOKENS)
def test_security_n6_the_token_of_a_cluster_is_not_a_secret_of_the_workspace(
    tmp_path: Path, service: RunningEmulator, name: str
) -> None:
    path = f"/run/secrets/{name}"
    folder = workspace(tmp_path, HTTP % f"${{secret:file:{path}}}")
    ran = run(folder, "plan", environ={}, service=service)
    assert_refused(ran, service, f"{path} is outside the workspace")
    folder = workspace(
        tmp_path, HTTP % f"${{secret:file:{path}}}", f"secret_files: [{Path(path).parent}]"
    )
    assert reconciler("validate", "-C", folder, environ={}).code == 0


def test_security_n6_files_of_containers_are_read_and_links_to_tokens_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = write(tmp_path / "run", dict.fromkeys((*TOKENS, "..2026_11_23/key", "plain"), SECRET))
    (mount / "..data").symlink_to("..2026_11_23")
    (mount / "key").symlink_to("..data/key")
    monkeypatch.setattr("reconciler.providers.file._CONTAINER", str(mount))
    folder = write(tmp_path / "w", {"own": SECRET})
    resolver = SecretResolver(SecretSettings(str(folder)), {})
    for name in ("key", "plain"):
        written = str(mount / name)
        assert resolver.resolve(SecretRef.of("file", written)).reveal() == SECRET
    for name in TOKENS:
        (folder / Path(name).name).symlink_to(mount / name)
        for written in (str(mount / name), Path(name).name):
            with pytest.raises(SecretUnavailable, match="outside the workspace"):
                resolver.resolve(SecretRef.of("file", written))


def test_attack_28_a_link_gives_a_secret_no_second_name(tmp_path: Path) -> None:
    mount = write(tmp_path / "mount", {"known": SECRET})
    folder = write(tmp_path / "w", {"known": SECRET})
    (folder / "beside").symlink_to("known")
    (folder / "above").symlink_to(".")
    (folder / "outside").symlink_to(mount / "known")
    trusted = Readable(secret_files=(str(mount),))
    resolver = SecretResolver(SecretSettings(str(folder), trusted=trusted), {})
    for path in ("known", str(mount / "known")):
        assert resolver.resolve(SecretRef.of("file", path)).reveal() == SECRET
    for path in ("beside", "above/known", "outside"):
        with pytest.raises(SecretUnavailable, match="is a link"):
            resolver.resolve(SecretRef.of("file", path))


def test_attack_28_another_path_of_a_file_is_the_same_secret(
    tmp_path: Path, service: RunningEmulator
) -> None:
    folder = workspace(tmp_path, HTTP % "${secret:file:./keys//token}")
    write(folder, {"keys/token": SECRET})
    ran = run(folder, "plan", environ={}, service=service)
    assert "(file:keys/token)" in ran.out, ran.err


def test_security_5_only_regular_files_of_a_bounded_size_are_read(
    tmp_path: Path, service: RunningEmulator
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"x" * (2**20 + 1))
    for name in ("pipe", "folder", "large"):
        resolver = SecretResolver(SecretSettings(str(tmp_path)), {})
        with pytest.raises(SecretUnavailable, match="not a regular file of at most 1 MB"):
            resolver.resolve(SecretRef.of("file", name))
        folder = workspace(tmp_path, f"projects: {{web: {{name: '${{file:{name}}}'}}}}\n")
        assert_refused(run(folder, "plan", environ={}, service=service), service, name)


# Literals


@pytest.mark.parametrize("text", [f"{SECRET}${{secret:env:B}}", f"${{secret:env:B}}/{SECRET}"])
def test_security_15_a_half_literal_secret_is_a_literal_secret(
    tmp_path: Path, service: RunningEmulator, text: str
) -> None:
    folder = workspace(tmp_path, HTTP % text, "secrets: [B]")
    ran = run(folder, "plan", environ={"B": "b-value"}, service=service)
    assert_refused(ran, service, "[literal-secret]", "not even in part")


def test_security_15_separators_between_secrets_are_no_literals(
    tmp_path: Path, service: RunningEmulator
) -> None:
    folder = workspace(tmp_path, HTTP % "${secret:env:A}:${secret:env:B}", "secrets: [A, B]")
    ran = run(folder, "plan", environ={"A": "a-value", "B": "b-value"}, service=service)
    assert ran.code == 0, ran.err
