"""To whom the API key is sent, and which answers are accepted."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib.util
import ssl
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from reconciler.errors import ReconcilerError, ServiceError, Unavailable
from reconciler.model.live import Answer, Repeat, Request
from reconciler.service.http import open_http
from reconciler.service.pace import ClientSettings
from tests.security.witness import listener, witnessed
from tests.support.cli import Ran, reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.git import Git
from tests.support.loopback import Received, serving
from tests.support.transport import VirtualClock, connected, mocked, resolver
from tests.support.workspaces import lake

CERTIFICATE = Path(__file__).with_name("certificate.pem")
CONNECTION = {"RECONCILER_ORGANIZATION": "org", "RECONCILER_API_KEY": "phx_key_of_the_test"}
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


@pytest.mark.parametrize("command", ["plan", "apply", "import", "backfill"])
def test_security_9_http_off_loopback_is_refused_before_the_first_request(
    workspace: Path, command: str
) -> None:
    words = {"apply": ["--auto-approve"], "backfill": BACKFILL}.get(command, [])
    write(workspace, {"exports.yaml": lake(project="{id: 1}")})
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
    environ = {"RECONCILER_TRUST_REF": "refs/heads/main"}
    with listener() as proxy:
        environ["HTTP_PROXY"] = proxy.url
        ran = plan(workspace, "http://service.example", **environ)
    assert (ran.code, proxy.requests) == (1, [])
    assert "the API key is not sent over unencrypted http" in ran.err


def test_security_9_loopback_ignores_proxies(workspace: Path, emulator: RunningEmulator) -> None:
    with listener() as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            environ = {**emulator.environ(), variable: proxy.url}
            ran = reconciler("plan", "-C", workspace, environ=environ)
            assert (ran.code, proxy.requests) == (0, []), ran.err


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        *(
            (address, "contains a user name or a credential")
            for address in (
                *("https://me:hunter2@h.example", "https://me:hunter2@h.example:port"),
                *("me:hunter2@h.example", "https://h.example/?token=hunter2-4711"),
            )
        ),
        *(
            (address, "invalid RECONCILER_BASE_URL")
            for address in (
                *("https://h.example?", "https://h.example/#a", "ftp://h.example"),
                "https://evil.example\\.h.example",
            )
        ),
        # Only the addresses of this machine are loopback.
        *(
            (f"http://{host}", "is not sent over unencrypted http")
            for host in ("127.0.0.1.nip.example", "0x7f.1", "localhost.example")
        ),
        ("https://h.example/api", "contains the path of a page or of the API"),
    ],
)
def test_security_9_an_odd_address_is_refused(workspace: Path, base_url: str, message: str) -> None:
    with witnessed() as seen:
        ran = plan(workspace, base_url)
    assert (ran.code, seen.names, seen.connections) == (1, [], []), ran.err
    assert message in ran.err
    assert "hunter2" not in ran.err + ran.out


TRUSTED = {"SSL_CERT_FILE": str(CERTIFICATE)}


@pytest.mark.parametrize(
    ("host", "environ", "messages"),
    [
        ("127.0.0.1", {}, ("127.0.0.1 is not trusted: self", "set SSL_CERT_FILE to a file with")),
        ("127.0.0.1", TRUSTED, (": 403: ",)),
        ("localhost", TRUSTED, ("certificate of localhost is not trusted: Hostname mismatch",)),
    ],
    ids=["not trusted", "trusted by SSL_CERT_FILE", "of another host"],
)
def test_security_19_a_certificate_is_checked(
    workspace: Path, host: str, environ: dict[str, str], messages: tuple[str, ...]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    paths: list[str] = []

    def answer(request: Received) -> None:
        paths.append(request.path)
        request.send_error(403)

    with serving(answer, context) as port:
        ran = plan(workspace, f"https://{host}:{port}", **environ)
    assert (ran.code, bool(paths)) == (1, messages == (": 403: ",)), ran.err
    assert [message for message in messages if message not in ran.err] == []


def test_security_19_a_service_without_tls_says_so() -> None:
    """Over a real connection, the event loop ends before it has closed the socket."""

    def without_tls(request: httpx.Request) -> httpx.Response:
        cause = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:992)")
        raise httpx.ConnectError("failed", request=request) from cause

    with pytest.raises(Unavailable, match=r"TLS failed: .*wrong version number"):
        answered(without_tls)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_security_19_unusable_certificate_authorities_are_reported(
    workspace: Path, content: str | None
) -> None:
    file = workspace / "authorities"
    if content is not None:
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
    assert (ran.code, "hunter2" in ran.err + ran.out) == (1, False)
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


def answered(
    handler: Callable[[httpx.Request], httpx.Response],
    clock: VirtualClock | None = None,
    retry_for: float = 0.0,
) -> Answer:
    """Send a request to a function, on virtual time."""

    async def run() -> Answer:
        async with mocked(handler, clock=clock, retry_for=retry_for) as transport:
            return await transport.send(READ)

    return asyncio.run(run())


def answered_with(content: bytes, status: int = 200, **headers: str) -> Answer:
    """Send a request that gets these bytes and headers."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    stream = httpx.ByteStream(content)
    return answered(lambda _: httpx.Response(status, headers=sent, stream=stream))


def refused(content: bytes, status: int = 200, **headers: str) -> str:
    """Return the message about an answer that is not accepted."""
    with pytest.raises(ServiceError) as raised:
        answered_with(content, status, **headers)
    return raised.value.message


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


def test_security_12_an_answer_may_be_nested_100_levels_deep_and_compressed() -> None:
    packed = gzip.compress(nested(100))
    assert answered_with(packed, content_encoding="gzip").status == 200


TWICE = gzip.compress(gzip.compress(b"{}"))
BOMB = gzip.compress(bytes(2**26), 1)


@pytest.mark.parametrize(
    ("content", "encoding", "problem"),
    [
        pytest.param(b'{"a":' + nested(100) + b"}", "", "nested more than 100 levels", id="101"),
        pytest.param(nested(1_020), "", "nested more than 100 levels", id="1,020"),
        pytest.param(nested(100_000), "", "that is not JSON", id="100,000"),
        pytest.param(b"[" + b"[]," * 2**21 + b"1]", "", "more than 1,000,000 values", id="lists"),
        pytest.param(b"[" + b"1," * 2**21 + b"1]", "", "more than 1,000,000 values", id="numbers"),
        pytest.param(b'"' + b"a" * 2**25 + b'"', "", "of more than 32 MB", id="text"),
        (b'{"a": NaN}', "", "that is not JSON"),
        (b'{"a": "\xff"}', "", "that is not JSON"),
        pytest.param(BOMB, "gzip", "of more than 32 MB", id="bomb"),
        (b"{}", "gzip", "that is not valid gzip"),
        pytest.param(gzip.compress(b"{}" * 99)[:-9], "gzip", "that is not JSON", id="cut"),
        *(
            pytest.param(TWICE, encoding, "in an encoding that was not requested", id=encoding)
            for encoding in ("gzip, gzip", "deflate", "br", "zstd")
        ),
    ],
)
def test_security_11_12_a_body_is_bounded_plain_and_after_decompression(
    content: bytes, encoding: str, problem: str
) -> None:
    headers = {"content_encoding": encoding} if encoding else {}
    message = refused(content, **headers)
    assert message.startswith("GET /x/: 200 with a body ")
    assert problem in message


@pytest.mark.parametrize("status", [400, 500])
def test_security_12_the_body_of_an_error_is_not_read_beyond_the_bound(status: int) -> None:
    assert refused(BOMB, status, content_encoding="gzip") == f"GET /x/: {status}"


@pytest.mark.parametrize("value", ["1e9", "inf", "-inf", "nan", "9" * 400, "999999999", "1_0"])
@pytest.mark.parametrize("status", [429, 503])
def test_security_12_no_answer_makes_a_request_wait_for_ever(status: int, value: str) -> None:
    clock, headers = VirtualClock(), {"Retry-After": value}
    with pytest.raises(ServiceError):
        answered(lambda _: httpx.Response(status, headers=headers), clock, retry_for=300.0)
    assert clock.now < 1_800


def test_cookies_of_answers_are_not_kept() -> None:
    """httpx would send them again, and fail on bytes that are not ASCII."""
    cookies: list[str | None] = []

    def answer(request: Received) -> None:
        cookies.append(request.headers["Cookie"])
        request.send(200, b"", **{"Set-Cookie": "a=\xe9"})

    async def ask(address: str) -> None:
        async with open_http(address, ClientSettings()) as client:
            for _ in range(2):
                assert (await client.get(f"{address}/x/")).status_code == 200

    with serving(answer) as port:
        asyncio.run(ask(f"http://127.0.0.1:{port}"))
    assert cookies == [None, None]
