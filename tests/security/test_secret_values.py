"""Values that no secret or API key can be are refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.providers.provider import flaw_of
from tests.security.test_references import HTTP, WEB, Job, job, read
from tests.support.cli import write

__all__ = ("job",)
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----"
FLAWS = {
    "is a placeholder that was not replaced": (
        *("$(S3_SECRET)", "$(params.key)", "${DB_PASSWORD}", "${x:-y}", "${{ secrets.X }}"),
        *("{{ vault_password }}", "$[[ inputs.token ]]", "<< parameters.key >>", "#{Token}#"),
        *("__DB_PASSWORD__", "%env.TOKEN%", "%DB_PASSWORD%", "$AWS_SECRET_ACCESS_KEY"),
    ),
    "is a reference to a secret store": (
        *("op://vault/item/field", "vault:secret/data/db#password", "awssm://prod/db"),
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf",
        *("projects/acme/secrets/db/versions/latest", "ref+vault://secret/db"),
        "@Microsoft.KeyVault(SecretUri=https://acme.vault.azure.net/secrets/db)",
    ),
    "is masked text": (
        *("***", "********", "••••••••", "[MASKED]", "<redacted>", "(sensitive value)"),
        *("[REDACTED]", "(secret)", "<your password>"),
    ),
    "is the text of a missing value": ("null", "undefined", "<no value>", "[object Object]"),
    "is encrypted": ("ENC[AES256_GCM,data:abc]", "$ANSIBLE_VAULT;1.1;AES256\n6162"),
    "has a line break": ("hunter2-\n", "hunter2-\r", "two\nlines", "\ufeffhunter2", "a\x1b[0m"),
    "is a PEM key that has lost its line breaks": (
        *(PEM.replace("\n", "\\n"), PEM.replace("\n", " "), PEM + "\\n"),
    ),
    "is a key in quotes": (f'"{PEM}"', f"'{PEM}'"),
    "is empty": ("", " \n"),
}
REAL = (
    *("hunter2", "$ummer2024", "$ECRET!", "%Tg7_x%", "P@$$(w)ord", "100%", "a*b**c", "*", "**"),
    *("correct horse battery staple", " with spaces ", "'quoted'", '"both"', "`tick`", "$"),
    *("{curly}", "[square]", "<angle>", "(round)", "a/b+c/d==", "/starts/with/a/slash", "none"),
    *("changeme", "xxx", "None", "nullable", "\\n", "a\\nb", "arn:aws:iam::123456789012:role/x"),
    *("https://hooks.slack.com/services/T0/B0/x", "reader@acme.iam.gserviceaccount.com"),
    *(PEM, PEM + "\n", PEM.replace("\n", "\r\n"), '{\n "key": "-----BEGIN X-----\\nabc"\n}\n'),
    *("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "Zażółć", "密码", "\tx", "__init__", "~/x"),
)


@pytest.mark.parametrize(
    ("value", "words"), [(value, words) for words, values in FLAWS.items() for value in values]
)
def test_s1_what_no_secret_can_be_is_refused(value: str, words: str) -> None:
    flaw = flaw_of(value)
    assert flaw is not None
    assert words in flaw[0]
    assert len(value) < 5 or value not in "".join(flaw)


@pytest.mark.parametrize("value", REAL)
def test_s1_what_real_passwords_are_stays_legal(value: str, tmp_path: Path) -> None:
    assert flaw_of(value, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("$(MIRROR_TOKEN)", "is a placeholder that was not replaced"),
        ("***", "is masked text"),
        ("hunter2-\n", "has a line break"),
        ("keys/token", "is the path of a file, not its content"),
    ],
)
@pytest.mark.parametrize("reference", ["env:RECONCILER_SECRET_T", "file:t.txt"])
def test_s1_apply_sends_nothing(job: Job, value: str, words: str, reference: str) -> None:
    """S1: an apply with such a secret stops before its first change, and names the reference."""
    job.write(HTTP % f"${{secret:{reference}}}")
    # One line break at the end of a file is the editor's.
    write(job.folder, {"keys/token": "x", "t.txt": f"{value}\n"})
    ran = job.run("apply --auto-approve", {"RECONCILER_SECRET_T": value})
    assert ran.code == 1, ran.out + ran.err
    assert f"secret ${{secret:{reference}}} {words}" in ran.err
    assert {request["method"] for request in job.service.requests()} == {"GET"}


def test_s1_a_byte_order_mark_and_a_line_break_of_a_file_are_no_part_of_the_secret(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.txt").write_bytes("\ufeffhunter2\r\n".encode())
    assert read(tmp_path, "t.txt") == {"hunter2"}


@pytest.mark.parametrize(
    ("literal", "words"),
    [
        ("'$(TOKEN)'", "is a placeholder that was not replaced"),
        ("'***'", "is masked text"),
        ('"${secret:env:RECONCILER_SECRET_T}\\n"', "has a line break"),
    ],
)
def test_s1_validate_refuses_what_it_can_see(job: Job, literal: str, words: str) -> None:
    """S1: a literal that the policy allows, and the text around a reference."""
    job.write(HTTP.replace("'%s'", literal), "policy: {allow_literal_secrets: true}")
    ran = job.run("validate")
    assert ran.code == 1
    assert f"destination.config.token of batch_export.lake {words}" in ran.out
    assert "[unusable-secret]" in ran.out


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("phc_hunter2", "is the token of a project (phc_…), which only sends events"),
        ('"phx_hunter2"', "is in quotes"),
        ("'phx_hunter2", "is in quotes"),
        ("Bearer phx_hunter2", "begins with Bearer"),
        ("phx_hunter2 phx_x", "contains whitespace or characters that no key has"),
        ("$(API_KEY)", "is a placeholder that was not replaced"),
        ("${{ secrets.KEY }}", "is a placeholder that was not replaced"),
        ("***", "is masked text"),
    ],
)
def test_s5_an_api_key_that_is_none_is_refused_before_any_request(
    job: Job, key: str, words: str
) -> None:
    job.write(WEB % "Web")
    ran = job.refused("plan", words, environ={"RECONCILER_API_KEY": key})
    assert "hunter2" not in ran.err


@pytest.mark.parametrize("name", ["DB_PASSWORD", "apiToken", "AWS_SECRET_ACCESS_KEY"])
def test_t4_a_variable_named_like_a_secret_is_not_printed(job: Job, name: str) -> None:
    """T4: the prefix `RECONCILER_VAR_` makes no plain value of it."""
    name = f"RECONCILER_VAR_{name}"
    job.write(WEB % f"'x ${{env:{name}}}'")
    texts = f"{name} looks like a credential", "rename"
    job.refused("plan", *texts, environ={name: "hunter2-of-the-machine"})


@pytest.mark.parametrize("status", [401, 403])
def test_s5_the_page_of_a_firewall_says_nothing_about_the_key(job: Job, status: int) -> None:
    """S5: the survey of projects is not taken for one that the key may not list."""
    job.service.admin("PUT", "faults", [{"fault": "html", "status": status}])
    job.write(WEB % "Web")
    ran = job.run("plan")
    assert ran.code == 1
    assert f"{status}: not the service's form of an error" in ran.err
    assert "a proxy or firewall probably answered" in ran.err
    assert "key" not in ran.err
