"""The settings of an environment that the trusted files decide, and what the loaded ones change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, Mark
from reconciler.model.address import Address
from reconciler.model.connection import ClientOptions, Trusted, untrusted
from reconciler.model.kind import Kind
from reconciler.model.policy import Policy
from reconciler.model.resource import Desired
from reconciler.model.text import listed, several
from reconciler.model.values import Path, SecretSource, SecretValue, path_text
from reconciler.providers.env import SECRET_PREFIX
from reconciler.workspace.connections import (
    Configured,
    Connected,
    Unconnected,
    changed_connection,
    client_options_of,
    connection_of,
)
from reconciler.workspace.references import References, declared_names, key_variables
from reconciler.workspace.workspace_file import Workspace, declares, policy_of, variables_of
from reconciler.workspace.yaml.document import Document, Layer, Places

if TYPE_CHECKING:
    # Only what a trusted branch decides needs them.
    from reconciler.model.plan import Refusal
    from reconciler.workspace.trust import TrustedBase

_MOST_LISTED = 10
_USE = re.compile(r"\$\{var:([^}]+)\}")


class Settings(Struct, frozen=True):
    """What a command may do.

    policy, own_policy
        The policy that applies, and that of the loaded files, which may allow more.
    connected
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
    connected: Connected
    client: ClientOptions
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
    after_merge: tuple[Refusal, ...] = ()


class Deciding(Struct, frozen=True):
    """The loaded workspace file and the one that decides: the same one, or that of the base."""

    own: Workspace
    trusted: Workspace
    base: TrustedBase | None
    kinds: Sequence[Kind]
    environment: str

    @classmethod
    def of(
        cls,
        own: Workspace,
        raw: bytes | None,
        base: TrustedBase | None,
        kinds: Sequence[Kind],
        environment: str,
    ) -> Deciding:
        """Return the workspace files of an environment. `raw` is the content of the own one."""
        trusted = own if base is None else base.workspace(own, raw)
        return cls(own, trusted, base, kinds, environment)

    @property
    def allowed(self) -> Policy:
        """The policy of the file that decides, the strictest one without the environment."""
        if not declares(self.trusted, self.environment):
            return Policy.strictest() if self.base is not None else Policy()
        return policy_of(self.trusted, self.environment, self.kinds)

    @property
    def merge_hint(self) -> str:
        """How to let what the loaded files change take effect."""
        if self.base is None:
            return ""
        return self.base.fix or f"merge it to {self.base.name} first"

    def lists(self) -> Trusted:
        """Return what references may read."""
        declared = declared_names(self.trusted.value, allow_exec=self.allowed.allow_exec_secrets)
        base = self.base
        return declared if base is None else replace(declared, strict=True, reason=base.reason)

    def settings(self, references: References) -> Settings:
        """Return the settings. `references` are those of the loaded files and collect their errors.

        Raises GitUnavailable for errors in the files of the base.
        """
        in_job = self.base is not None and self.base.in_job
        policy = policy_of(self.own, self.environment, self.kinds)
        configured = connection_of(self.own, self.environment, references, in_job=in_job)
        client = client_options_of(self.own, self.environment, references.problems)
        if self.base is None:
            return Settings(policy, policy, configured.connected, client)
        return self._of_base(self.base, policy, configured, references)

    def _of_base(
        self, base: TrustedBase, policy: Policy, own: Configured, loaded: References
    ) -> Settings:
        """Return the settings of the base, with what the loaded files change."""
        problems = DiagnosticCollector()
        references = replace(
            loaded,
            variables=variables_of(self.trusted, self.environment),
            source=base.source,
            problems=problems,
            places=variable_places(self.trusted, self.environment),
            allow_exec=self.allowed.allow_exec_secrets,
            literals={} if self.allowed.allow_literal_secrets else None,
            declared=loaded.trusted,
            key_variables=key_variables(self.trusted.value),
            _expanding=[],
            _cached={},
        )
        trusted = connection_of(self.trusted, self.environment, references, in_job=base.in_job)
        client = client_options_of(self.trusted, self.environment, problems)
        if not loaded.problems.failed:
            base.check(problems)
        changes = changed_connection(self.own, self.environment, own, trusted)
        connected = self._explained(own, trusted.connected, base)
        if isinstance(connected, Unconnected) and connected.is_untrusted:
            loaded.problems.note("untrusted-setting", connected.message, hint=connected.hint)
        return Settings(
            policy=policy.stricter(self.allowed),
            own_policy=policy,
            connected=connected,
            client=client,
            literals=references.literals or {},
            after_merge=tuple(changes),
        )

    def _explained(self, own: Configured, connection: Connected, base: TrustedBase) -> Connected:
        """Return the connection, or why there is none, with what to do about it."""
        if isinstance(own.connected, Unconnected) and own.connected.disagrees:
            return own.connected
        missing = connection.missing if isinstance(connection, Unconnected) else {}
        names = [f"`{name}`" for name in missing if name in own.written]
        if not names:
            return connection
        message = untrusted(f"{listed(names, 3)} of environment {self.environment}", base.reason)
        # Outside of jobs the files are probably those of the user.
        trust = "use --trust-workspace to trust the files of this folder"
        ways = [base.fix or "merge it first", f"set {', '.join(missing.values())}"]
        hint = ", or ".join([*ways, trust] if base.in_job else [trust, *ways])
        return Unconnected(message, hint, is_untrusted=True)

    def after_merge(self, settings: Settings, desired: Desired, loaded: References) -> Settings:
        """Return the settings with all that the loaded files change, and the way to allow it."""
        if self.base is None:
            return settings
        changes = (*settings.after_merge, *_secrets(settings, desired, loaded))
        after_merge = (
            replace(change, allow=self.merge_hint, after_merge=True) for change in changes
        )
        return replace(settings, after_merge=tuple(after_merge))


def _secrets(settings: Settings, desired: Desired, loaded: References) -> Iterator[Refusal]:
    """Yield the secrets that the trusted files do not allow."""
    from reconciler.model.plan import Refusal

    policy, own = settings.policy, settings.own_policy
    if loaded.literals and not policy.allow_literal_secrets:
        count = several(len(loaded.literals), "literal secret")
        yield Refusal(
            "allow_literal_secrets",
            f"{count} in the configuration",
            at=own.marks.get("allow_literal_secrets"),
        )
    used: dict[SecretSource, set[Address]] = {}
    for ref, users in desired.secret_users.items():
        for source in ref.sources:
            used.setdefault(source, set()).update(users)
    if own.allow_exec_secrets and not policy.allow_exec_secrets:
        commands = {source for source in used if source.source == "exec"}
        yield Refusal(
            "allow_exec_secrets",
            "secrets may run commands",
            _addresses(used, commands),
            own.marks.get("allow_exec_secrets"),
        )
    folders = set(loaded.declared.secret_files) - set(loaded.trusted.secret_files)
    files = {source for source in used if source.source == "file"}
    if folders and files:
        listed_folders = listed(sorted(folders), _MOST_LISTED)
        yield Refusal(
            "secret_files", f"new in `secret_files:`: {listed_folders}", _addresses(used, files)
        )
    names = {
        source
        for source in used
        if source.source == "env"
        and not source.argument.startswith(SECRET_PREFIX)
        and source.argument not in loaded.trusted.secrets
    }
    if names:
        listed_names = listed(sorted(source.argument for source in names), _MOST_LISTED)
        yield Refusal("secrets", f"new in `secrets:`: {listed_names}", _addresses(used, names))


def _addresses(
    used: Mapping[SecretSource, set[Address]], sources: set[SecretSource]
) -> tuple[Address, ...]:
    return tuple(sorted({address for source in sources for address in used[source]}))


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
    unused = dict(defined)
    for document in documents:
        if not unused:
            return
        for name in _USE.findall(document.text):
            unused.pop(name, None)
    for name, (first, *others) in unused.items():
        problems.warning(
            "unused-variable",
            f"variable '{name}' is not used",
            at=workspace.document.key_mark(first),
            related=tuple(
                (workspace.document.key_mark(path), f"also set here: {name}") for path in others
            ),
        )
