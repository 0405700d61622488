"""Values that no secret or API key can be: servers store them over working credentials.

No message contains the value. What a real password can be stays legal, such as `$ummer2024`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from reconciler.model.schemas import looks_secret

Flaw: TypeAlias = tuple[str, str]
"""What a value is, to follow its name in a message, and how to fix it."""

EMPTY: Flaw = ("is empty", "set a value for it")
_PLACEHOLDER: Flaw = (
    "is a placeholder that was not replaced",
    "define the variable in the pipeline, and pass its value to this job",
)
_LINES: Flaw = (
    "has a line break or another control character",
    "remove it: use printf in place of echo, and `|-` in place of `|` in YAML",
)
_PATH: Flaw = ("is the path of a file, not its content", "use ${secret:file:PATH}")
_TEMPLATES = (
    # Azure and Tekton; shells; GitHub, Helm and Ansible; GitLab; CircleCI; Octopus; TeamCity.
    r"\$\([A-Za-z_][^()]*\)|\$\{[A-Za-z_][^{}]*\}|\$?\{\{.*\}\}|\$\[\[.*\]\]|<<\s*[a-z].*>>"
    r"|#\{[A-Za-z_][^{}]*\}#?|__[A-Z][A-Z0-9_]+__|%[A-Za-z]\w*(?:\.[\w-]+)+%"
)
_STORES = (
    r"(?:op|vault|aws(?:sm|ssm|secretsmanager)|azurekeyvault|akv|gcp?sm|sm|keyring|ref\+\w+)://.*"
    r"|vault:[\w-]+/.*|arn:aws[\w-]*:(?:secretsmanager|ssm):.*|projects/[^/]+/secrets/.*"
    r"|@Microsoft\.KeyVault\(.*\)"
)
_MASKED = (
    r"\*{3,}|[•●]{3,}|(?i:[\[<(](?:masked|redacted|filtered|hidden|sensitive(?: value)?"
    r"|(?:literal )?secret|your[-_ ][\w -]+)[\])>])"
)
_ENCRYPTED = r"\$ANSIBLE_VAULT;.*|ENC\[.*\]|-----BEGIN (?:PGP MESSAGE|AGE ENCRYPTED FILE)-----.*"
_FLAWS: Mapping[str, Flaw] = {
    _TEMPLATES: _PLACEHOLDER,
    _STORES: (
        "is a reference to a secret store, not the secret",
        "read the secret from the store first, or use ${secret:exec:COMMAND}",
    ),
    _MASKED: (
        "is masked text, not the secret",
        "set the secret itself: masked output cannot be copied",
    ),
    r"null|undefined|<no value>|\[object Object\]": (
        "is the text of a missing value",
        "check the command or template that sets it",
    ),
    _ENCRYPTED: ("is encrypted", "decrypt it before it is passed to this job"),
    r"[\"']\s*-----BEGIN .*": (
        "is a key in quotes",
        "remove the quotes, and replace \\n by line breaks",
    ),
    r"-----BEGIN [^\n]*|-----BEGIN .*\\n.*": (
        "is a PEM key that has lost its line breaks",
        "replace \\n by line breaks, or read the key with ${secret:file:PATH}",
    ),
}
_VARIABLE = r"\$([A-Z][A-Z0-9_]*)|%([A-Z][A-Z0-9_]*)%"
"""Also the form of passwords, so the name counts."""
_CONTROL = r"[\x00-\x08\n-\x1f\x7f\ufeff]"
_IN_LINES = r"-----BEGIN .*|\{.*\}|\[.*\]"
"""A PEM key or a JSON document, which may have several lines."""
_FILE = r"[^\n]*/[^\n]*|[\w.-]+\.(?:pem|p8|key|json|txt)"
_KEY_FLAWS: Mapping[str, Flaw] = {
    r"phc_.*": (
        "is the token of a project (phc_…), which only sends events",
        "create a personal API key (phx_…) in the service: Settings > Personal API keys",
    ),
    r"[\"'`].*|.*[\"'`]": ("is in quotes", "remove the quotes"),
    r"(?i:bearer)\s.*": ("begins with Bearer", "remove that word: only the key is wanted"),
    r".*[^!-~].*": (
        "contains whitespace or characters that no key has",
        "check for a line break or other text in its value",
    ),
}


def flaw_of(text: str, folder: str | None = None) -> Flaw | None:
    """Return why a text cannot be a secret, None if it can.

    With the folder of relative paths, the path of an existing file is a flaw, too.
    """
    plain = text.strip()
    if not plain:
        return EMPTY
    if (flaw := _first(_FLAWS, plain)) is not None:
        return flaw
    name = re.fullmatch(_VARIABLE, plain)
    if name is not None and looks_secret(name[1] or name[2]):
        return _PLACEHOLDER
    if re.search(_CONTROL, text) and not re.fullmatch(_IN_LINES, plain, re.DOTALL):
        return _LINES
    is_path = folder is not None and re.fullmatch(_FILE, plain) is not None
    return _PATH if is_path and _is_file(Path(folder or "", plain)) else None


def key_flaw_of(text: str) -> Flaw | None:
    """Return why a text cannot be an API key, None if it can."""
    return _first(_KEY_FLAWS, text)


def _first(flaws: Mapping[str, Flaw], text: str) -> Flaw | None:
    return next((flaw for form, flaw in flaws.items() if re.fullmatch(form, text, re.DOTALL)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.expanduser().is_file()
    except (OSError, RuntimeError, ValueError):
        return False
