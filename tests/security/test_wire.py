"""To whom the API key is sent, and which answers are accepted."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib.util
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest

from reconciler.errors import ReconcilerError, ServiceError, Unavailable
from reconciler.model.live import Answer, Repeat, Request
from reconciler.service.http import open_http
from reconciler.service.pace import ClientSettings
from tests.security.witness import listener, send, serving, witnessed
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.transport import VirtualClock, connected, mocked, resolver

CERTIFICATE = Path(__file__).with_name("certificate.pem")
CONNECTION = {"RECONCILER_ORGANIZATION": "org", "RECONCILER_API_KEY": "phx_key_of_the_test"}
PROXIES = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
EXPORT = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {arg: x}}
"""
BACKFILL = ["batch_export.lake", "--gaps", "--auto-approve"]
READ = Request("GET", "/x/", Repeat.SAFE)


@pytest.fixture(autouse=True)
def discarded() -> Iterator[None]:
    """Discard encrypted sockets, which the event loop may leave to the garbage collector."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path, {"reconciler.yaml": "version: 1\nclient: {retry_for: 0}\n"})


def plan(workspace: Path, base_url: str, *options: str, **environ: str) -> Ran:
    """Plan with an address from the environment."""
    environ = {**CONNECTION, "RECONCILER_BASE_URL": base_url, **environ}
    return reconciler("plan", "-C", workspace, *options, environ=environ)


@contextmanager
def encrypted_service() -> Iterator[tuple[int, list[str]]]:
    """Run a TLS server with a self-signed certificate. Yield its port and the requested paths."""
    paths: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        paths.append(request.path)
        request.send_error(403)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    with serving(answer, context) as port:
        yield port, paths


@pytest.mark.parametrize("command", ["plan", "apply", "import", "backfill"])
def test_security_9_http_off_loopback_is_refused_before_the_first_request(
    workspace: Path, command: str
) -> None:
    words = {"apply": ["--auto-approve"], "backfill": BACKFILL}.get(command, [])
    write(workspace, {"exports.yaml": EXPORT})
    with listener() as proxy, witnessed() as seen:
        environ = {**CONNECTION, "RECONCILER_BASE_URL": "http://service.example"}
        environ["HTTP_PROXY"] = proxy.url
        ran = reconciler(command, "-C", workspace, *words, environ=environ)
    assert (ran.code, proxy.requests, seen.connections, seen.names) == (1, [], [], []), ran.err
    assert "http://service.example: the API key is not sent over unencrypted http" in ran.err
    assert "`client.insecure_http: true`" in ran.err


INSECURE = {"reconciler.yaml": "version: 1\nclient: {insecure_http: true}\n"}


def test_security_9_insecure_http_allows_it(workspace: Path) -> None:
    write(workspace, INSECURE)
    with listener() as proxy:
        ran = plan(workspace, "http://service.example", "--no-inventory", HTTP_PROXY=proxy.url)
    assert ran.code == 0, ran.err
    assert "phx_key_of_the_test" in proxy.requests[0]


def test_only_the_trusted_branch_allows_insecure_http(workspace: Path) -> None:
    repo = Git.init(workspace)
    repo.commit()
    repo.run("switch", "-q", "-c", "topic")
    write(workspace, INSECURE)
    repo.commit()
    environ = {"HTTP_PROXY": "", "RECONCILER_TRUST_REF": "refs/heads/main"}
    with listener() as proxy:
        environ["HTTP_PROXY"] = proxy.url
        ran = plan(workspace, "http://service.example", **environ)
    assert (ran.code, proxy.requests) == (1, [])
    assert "the API key is not sent over unencrypted http" in ran.err


@pytest.mark.parametrize(
    "base_url", ["http://127.0.0.1.nip.example", "http://0x7f.1", "http://localhost.example"]
)
def test_security_9_only_the_addresses_of_this_machine_are_loopback(
    workspace: Path, base_url: str
) -> None:
    ran = plan(workspace, base_url)
    assert (ran.code, "is not sent over unencrypted http" in ran.err) == (1, True)


@pytest.mark.parametrize("variable", PROXIES)
def test_security_9_loopback_ignores_proxies(
    workspace: Path, emulator: RunningEmulator, variable: str
) -> None:
    with listener() as proxy:
        environ = {**emulator.environ(), variable: proxy.url}
        ran = reconciler("plan", "-C", workspace, environ=environ)
    assert (ran.code, proxy.requests) == (0, []), ran.err


def test_security_9_a_redirect_is_not_followed_with_the_key(emulator: RunningEmulator) -> None:
    with listener() as other:
        headers = {"Location": other.url}
        with pytest.raises(ServiceError, match="302 redirect, not followed with the API key"):
            answered(lambda _: httpx.Response(302, headers=headers))
    assert other.requests == []


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        ("https://me:hunter2@h.example", "contains a user name or password"),
        ("https://me:hunter2@h.example:port", "contains a user name or password"),
        ("me:hunter2@h.example", "contains a user name or password"),
        ("https://h.example?a=b", "invalid RECONCILER_BASE_URL"),
        ("https://h.example?", "invalid RECONCILER_BASE_URL"),
        ("https://h.example/#a", "invalid RECONCILER_BASE_URL"),
        ("https://evil.example\\.h.example", "invalid RECONCILER_BASE_URL"),
        ("ftp://h.example", "invalid RECONCILER_BASE_URL"),
        ("https://h.example/api", "contains the path of a page or of the API"),
        ("https://h.example/api/projects/", "contains the path of a page or of the API"),
    ],
)
def test_security_9_an_odd_address_is_refused(workspace: Path, base_url: str, message: str) -> None:
    with witnessed() as seen:
        ran = plan(workspace, base_url)
    assert (ran.code, seen.names, seen.connections) == (1, [], []), ran.err
    assert message in ran.err
    assert "hunter2" not in ran.err + ran.out


@pytest.mark.parametrize(
    ("host", "trusted", "messages"),
    [
        (
            "127.0.0.1",
            False,
            (
                "certificate of 127.0.0.1 is not trusted: self",
                "set SSL_CERT_FILE to a file with its certificate",
            ),
        ),
        ("127.0.0.1", True, (": 403: ",)),
        ("localhost", True, ("certificate of localhost is not trusted: Hostname mismatch",)),
    ],
    ids=["not trusted", "trusted by SSL_CERT_FILE", "of another host"],
)
def test_security_19_a_certificate_is_checked(
    workspace: Path, host: str, messages: tuple[str, ...], *, trusted: bool
) -> None:
    with encrypted_service() as (port, paths):
        environ = {"SSL_CERT_FILE": str(CERTIFICATE)} if trusted else {}
        ran = plan(workspace, f"https://{host}:{port}", **environ)
    assert (ran.code, bool(paths)) == (1, messages == (": 403: ",)), ran.err
    assert all(message in ran.err for message in messages)


def test_security_19_a_service_without_tls_says_so() -> None:
    """Over a real connection, the event loop ends before it has closed the socket."""

    def without_tls(request: httpx.Request) -> httpx.Response:
        cause = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:992)")
        raise httpx.ConnectError("failed", request=request) from cause

    with pytest.raises(Unavailable, match=r"TLS failed: .*wrong version number"):
        answered(without_tls)


@pytest.mark.parametrize("content", [None, "", "no certificate", "folder"])
def test_security_19_unusable_certificate_authorities_are_reported(
    workspace: Path, content: str | None
) -> None:
    file = workspace / "authorities"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    ran = plan(workspace, "https://service.example", SSL_CERT_FILE=str(file))
    assert (ran.code, "the certificate authorities can't be read: " in ran.err) == (1, True)
    assert "check the variables SSL_CERT_FILE and SSL_CERT_DIR" in ran.err


@pytest.mark.parametrize(
    "variables",
    [
        {"HTTPS_PROXY": "ftp://me:hunter2@127.0.0.1:1"},
        {"HTTPS_PROXY": "http://me:hunter2@127.0.0.1:port"},
        {"HTTPS_PROXY": "http://[::1"},
        {"ALL_PROXY": "://"},
        {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "[::1, a b"},
        pytest.param(
            {"ALL_PROXY": "socks5://me:hunter2@127.0.0.1:1"},
            marks=pytest.mark.skipif(
                importlib.util.find_spec("socksio") is not None, reason="socksio is installed"
            ),
        ),
    ],
    ids=str,
)
def test_security_19_unusable_proxies_are_reported(
    workspace: Path, variables: dict[str, str]
) -> None:
    ran = plan(workspace, "https://service.example", **variables)
    assert ran.code == 1
    assert "hunter2" not in ran.err + ran.out
    assert "error: " in ran.err
    assert "prox" in ran.err, ran.err


def test_security_19_a_proxy_that_refuses_is_reported(workspace: Path) -> None:
    with serving(lambda request: request.send_error(407)) as port:
        ran = plan(workspace, "https://service.example", HTTPS_PROXY=f"http://127.0.0.1:{port}")
    assert (ran.code, "the proxy answered 407" in ran.err) == (1, True), ran.err


@pytest.mark.parametrize("key", ["phx_key\nX-Other: 1", "phx kéy", "phx key"])
def test_a_key_that_no_header_can_hold_is_reported(emulator: RunningEmulator, key: str) -> None:
    async def run() -> None:
        secrets = resolver(RECONCILER_API_KEY=key)
        async with connected(emulator, secrets=secrets) as transport:
            await transport.send(READ)

    emulator.clear_requests()
    with pytest.raises(ReconcilerError, match=r"api_key of .* contains|has a line break") as raised:
        asyncio.run(run())
    assert key not in str(raised.value)
    assert emulator.requests() == []


def answered(handler: Callable[[httpx.Request], httpx.Response], request: Request = READ) -> Answer:
    """Send a request to a function, on virtual time."""

    async def run() -> Answer:
        async with mocked(handler, clock=VirtualClock(), retry_for=0.0) as transport:
            return await transport.send(request)

    return asyncio.run(run())


def refused(content: bytes, status: int = 200, **headers: str) -> str:
    """Return the message about an answer that is not accepted."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers=sent, stream=httpx.ByteStream(content))

    with pytest.raises(ServiceError) as raised:
        answered(answer)
    return raised.value.message


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize("levels", [101, 900, 1_020, 100_000])
def test_security_11_a_deeply_nested_answer_is_refused(levels: int) -> None:
    message = refused(b'{"a":' + nested(levels - 1) + b"}")
    assert "nested more than 100 levels" in message or "not JSON" in message


def test_an_answer_may_be_nested_100_levels_deep() -> None:
    assert answered(lambda _: httpx.Response(200, content=nested(100))).status == 200


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" + b"[]," * 2_000_000 + b"[]]", "of more than 1,000,000 values"),
        (b"[" + b"1," * 2_000_000 + b"1]", "of more than 1,000,000 values"),
        (b'"' + b"a" * 2**25 + b'"', "of more than 32 MB"),
        (b'{"a": NaN}', "that is not JSON"),
        (b'{"a": 1e400}', "that is not JSON"),
        (b'{"a": "\xff"}', "that is not JSON"),
    ],
    ids=["lists", "numbers", "text", "nan", "infinite", "not-utf-8"],
)
def test_security_12_a_body_is_bounded(content: bytes, problem: str) -> None:
    assert f"200 with a body {problem}" in refused(content)


@pytest.mark.parametrize("status", [200, 400, 500])
def test_security_12_a_body_is_bounded_after_decompression(status: int) -> None:
    bomb = gzip.compress(bytes(2**26))
    message = refused(bomb, status, content_encoding="gzip")
    assert message.startswith(f"GET /x/: {status}")
    assert ("with a body of more than 32 MB" in message) == (status == 200)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "deflate", "br", "zstd"])
def test_security_12_only_the_requested_encoding_is_decoded(encoding: str) -> None:
    twice = gzip.compress(gzip.compress(b"{}"))
    assert "in an encoding that was not requested" in refused(twice, content_encoding=encoding)


def test_security_12_a_broken_gzip_body_is_reported() -> None:
    assert "that is not valid gzip" in refused(b"{}", content_encoding="gzip")
    assert "that is not JSON" in refused(gzip.compress(b"{}" * 99)[:-9], content_encoding="gzip")


@pytest.mark.parametrize("value", ["1e9", "inf", "-inf", "nan", "9" * 400, "999999999", "1_0"])
@pytest.mark.parametrize("status", [429, 503])
def test_security_12_no_answer_makes_a_request_wait_for_ever(status: int, value: str) -> None:
    clock = VirtualClock()

    async def run() -> None:
        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(status, headers={"Retry-After": value})

        async with mocked(answer, clock=clock) as transport:
            await transport.send(READ)

    with pytest.raises(ServiceError):
        asyncio.run(run())
    assert clock.now < 1_800


def test_cookies_of_answers_are_not_kept() -> None:
    """httpx would send them again, and fail on bytes that are not ASCII."""
    cookies: list[str | None] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        cookies.append(request.headers["Cookie"])
        send(request, 200, b"", **{"Set-Cookie": "a=\xe9"})

    async def ask(address: str) -> None:
        async with open_http(address, ClientSettings()) as client:
            for _ in range(2):
                assert (await client.get(f"{address}/x/")).status_code == 200

    with serving(answer) as port:
        asyncio.run(ask(f"http://127.0.0.1:{port}"))
    assert cookies == [None, None]
