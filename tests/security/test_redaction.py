"""Secrets are masked by value in every form, and fields that look secret are treated as secret."""

from __future__ import annotations

import base64
import html
import json
import re
import tracemalloc
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import yaml
from msgspec.structs import replace

from reconciler.model.kind import Action
from reconciler.model.live import Repeat, Request
from reconciler.model.plan import encode
from reconciler.model.redaction import HIDDEN, Redactor, masked_in, redact_line
from reconciler.model.resource import State
from reconciler.model.schemas import holds_secret, looks_secret
from reconciler.model.values import SecretValue
from reconciler.render.plan_markdown import plan_as_markdown
from reconciler.render.plan_text import plan_as_text
from reconciler.service.failures import service_error
from tests.support.cli import reconciler, write
from tests.support.emulator import RunningEmulator
from tests.support.workspaces import lake
from tests.support.worlds import (
    desired_of,
    export,
    live_export,
    live_of,
    live_project,
    planned,
    project,
)

PEM = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(["MIIEvQIBADANBgkq+hkiG9w0/BAQEFAASC" * 2] * 20)
PEM += "\n-----END PRIVATE KEY-----\n"
SECRET = 'pa/ss "w\\ö&rd+=Q7'
ENCODINGS = {
    "json": lambda text: json.dumps(text)[1:-1],
    "json-utf8": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "json-twice": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "percent": lambda text: quote(text, safe=""),
    "percent-slash": quote,
    "percent-lower": lambda text: re.sub("%..", lambda code: code[0].lower(), quote(text, safe="")),
    "plus": quote_plus,
    "html": html.escape,
    "html-decimal": lambda text: html.escape(text).replace("&quot;", "&#34;"),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64-url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "hex": lambda text: text.encode().hex(),
    "hex-upper": lambda text: text.encode().hex().upper(),
    "lower": str.lower,
    "upper": str.upper,
}
CONNECTION = {
    "RECONCILER_SECRET_USER": "user-name-4711",
    "RECONCILER_SECRET_PASSWORD": "pass-word-4711-x",
}
RESOURCES = lake(destination="{type: Postgres, config: {%s, database: d, schema: public}}")
USER = 'host: acme.example, user: "${secret:env:RECONCILER_SECRET_USER}"'
LAKE = RESOURCES % (
    f'{USER}, password: "${{secret:env:RECONCILER_SECRET_PASSWORD}}", port: 5432, '
    "table_name: name_2026"
)
APPLY = ("apply", "--auto-approve", "--no-inventory", "-C")
COMMON_WORDS = ("acme", "name", "http", "2026", "none")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path / "w", {"reconciler.yaml": "version: 1\n", "all.yaml": LAKE})


def redactor(*secrets: str, plain: tuple[str, ...] = ()) -> Redactor:
    return Redactor(map(SecretValue, secrets), lambda: plain)


def refused(detail: str, *secrets: str) -> str:
    content = json.dumps({"type": "x", "code": "x", "detail": detail, "attr": None}).encode()
    request = Request("POST", "/x/", Repeat.SAFE)
    return service_error(request, 400, content, {}, mask=redactor(*secrets).detail).message


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_security_7_every_encoding_is_masked(encoding: str) -> None:
    form = ENCODINGS[encoding](SECRET)
    assert redactor(SECRET).mask(f"a {form}, b") == "a ***, b"


def test_security_7_a_secret_inside_longer_base64_is_masked() -> None:
    for user in ("u", "us", "use"):
        shown = redactor(SECRET).mask(base64.b64encode(f"{user}:{SECRET}".encode()).decode())
        assert "***" in shown
        assert len(shown) < len(user) * 2 + 12


@pytest.mark.parametrize(
    ("secret", "text", "masked", "detail"),
    [
        ("q7Z", "x/q7Z/y xq7Zx", "x/***/y xq7Zx", HIDDEN),
        ("k", "200 with a body k", "200 with a body k", HIDDEN),
        ("k", "bad key", "bad key", "bad key"),
        ("acme-loader", "schema acme-loader", "schema ***", "schema ***"),
    ],
)
def test_security_7_short_secrets_are_masked_as_words_and_hide_details(
    secret: str, text: str, masked: str, detail: str
) -> None:
    assert redactor(secret).mask(text) == masked
    assert redactor(secret).detail(text) == detail
    assert refused(text, secret) == f"POST /x/: 400: {detail}"


def test_a_secret_of_many_megabytes_in_a_line_takes_little_memory() -> None:
    line = f"password: {'x$' * 4_000_000}, b"
    tracemalloc.start()
    try:
        assert redact_line(line) == "password: ***, b"
        assert tracemalloc.get_traced_memory()[1] < 3 * len(line)
    finally:
        tracemalloc.stop()


def test_security_4_the_api_key_is_masked_in_bodies(
    workspace: Path, emulator: RunningEmulator
) -> None:
    key = emulator.api_key
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace("name_2026", f"x-{key}"))
    environ = {**emulator.environ(), **CONNECTION}
    for arguments in (("--format", "json"), ("--out", workspace.parent / "plan.json")):
        ran = reconciler("plan", "--no-inventory", "-C", workspace, *arguments, environ=environ)
        assert key not in ran.out + ran.err
    assert key not in (workspace.parent / "plan.json").read_text()
    shown = reconciler("show", "-C", workspace, "lake", environ=environ)
    assert shown.code == 0
    assert key not in shown.out


@pytest.mark.parametrize("word", COMMON_WORDS)
def test_security_16_common_words_leave_plans_and_logs_usable(
    word: str, workspace: Path, emulator: RunningEmulator
) -> None:
    environ = {**emulator.environ(), **CONNECTION, "RECONCILER_SECRET_PASSWORD": word}
    assert reconciler(*APPLY, workspace, environ=environ).code == 0
    path = workspace / "all.yaml"
    path.write_text(path.read_text().replace("5432", "5433").replace("name_2026", "acme_name"))
    log = workspace.parent / "audit.jsonl"
    applied = reconciler(*APPLY, workspace, "--log-file", log, environ=environ)
    assert applied.code == 0, applied.err
    assert 'table_name  "name_2026" -> "acme_name"' in applied.out
    for line in log.read_text().splitlines():
        json.loads(line)


def test_a_name_of_the_configuration_is_visible_and_hides_details() -> None:
    known = redactor("acme-loader", plain=("acme-loader-events",))
    assert known.mask("schema acme-loader") == "schema acme-loader"
    assert known.detail("user acme-loader is unknown") == HIDDEN
    random = "kJ8-xQ2z-Lm3"
    assert redactor(random, plain=(random,)).mask(random) == "***"


SECRET_NAMES = (
    "sasl_password token private_key connection_string awsSecretAccessKey SASL-Password apiKey dsn "
    "AWS_SECRET_ACCESS_KEY GITHUB_TOKEN sasl_jaas_config DB_PASSWORD"
)
PLAIN_NAMES = (
    "primary_key kms_key_id topic hosts table_name secret_name token_url max_tokens public_key "
    "AWS_REGION PRIMARY_KEY"
)


def test_security_14_names_that_look_secret() -> None:
    assert [name for name in SECRET_NAMES.split() if not looks_secret(name)] == []
    assert [name for name in PLAIN_NAMES.split() if looks_secret(name)] == []


UNKNOWN_TYPE = lake(destination="{type: Kafka, config: {hosts: [a.example], topic: t, %s}}")
URL = "url: 'https://user:hunter2@db.example/x'"
CREDENTIAL = "hunter2-4711-hunter2"
ADDRESSES = (
    "https://me:hunter2-4711-hunter2@h.example/x?api_key=hunter2-4711-hunter2",
    "https://h.example/in?a=b&token=hunter2-4711-hunter2&api_key=hunter2-4711-hunter2#end",
    "https://acme.blob.example/c?sv=2024-11-04&sp=rw&sig=hunter2-4711-hunter2",
    "https://hooks.slack.com/services/T01/B02/hunter2-4711-hunter2",
    "https://discord.com/api/webhooks/4711/hunter2-4711-hunter2",
    "s3.example/b/k?X-Amz-Expires=60&X-Amz-Signature=hunter2-4711-hunter2&x-id=GetObject",
    "https://h.example/cb#access_token=hunter2-4711-hunter2&token_type=bearer",
    "Server=h;Database=d;Password=hunter2-4711-hunter2;Encrypt=true",
    "https://h.example/f?code=hunter2-4711-hunter2",
)
PLAIN_ADDRESSES = (
    "https://h.example/in?token={token}&api_key=<your-key>&sig=$SIG&secret=***",
    "https://h.example/in?token_type=bearer&primary_key=created_at&page=2&max_tokens=100000",
    "https://h.example/in?code=EU-WEST-1&key=lake/events&auth=digest&public_key=0123456789abcdef",
    "https://hooks.slack.com/x",
    "token=production; the key = production-2026",
)


@pytest.mark.parametrize(
    "field",
    [
        *("sasl_password: hunter2", "token: 4711", "sasl: {privateKey: hunter2}", URL),
        *(f"url: '{address}'" for address in ADDRESSES[1:4]),
    ],
)
def test_security_14_literals_of_unknown_types_are_refused(field: str, tmp_path: Path) -> None:
    write(tmp_path, {"reconciler.yaml": "version: 1\n", "a.yaml": UNKNOWN_TYPE % field})
    ran = reconciler("validate", "-C", tmp_path)
    assert ran.code == 1
    assert "[literal-secret]" in ran.out + ran.err
    assert "hunter2" not in ran.out + ran.err
    assert "4711" not in ran.out + ran.err
    reference = URL.replace("hunter2", "${secret:env:RECONCILER_SECRET_URL}")
    write(tmp_path, {"a.yaml": UNKNOWN_TYPE % reference})
    assert reconciler("validate", "-C", tmp_path).code == 0


def test_security_14_the_deletion_of_an_unknown_type_shows_no_secrets() -> None:
    config = {"hosts": ["a"], "private_key": "hunter2", "connection_string": "u=hunter2"}
    config |= {"sasl": {"password": "hunter2", "mechanism": "PLAIN"}}
    live = live_of(
        live_project(), live_export(destination={"type": "Kafka", "config": config}, paused=True)
    )
    absent = replace(export(), state=State.ABSENT)
    plan = masked_in(planned(desired_of(project(), absent), live), redactor().mask)
    (change,) = plan.effective
    assert change.action is Action.DELETE
    assert "PLAIN" in encode(plan).decode()
    for text in (encode(plan).decode(), plan_as_text(plan), plan_as_markdown(plan)):
        assert "hunter2" not in text


def test_a_refusal_shows_no_secret_in_the_name_of_a_live_object() -> None:
    twin = live_export("e9", "Lake pass-word-4711-x")
    plan = planned(desired_of(project(), export()), live_of(live_project(), twin))
    masked = masked_in(plan, redactor("pass-word-4711-x").mask)
    assert [item.name for refusal in masked.refusals for item in refusal.objects] == ["Lake ***"]
    for text in (encode(masked).decode(), plan_as_text(masked), plan_as_markdown(masked)):
        assert "4711" not in text


def test_security_14_what_looks_secret_is_masked_at_any_depth_and_in_excerpts() -> None:
    live = {"sasl": {"password": "hunter2", "mechanism": "PLAIN"}, "connectionString": "a=b"}
    masked = {"sasl": {"password": "***", "mechanism": "PLAIN"}, "connectionString": "***"}
    assert masked_in(live, str) == masked
    for address in ADDRESSES:
        shown = address.replace(CREDENTIAL, "***")
        assert redactor().mask(f"moved to {address} now") == f"moved to {shown} now"
        assert redact_line(f'  url: "{address}"') == f'  url: "{shown}"'
        assert holds_secret(address)
    for address in PLAIN_ADDRESSES:
        assert not holds_secret(address), address
        assert redactor().mask(address) == address
    for line in ("  awsSecretAccessKey: hunter2", "  a: {saslPassword: hunter2, b: 1}"):
        assert redact_line(line) == line.replace("hunter2", "***")


ALIASES = f"{RESOURCES}    model: *secret\n"


@pytest.mark.parametrize(
    "written", ["kJ8-xQ2z", "q7Zx", "'hunter2'", '"\\x6bJ8-xQ2z"', "!!str kJ8xQ2"]
)
@pytest.mark.parametrize("literals", [False, True])
def test_security_n2_a_literal_secret_is_masked_where_an_alias_repeats_it(
    tmp_path: Path, emulator: RunningEmulator, written: str, literals: bool
) -> None:
    secret = yaml.safe_load(written)
    aliases = ALIASES % f"password: &secret {written}, {USER}, table_name: *secret"
    policy = f"policy: {{allow_literal_secrets: {str(literals).lower()}}}\n"
    write(tmp_path, {"reconciler.yaml": f"version: 1\n{policy}", "a.yaml": aliases})
    environ = {**emulator.environ(), **CONNECTION}
    plan = ("plan", "--no-inventory")
    for words in (("validate",), plan, (*plan, "--format", "json")):
        ran = reconciler(*words, "-C", tmp_path, environ=environ)
        assert secret not in ran.out + ran.err, ran


LONGEST = "long-Secret-0123456789" * 40
RANDOM = "kJ8-xQ2z.Lm3pW7vR4t"
JSON_KEY = json.dumps({"type": "service_account", "project_id": "acme-2026", "private_key": PEM})
WORDS = (
    "BEGIN PRIVATE KEY expected: project_id acme-2026 of service_account, postgres://… or "
    "Production-2026, correct horse battery"
)


@pytest.mark.parametrize(
    ("secret", "detail", "shown"),
    [
        pytest.param(PEM, f"Could not parse {PEM}", None, id="security_6-whole"),
        pytest.param(PEM, f"{'x' * 240}{PEM}", None, id="security_6-behind"),
        pytest.param(PEM, " ".join(PEM.split()), None, id="security_6-folded"),
        pytest.param(LONGEST, f"Bad: {LONGEST}.", "Bad: ***.", id="security_6-long"),
        *(
            pytest.param(RANDOM, f"Invalid: {part} (eu-1)", "Invalid: *** (eu-1)", id=f"n1-{name}")
            for name, part in {
                "most": RANDOM[:-2],
                "half": RANDOM[: len(RANDOM) // 2],
                "end": RANDOM[-9:],
                "middle": RANDOM[5:14],
                "mixed-case": RANDOM.swapcase(),
            }.items()
        ),
        *(
            pytest.param(secret, WORDS, WORDS, id=f"n1-words-of-{name}")
            for name, secret in {
                "url": "postgres://loader:kJ8xQ2zLm3@db-2026.acme.example:5432/events",
                "json": JSON_KEY,
                "pem": PEM,
                "words": "correct horse battery staple 2026",
                "name": "Postgres-Loader-Production-2026",
            }.items()
        ),
    ],
)
def test_security_a_secret_in_an_error_is_masked_before_it_is_folded_and_cut(
    secret: str, detail: str, shown: str | None
) -> None:
    """Also a part of it, but no word that it contains."""
    message = refused(detail, secret)
    if shown is not None:
        assert message == f"POST /x/: 400: {shown}"
    else:
        assert "***" in message
        assert "MIIEvQ" not in message
