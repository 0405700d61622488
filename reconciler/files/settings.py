"""The settings of an environment: policy, connection, client options and variables.

The trusted files decide them. What the loaded files change has no effect before the merge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.files.references import References, key_variables, readable_of
from reconciler.files.validation import shown
from reconciler.files.workspace_file import Workspace, declares, policy_of, variables_of
from reconciler.files.yaml_document import Document, Layer, Places, Unknown
from reconciler.model.live import id_text
from reconciler.model.resource import Desired
from reconciler.model.schemas import credential_spans
from reconciler.model.settings import (
    ADDRESS,
    API_KEY,
    DURATIONS,
    ClientOptions,
    Connection,
    Policy,
    Readable,
    duration,
    how_to_write,
    is_loopback,
    rate,
    untrusted,
)
from reconciler.model.text import listed, quoted, several
from reconciler.model.values import Address, Path, SecretRef, SecretValue, path_text, value_at
from reconciler.providers.env import SECRET_PREFIX

if TYPE_CHECKING:
    # Only what a trusted branch decides needs them.
    from reconciler.files.trust import TrustedTip
    from reconciler.model.plan import Refusal

_MOST_LISTED = 10
_CLIENT_TYPES: Mapping[str, tuple[type, ...]] = {
    "parallelism": (int,),
    "insecure_http": (bool,),
    "rate": (str, bool),
    **dict.fromkeys(DURATIONS, (str, int, float)),
}
"""The types of the keys of `client:` that are valid."""
_USE = re.compile(r"\$\{var:([^}]+)\}")
_NOT_IN_URL = re.compile(r"[\s?#\\]")
_ID_HINT = "copy the id from the settings of the organization: letters, digits and `-`"
_OF_HEADER = "client.headers."
_HEADER = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_OWN_HEADER = re.compile(
    r"authorization|host|cookie2?|content-.*|proxy-.*|transfer-encoding|connection|keep-alive|te"
    r"|trailer|upgrade|expect|accept(?:-.*)?|user-agent",
    re.IGNORECASE,
)
"""Headers that the client sets itself, and those of one connection (RFC 9110, 7.6.1)."""
_OWN_PATH = re.compile(r"/(?:api|projects?|organizations?|environments|settings)(?:/.*)?$")
"""A path of the API or of the web interface."""


class Settings(Struct, frozen=True, kw_only=True):
    """What a command may do.

    policy, own_policy
        The policy that applies, and that of the loaded files, which may allow more.
    configured
        The connection, or why there is none.
    client
        How requests are made.
    literals
        Literal secrets of the connection.
    after_merge
        What the loaded files change without effect before the merge.
    """

    policy: Policy
    own_policy: Policy
    configured: Configured
    client: ClientOptions
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
    after_merge: tuple[Refusal, ...] = ()


class Deciding(Struct, frozen=True):
    """The loaded workspace file, and the trusted one: the same, or that of the trusted branch."""

    own: Workspace
    trusted: Workspace
    tip: TrustedTip | None
    environment: str

    @property
    def policy(self) -> Policy:
        """The policy of the file that decides, the strictest one without the environment."""
        if not declares(self.trusted, self.environment):
            return Policy.strictest() if self.tip is not None else Policy()
        return policy_of(self.trusted, self.environment)

    @property
    def merge_hint(self) -> str:
        """How to let what the loaded files change take effect."""
        if self.tip is None:
            return ""
        return self.tip.fix or f"merge it to {self.tip.name} first"

    @property
    def readable(self) -> Readable:
        """What references may read."""
        declared = readable_of(self.trusted.value, allow_exec=self.policy.allow_exec_secrets)
        tip = self.tip
        return declared if tip is None else replace(declared, strict=True, reason=tip.reason)

    def settings(self, references: References) -> Settings:
        """Return the settings. `references` are those of the loaded files and collect their errors.

        Raises GitUnavailable for errors in the files of the trusted branch.
        """
        in_job = self.tip is not None and self.tip.in_job
        policy = policy_of(self.own, self.environment)
        own = connection_of(self.own, self.environment, references, in_job=in_job)
        client = client_options_of(self.own, self.environment, references.problems)
        settings = Settings(policy=policy, own_policy=policy, configured=own, client=client)
        return settings if self.tip is None else self._of_tip(self.tip, settings, references)

    def _of_tip(self, tip: TrustedTip, own: Settings, loaded: References) -> Settings:
        """Return the settings of the trusted branch, with what the loaded files change."""
        problems = DiagnosticCollector()
        references = replace(
            loaded,
            variables=variables_of(self.trusted, self.environment),
            read=tip.read,
            problems=problems,
            places=variable_places(self.trusted, self.environment),
            allow_exec=self.policy.allow_exec_secrets,
            literals={} if self.policy.allow_literal_secrets else None,
            declared=loaded.trusted,
            key_variables=key_variables(self.trusted.value),
            expanding=[],
            _cached={},
        )
        trusted = connection_of(self.trusted, self.environment, references, in_job=tip.in_job)
        client = client_options_of(self.trusted, self.environment, problems)
        if not loaded.problems.failed:
            tip.check(problems)
        changes = changed_connection(self.own, self.environment, own.configured, trusted)
        return replace(
            own,
            policy=own.policy.stricter(self.policy),
            configured=self._explained(own.configured, trusted, tip, loaded.problems),
            client=client,
            literals=references.literals or {},
            after_merge=tuple(changes),
        )

    def _explained(
        self, own: Configured, trusted: Configured, tip: TrustedTip, problems: DiagnosticCollector
    ) -> Configured:
        """Return the connection, or why there is none, with what to do about it."""
        if own.disagrees:
            return own
        names = [f"`{name}`" for name in trusted.missing if name in own.written]
        if not names:
            return trusted
        message = untrusted(f"{listed(names, 3)} of environment {self.environment}", tip.reason)
        # Outside of jobs the files are probably those of the user.
        trust = "use --trust-workspace to trust the files of this folder"
        ways = [tip.fix or "merge it first", f"set {', '.join(trusted.missing.values())}"]
        hint = ", or ".join([*ways, trust] if tip.in_job else [trust, *ways])
        problems.note("untrusted-setting", message, hint=hint)
        return Configured(message=message, hint=hint)

    def after_merge(self, settings: Settings, desired: Desired, loaded: References) -> Settings:
        """Return the settings with all that the loaded files change, and the way to allow it."""
        if self.tip is None:
            return settings
        changes = (*settings.after_merge, *_secrets(settings, desired, loaded))
        after_merge = (
            replace(change, allow=self.merge_hint, after_merge=True) for change in changes
        )
        return replace(settings, after_merge=tuple(after_merge))


def _secrets(settings: Settings, desired: Desired, loaded: References) -> Iterator[Refusal]:
    """Yield the secrets that the trusted files do not allow."""
    from reconciler.model.plan import Refusal

    policy, own, trusted = settings.policy, settings.own_policy, loaded.trusted
    if loaded.literals and not policy.allow_literal_secrets:
        count = several(len(loaded.literals), "literal secret")
        at = own.marks.get("allow_literal_secrets")
        yield Refusal("allow_literal_secrets", f"{count} in the configuration", at=at)
    used: dict[str, dict[str, set[Address]]] = {"exec": {}, "file": {}, "env": {}}
    for ref, users in desired.secret_users.items():
        for source in ref.sources:
            used.setdefault(source.source, {}).setdefault(source.argument, set()).update(users)
    if own.allow_exec_secrets and not policy.allow_exec_secrets:
        users, at = _users(used["exec"]), own.marks.get("allow_exec_secrets")
        yield Refusal("allow_exec_secrets", "secrets may run commands", users, at)
    folders = sorted(set(loaded.declared.secret_files) - set(trusted.secret_files))
    if folders and used["file"]:
        message = f"new in `secret_files:`: {listed(folders, _MOST_LISTED)}"
        yield Refusal("secret_files", message, _users(used["file"]))
    names = {
        name: users
        for name, users in used["env"].items()
        if not name.startswith(SECRET_PREFIX) and name not in trusted.secrets
    }
    if names:
        message = f"new in `secrets:`: {listed(sorted(names), _MOST_LISTED)}"
        yield Refusal("secrets", message, _users(names))


def _users(used: Mapping[str, set[Address]]) -> tuple[Address, ...]:
    return tuple(sorted(set().union(*used.values())))


class Configured(Struct, frozen=True):
    """The connection of an environment, or why it has none.

    connection
        The connection, None without one.
    written
        What the file sets: text by name of the setting.
    message, hint
        Why there is no connection, and the fix.
    missing
        The settings that are missing, with their variables.
    disagrees
        Whether a file and a variable contradict each other.
    """

    connection: Connection | None = None
    written: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    hint: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    disagrees: bool = False


def connection_of(
    workspace: Workspace, environment: str, references: References, *, in_job: bool
) -> Configured:
    """Return the connection of an environment.

    `in_job`: with the variable of the API key, the others are required.
    """
    environ, at = references.environ, ("environments", environment)
    texts = {name: _text_of(workspace, (*at, name), references) for name in ADDRESS}
    own = {name: text for name, text in texts.items() if text}
    key = used_key = _key_of(workspace, environment, references)
    written = own | ({"api_key": str(key)} if key is not None else {})
    headers = _headers_of(workspace, environment, references)
    written |= {f"{_OF_HEADER}{name}": str(header) for name, header in headers.items()}
    settings = dict(own)
    for name, variable in ADDRESS.items():
        value = environ.get(variable)
        if value and (environ.get(API_KEY) or name not in own):
            settings[name] = value
    base_url, organization = settings.get("base_url"), settings.get("organization")
    if base_url and not isinstance(base_url, Unknown):
        is_own = base_url == own.get("base_url")
        mark = workspace.mark((*at, "base_url")) if is_own else None
        _check_url("base_url" if is_own else ADDRESS["base_url"], base_url, mark, references)
    problem = None
    if environ.get(API_KEY):
        used_key = SecretRef.of("env", API_KEY)
        problem = _disagreement(workspace, environment, own, environ, in_job=in_job)
    disagrees = problem is not None
    if organization and not isinstance(organization, Unknown) and id_text(organization) is None:
        message = f"environment {environment} has the organization {quoted(organization)}"
        no_id = f"{message}: that is no id", _ID_HINT
        if organization == own.get("organization"):
            mark = workspace.mark((*at, "organization"))
            references.problems.error("not-allowed", no_id[0], at=mark, hint=no_id[1])
        problem = problem or no_id
    if problem is not None:
        return Configured(None, written, *problem, disagrees=disagrees)
    if base_url and organization and used_key is not None:
        key_text = str(workspace.section(*at).get("api_key", "")) if used_key is key else ""
        return Configured(
            Connection(
                environment,
                base_url.rstrip("/"),
                organization,
                used_key,
                key_text="" if used_key.is_literal else key_text,
                headers=headers,
            ),
            written,
        )
    return _unconnected(workspace, environment, environ, written)


def changed_connection(
    workspace: Workspace, environment: str, own: Configured, trusted: Configured
) -> Iterator[Refusal]:
    """Yield what a workspace file sets and the one of the trusted branch does not."""
    from reconciler.model.plan import Refusal

    for name, new in own.written.items():
        used = str(getattr(trusted.connection, name, ""))
        old = trusted.written.get(name) or used
        if new.rstrip("/") not in (old.rstrip("/"), used):
            before = f" from {quoted(old)}" if old else ""
            header = name.removeprefix(_OF_HEADER)
            path: Path = ("environments", environment, name)
            if header != name:
                path = (*_headers_at(workspace, environment), header)
            at = workspace.mark(path)
            yield Refusal("connection", f"`{name}` changes{before} to {quoted(new)}", at=at)
    for name in trusted.written:
        if name.startswith(_OF_HEADER) and name not in own.written:
            at = workspace.mark(_headers_at(workspace, environment))
            yield Refusal("connection", f"`{name}` is removed", at=at)


def _disagreement(
    workspace: Workspace,
    environment: str,
    written: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    in_job: bool,
) -> tuple[str, str] | None:
    """Return why the API key of the variable has no address and the fix, None if it has one."""
    for name, variable in ADDRESS.items():
        value, own = environ.get(variable), written.get(name)
        if not value and in_job:
            hint = "in the job, next to the key: files do not decide where it is sent"
            return f"{API_KEY} is set, but {variable} is not", f"set {variable} {hint}"
        if value and own and not isinstance(own, Unknown) and own.rstrip("/") != value.rstrip("/"):
            at = workspace.mark(("environments", environment, name))
            message = f"`{name}` of environment {environment} ({at}) is {quoted(own)}"
            hint = f"correct one of them: {API_KEY} is sent only where both agree"
            return f"{message}, but {variable} is {quoted(value)}", hint
    return None


def _unconnected(
    workspace: Workspace, environment: str, environ: Mapping[str, str], written: Mapping[str, str]
) -> Configured:
    """Return what a connection lacks."""
    entry = workspace.section("environments", environment)
    missing = {
        name: variable
        for name, variable in {**ADDRESS, "api_key": API_KEY}.items()
        if entry.get(name) is None and not environ.get(variable)
    }
    names = ", ".join(f"`{name}`" for name in missing)
    keys = " (`api_key` as a reference: ${env:NAME})" if "api_key" in missing else ""
    message = f"environment {environment} lacks {names}"
    add = f"add {', '.join(missing)} to the environment in reconciler.yaml{keys}"
    hint = f"set {', '.join(missing.values())}, or {add}"
    return Configured(None, written, message, hint, missing)


def _text_of(workspace: Workspace, path: Path, references: References) -> str | None:
    """Return a setting of the file, empty or None without one."""
    value = value_at(workspace.value, path)
    if not isinstance(value, str):
        return None
    resolved = references.resolved(value, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        message = f"`{path[-1]}` must not be a secret: plans print it"
        references.problems.error("secret-in-plain-field", message, at=workspace.mark(path))
        return None
    return resolved if resolved is None or isinstance(resolved, str) else str(resolved)


def _key_of(workspace: Workspace, environment: str, references: References) -> SecretRef | None:
    """Return the API key of the file as a reference, which is looked up by the first request."""
    return _secret_of(workspace, ("environments", environment, "api_key"), references)


def _headers_at(workspace: Workspace, environment: str) -> tuple[str, ...]:
    """Return where the headers are set: in the environment, else in the workspace."""
    of_environment = ("environments", environment, "client")
    is_own = "headers" in workspace.section(*of_environment)
    return (*of_environment, "headers") if is_own else ("client", "headers")


def _headers_of(
    workspace: Workspace, environment: str, references: References
) -> dict[str, SecretRef]:
    """Return the headers for a proxy in front of the service, as references like the API key."""
    at, headers = _headers_at(workspace, environment), dict[str, SecretRef]()
    known: set[str] = set()
    for name in workspace.section(*at):
        message = hint = ""
        if not _HEADER.fullmatch(name):
            message, hint = "is not a name", "use letters, digits and `-`"
        elif _OWN_HEADER.fullmatch(name):
            message, hint = "is set by the client", "remove it; only other headers can be added"
        elif name.lower() in known:
            message, hint = "is set twice, apart from upper and lower case", "remove one of them"
        if message:
            place = workspace.document.key_mark((*at, name))
            text = f"header {quoted(name)} {message}"
            references.problems.error("bad-client-setting", text, at=place, hint=hint)
        elif (value := _secret_of(workspace, (*at, name), references)) is not None:
            headers[name] = value
        known.add(name.lower())
    return headers


def _secret_of(
    workspace: Workspace, path: tuple[str, ...], references: References
) -> SecretRef | None:
    written = workspace.section(*path[:-1]).get(path[-1])
    if written is None or isinstance(written, Unknown):
        return None
    text = str(written).replace("${env:", "${secret:env:")
    resolved = references.for_key().resolved(text, workspace.mark, path)
    if isinstance(resolved, SecretRef):
        return resolved
    if resolved is None or isinstance(resolved, Unknown):
        return None
    literal = references.literal(f"{'.'.join(path[:-1])}:{path[-1]}", resolved)
    if literal is None:
        message = f"`{path[-1]}` must not be written in a file"
        hint = "revoke it, and use a reference such as ${env:API_KEY}"
        at = workspace.mark(path)
        references.problems.error("literal-secret", message, at=at, hint=hint)
    return literal


def _check_url(name: str, base_url: str, at: Mark | None, references: References) -> None:
    """Report an address that can't be used. `name` is its field or variable, `at` its place."""
    problems = references.problems
    try:
        parts = urlsplit(base_url)
        host = parts.hostname
        _ = parts.port  # Raises ValueError for an invalid port.
    except ValueError:
        parts, host = urlsplit(""), None
    if "@" in base_url or credential_spans(base_url):
        # The value is not shown: it may contain a password.
        message = f"{name} contains a user name or a credential"
        hint = "remove them; only `api_key` is sent"
    elif _OWN_PATH.search(parts.path):
        message = f"{name} contains the path of a page or of the API: {quoted(base_url)}"
        hint = "remove the path; paths are added to it"
    elif parts.scheme not in ("http", "https") or not host or _NOT_IN_URL.search(base_url):
        message = f"invalid {name} {quoted(base_url)}"
        hint = "use a URL such as https://eu.posthog.com"
    else:
        if parts.scheme == "http" and not is_loopback(host):
            message = "the API key is sent only with client.insecure_http, unencrypted"
            problems.warning("clear-text", f"{name} uses http: {message}", at=at)
        return
    problems.error("bad-url", message, at=at, hint=hint)


def client_options_of(
    workspace: Workspace, environment: str, problems: DiagnosticCollector
) -> ClientOptions:
    """Return the options of an environment over those of the workspace, key by key.

    Values of a wrong type were reported by the schema.
    """
    values: dict[str, Any] = {}
    for path in (("client",), ("environments", environment, "client")):
        for name, written in workspace.section(*path).items():
            if type(written) not in _CLIENT_TYPES.get(name, ()):
                continue
            value = written
            if name == "rate":
                value = () if written is False else rate(str(written))
            elif name in DURATIONS:
                value = duration(name, str(written))
            if value is None:
                message, at = f"invalid {name} {shown(written)}", workspace.mark((*path, name))
                hint = how_to_write(name) + (", or false for no limit" if name == "rate" else "")
                problems.error("bad-client-setting", message, at=at, hint=hint)
            else:
                values[name] = value
    return ClientOptions(**values)


def variable_places(workspace: Workspace, environment: str) -> Places:
    """Return the places of variables: those of the environment above those of the workspace."""
    paths: tuple[Path, ...] = (("environments", environment, "vars"), ("vars",))
    return Places(tuple(Layer(workspace.document, path, path_text(path)) for path in paths))


def point_at_variables(
    problems: DiagnosticCollector,
    since: int,
    documents: Mapping[str, Document],
    variables: Places,
) -> None:
    """Add the places of variables to the diagnostics after the first `since` ones.

    `variables` are the places of variables in the environment that was checked.
    """
    for number, diagnostic in enumerate(problems.diagnostics[since:], since):
        places = tuple(_behind(diagnostic, documents, variables))
        if places:
            related = tuple(dict.fromkeys((*diagnostic.related, *places)))
            problems.diagnostics[number] = replace(diagnostic, related=related)


def _behind(
    diagnostic: Diagnostic, documents: Mapping[str, Document], variables: Places
) -> Iterator[tuple[Mark, str]]:
    at = diagnostic.at
    if at is None or at.file not in documents:
        return
    marked = documents[at.file].line(at.line)[at.column - 1 : at.column - 1 + at.length]
    for name in _USE.findall(marked):
        layer = variables.layer_of((name,))
        if layer is not None:
            place = layer.document.mark((*layer.path, name))
            if place != at:
                yield place, f"variable {name}"


def report_unused(
    workspace: Workspace, documents: Iterable[Document], problems: DiagnosticCollector
) -> None:
    """Report the variables that no file and no environment refers to, at their definitions."""
    defined: dict[str, list[Path]] = {}
    sections = [("environments", name, "vars") for name in workspace.environments]
    for section in (("vars",), *sections):
        for name in workspace.section(*section):
            defined.setdefault(name, []).append((*section, name))
    for document in documents if defined else ():
        for name in _USE.findall(document.text):
            defined.pop(name, None)
    place = workspace.document.key_mark
    for name, (first, *others) in defined.items():
        related = tuple((place(path), f"also set here: {name}") for path in others)
        message = f"variable '{name}' is not used"
        problems.warning("unused-variable", message, at=place(first), related=related)
