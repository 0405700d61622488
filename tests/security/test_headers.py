"""Headers of the configuration: sent to the service only, decided by trusted files, masked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.loopback import Received, serving

SECRET = "cf-9Yq3rT7wPz1LmK8s"
HEADERS = "{CF-Access-Client-Id: '${env:CF_ID}', X-Access: 'Token ${env:CF_TOKEN}'}"
WORKSPACE = f"version: 1\nclient: {{retry_for: 0, headers: {HEADERS}}}\n"
ENVIRON = {"CF_ID": "client.access", "CF_TOKEN": SECRET}
CONNECTION = {"RECONCILER_ORGANIZATION": "org", "RECONCILER_API_KEY": "phx_0123456789abcdef"}


@contextmanager
def proxy(status: int, location: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Run a service that answers with what it was sent. Yield its address and the headers."""
    received: list[dict[str, str]] = []

    def answer(request: Received) -> None:
        received.append({name.lower(): value for name, value in request.headers.items()})
        detail = f"refused: {dict(request.headers.items())}"
        body = json.dumps({"detail": detail, "code": "refused", "type": "x"}).encode()
        request.send(status, body, Location=location)

    with serving(answer) as port:
        yield f"http://127.0.0.1:{port}", received


def run(folder: Path, *words: str, **environ: str) -> Ran:
    return reconciler(*words, "-C", folder, environ={**CONNECTION, **ENVIRON, **environ})


@pytest.mark.parametrize("option", ["-v", "--debug"])
def test_headers_are_sent_and_masked_in_an_error_that_echoes_them(
    tmp_path: Path, option: str
) -> None:
    write(tmp_path, {"reconciler.yaml": WORKSPACE})
    with proxy(400) as (address, received):
        ran = run(tmp_path, "plan", option, RECONCILER_BASE_URL=address)
    assert ran.code == 1
    assert received[0]["cf-access-client-id"] == "client.access"
    assert received[0]["x-access"] == f"Token {SECRET}"
    assert received[0]["authorization"] == "Bearer phx_0123456789abcdef"
    assert "refused" in ran.err
    assert SECRET not in ran.out + ran.err


def test_headers_are_not_sent_where_a_redirect_goes(tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": WORKSPACE})
    with proxy(400) as (other, elsewhere), proxy(302, other) as (address, received):
        ran = run(tmp_path, "plan", RECONCILER_BASE_URL=address)
    assert (ran.code, len(received) > 0, elsewhere) == (1, True, [])
    assert "302 redirect, not followed with the API key" in ran.err


def test_doctor_lists_their_names_and_nothing_stores_values(
    emulator: RunningEmulator, tmp_path: Path
) -> None:
    files = {"reconciler.yaml": WORKSPACE, "a.yaml": "projects:\n  new:\n    name: New\n"}
    write(tmp_path, files)
    environ = emulator.environ()
    doctor = run(tmp_path, "doctor", **environ)
    assert "CF-Access-Client-Id, X-Access" in doctor.out
    saved, log = tmp_path / "plan.json", tmp_path / "audit.jsonl"
    plan = run(tmp_path, "plan", "--debug", "--out", str(saved), **environ)
    assert plan.code == 0, plan.err
    apply = run(tmp_path, "apply", "--debug", "--auto-approve", "--log-file", str(log), **environ)
    assert apply.code == 0, apply.err
    shown = [text for ran in (doctor, plan, apply) for text in (ran.out, ran.err)]
    assert SECRET not in "".join([*shown, saved.read_text(), log.read_text()])


OWN = ["AUTHORIZATION", "Host", "cookie", "Content-Length", "transfer-encoding", "Connection"]


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        *(
            (f"{{{name}: '${{env:CF_ID}}'}}", f":2:20: error: header '{name}' is set by the client")
            for name in OWN
        ),
        ("{'X Y': '${env:CF_ID}'}", "header 'X Y' is not a name"),
        ("{X-Y: '${env:CF_ID}', x-y: '${env:CF_ID}'}", "header 'x-y' is set twice"),
        (f"{{X-Y: {SECRET}}}", "`X-Y` must not be written in a file"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, headers: str, message: str) -> None:
    text = f"version: 1\nclient: {{headers: {headers}}}\n"
    ran = run(write(tmp_path, {"reconciler.yaml": text}), "validate")
    assert ran.code == 1
    assert message in ran.err + ran.out
    assert "reconciler.yaml:2:" in ran.err + ran.out
    assert ("hint: remove it" in ran.err + ran.out) or "by the client" not in message
    assert SECRET not in ran.err + ran.out


def test_a_value_with_a_line_break_is_not_sent(emulator: RunningEmulator, tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": WORKSPACE})
    emulator.clear_requests()
    ran = run(tmp_path, "plan", **emulator.environ(), CF_TOKEN="-----BEGIN X\r\nHost: evil")
    assert (ran.code, emulator.requests()) == (1, [])
    assert "line break" in ran.err


def topic(folder: Path, before: str, after: str) -> Path:
    """Write a workspace, and another on a branch that is not trusted."""
    repo = Git.init(write(folder, {"reconciler.yaml": before}))
    repo.commit()
    repo.run("switch", "-q", "-c", "topic")
    write(folder, {"reconciler.yaml": after})
    repo.commit()
    return folder


TRUST = {"RECONCILER_TRUST_REF": "refs/heads/main"}


def test_the_trusted_branch_decides_the_headers(tmp_path: Path) -> None:
    folder = topic(tmp_path, "version: 1\n", WORKSPACE)
    with proxy(400) as (address, received):
        run(folder, "plan", RECONCILER_BASE_URL=address, **TRUST)
    assert received
    assert all("x-access" not in headers for headers in received)


def test_headers_of_an_environment_replace_those_of_the_workspace(tmp_path: Path) -> None:
    entry = "{client: {headers: {X-Own: '${env:CF_TOKEN}'}}}"
    write(tmp_path, {"reconciler.yaml": f"{WORKSPACE}environments: {{a: {entry}, b: {{}}}}\n"})
    with proxy(400) as (address, received):
        for name in "ab":
            run(tmp_path, "plan", "-e", name, RECONCILER_BASE_URL=address)
    own = {"x-own", "x-access", "cf-access-client-id"}
    first, *_, last = ({*headers} & own for headers in received)
    assert (first, last) == ({"x-own"}, {"x-access", "cf-access-client-id"})


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ("{X-Access: '${env:CF_ID}'}", "`client.headers.X-Access` changes from"),
        ("{X-New: '${env:CF_ID}', X-Access: '${env:CF_TOKEN}'}", "`client.headers.X-New` changes"),
        ("{}", "`client.headers.X-Access` is removed"),
    ],
)
def test_changed_headers_are_a_danger_with_its_place_and_apply_refuses_them(
    emulator: RunningEmulator, tmp_path: Path, headers: str, message: str
) -> None:
    workspace = "version: 1\nclient:\n  headers: {}\n"
    before = workspace.format("{X-Access: '${env:CF_TOKEN}'}")
    topic(tmp_path, before, workspace.format(headers))
    environ = emulator.environ() | TRUST
    plan = run(tmp_path, "plan", **environ)
    assert (plan.code, f"takes effect after the merge: {message}" in plan.out) == (0, True)
    assert "reconciler.yaml:3:" in plan.out
    assert run(tmp_path, "apply", "--auto-approve", **environ).code == 5


@pytest.mark.parametrize("provider", ["env", "secret:env"])
def test_variables_of_headers_are_reserved_like_that_of_the_key(
    tmp_path: Path, provider: str
) -> None:
    """Otherwise a pull request could send one to a destination."""
    text = f"env: [CF_TOKEN]\nsecrets: [CF_TOKEN]\nvars: {{a: '${{{provider}:CF_TOKEN}}'}}\n"
    files = {
        "reconciler.yaml": f"{WORKSPACE}{text}",
        "a.yaml": "projects: {a: {name: '${var:a}'}}\n",
    }
    ran = run(write(tmp_path, files), "validate")
    assert (ran.code, "[reserved-variable]" in ran.err + ran.out) == (1, True)
