"""The interface of providers of references, and values that no secret or API key can be.

Servers store such a value over a working credential. No message contains it. What a real password
can be stays legal, such as `$ummer2024`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from reconciler.model.schemas import looks_secret
from reconciler.model.settings import Readable, SecretSettings
from reconciler.model.values import JSON, FieldOrigin, SecretSource

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


class FillRules(Struct, kw_only=True):
    """What references may read.

    read
        Return the content of a file of the workspace, None if it cannot be read.
    environ
        The environment variables.
    variables
        The variables of the workspace and the environment, as written.
    allow_exec
        Whether the policy allows secrets from commands.
    assume_env
        Whether unset environment variables have an unknown value, so that checks do not depend on
        the machine. Only those of a commit are read.
    declared
        What references may read by the files that are loaded.
    trusted
        What they may read here. On a terminal, both are the same.
    key_variables
        The environment variables with the API keys of the workspace.
    for_api_key
        Whether the value is the API key. The connection is trusted as a whole.
    expanding
        The variables that are being expanded, outermost first.
    of_commit
        Whether the files are those of a commit. Lists may have changed since, so a reference that
        may not be read is no error and has an unknown value.
    """

    read: Callable[[str], bytes | None]
    environ: Mapping[str, str]
    variables: Mapping[str, JSON]
    allow_exec: bool = False
    assume_env: bool = False
    declared: Readable = field(default_factory=Readable)
    trusted: Readable = field(default_factory=Readable)
    key_variables: frozenset[str] = frozenset()
    for_api_key: bool = False
    of_commit: bool = False
    expanding: list[str] = field(default_factory=list)


class FillContext(Struct, frozen=True):
    """What a provider can use while files are loaded.

    rules
        What references may read.
    expand
        Return a variable with its own references filled in.
    is_outside
        Return whether a path is outside the workspace.
    unknown_text
        Return text with unknown content.
    report
        Record an error at the reference, by code, message and hint.
    failed
        The unknown value, for use after an error.
    """

    rules: FillRules
    expand: Callable[[str], JSON]
    is_outside: Callable[[str], bool]
    unknown_text: Callable[[str], JSON]
    report: Callable[[str, str, str], None]
    failed: JSON

    def refuse(self, code: str, message: str, hint: str) -> JSON:
        """Report an error at the reference, and return the unknown value."""
        self.report(code, message, hint)
        return self.failed


class SecretContext(Struct, frozen=True):
    """What a provider can use to look up a secret.

    `for_api_key`: the secret is the API key, whose reference comes from a trusted place.
    """

    settings: SecretSettings
    environ: Mapping[str, str]
    for_api_key: bool = False


Fill: TypeAlias = Callable[[str, FillContext], JSON]
Accepts: TypeAlias = Callable[[str, FillContext], bool]


class Provider(Struct, frozen=True):
    """One provider of values.

    argument
        The name of the argument in hints, for example PATH.
    fill
        Return the value of a plain reference. None for a provider of secrets only.
    accepts
        Return whether a secret reference is valid, and report errors. None for a provider without
        secret references.
    look_up
        Return the value of a secret. Raises SecretUnavailable.
    effortless
        Whether the look-up is instant and has no effects. The values of such secrets are known
        before anything is printed, so that they can be masked.
    from_outside
        Whether plain values are text from outside of the files, which may be a number or a boolean.
    canonical
        Return one text for all arguments of secret references that mean the same.
    origin
        Return where the value of a plain reference comes from, for `show`.
    position
        The position in hints. Equal ones are sorted by name.
    """

    name: str
    argument: str = "NAME"
    fill: Fill | None = None
    accepts: Accepts | None = None
    look_up: Callable[[SecretSource, SecretContext], str] | None = None
    effortless: bool = False
    from_outside: bool = False
    canonical: Callable[[str], str] = str
    origin: Callable[[str, Mapping[str, str]], FieldOrigin] | None = None
    position: int = 100

    def origin_of(self, argument: str, environ: Mapping[str, str]) -> FieldOrigin:
        """Return where a value comes from; by default, the name of the provider."""
        if self.origin is None:
            return FieldOrigin(self.name, None)
        return self.origin(argument, environ)


def without_line_end(text: str) -> str:
    """Return text without the final line break that editors and commands add."""
    return text.removesuffix("\n").removesuffix("\r")


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
