"""Settings of an environment: its connection, its client and policy; the options of a plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from reconciler.diagnostics import Mark
from reconciler.model.public import Public, derived
from reconciler.model.values import JSON, Address, JSONObject, SecretRef, SecretValue, mapping_of

RULE_PREFIX: Final = "rules."
"""What the codes of violations and notes begin with, so that no id of a user equals one of ours."""
POSSIBLE_DUPLICATE = "possible-duplicate"
"""The violation of a create beside an object of the same work."""
UNKNOWN_VALUE = "unknown-value"
"""The error and the violation of a misspelt value. `attempt` allows it."""
API_KEY = "RECONCILER_API_KEY"
"""The variable of the API key if the configuration does not name another one."""
ADDRESS = {"base_url": "RECONCILER_BASE_URL", "organization": "RECONCILER_ORGANIZATION"}
"""The variables of the other settings of a connection."""
DURATIONS: Mapping[str, float] = {"timeout": 0.1, "max_wait": 0.0, "retry_for": 0.0}
"""The keys that are times, with the smallest valid one in seconds."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0}
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh]?)")
_RATE = re.compile(r"([0-9]{1,9})/(.+)")


class Selection(Public, frozen=True):
    """The options that narrow the plan."""

    targets: tuple[str, ...] = ()
    """Globs of --target."""
    excludes: tuple[str, ...] = ()
    """Globs of --exclude."""
    kinds: tuple[str, ...] = ()
    """Kinds of --kind."""
    parents: tuple[str, ...] = ()
    """Globs of --project."""

    @derived
    def partial(self) -> bool:
        """Whether something may be excluded."""
        return bool(self.targets or self.excludes or self.kinds or self.parents)


class PlanOptions(Struct, frozen=True):
    """The options of a plan."""

    rotate: tuple[str, ...] = ()
    """The resources whose secrets are sent again; ("*",) means all."""
    allow_replace: bool = False
    selection: Selection = field(default_factory=Selection)
    only: frozenset[Address] | None = None
    """Limits the plan to some addresses without making it a partial plan for the reader."""
    planned_before: frozenset[Address] | None = None
    """What an earlier plan of the same selection had, which is selected again although its names
    may have changed."""
    no_inventory: bool = False
    """Whether git is not used."""


class PolicyRule(Struct, frozen=True):
    """One rule."""

    id: str
    match: JSONObject
    """What a change must fit, as written (schemas/policy/match)."""
    message: str
    denies: bool = True
    """Whether matching changes are a violation. Otherwise each one gets a note."""
    hint: str | None = None

    @property
    def code(self) -> str:
        """The code of its violations and notes, and the key of its place."""
        return f"{RULE_PREFIX}{self.id}"


def rules_of(value: JSON) -> tuple[PolicyRule, ...]:
    """Return the rules of a mapping from ids. What its schema refuses is left out."""
    written = ((str(name), mapping_of(rule)) for name, rule in mapping_of(value).items())
    return tuple(
        PolicyRule(
            id=name,
            match=rule["match"],
            message=str(rule.get("message", "")),
            denies=rule.get("severity") != "warn",
            hint=str(rule["hint"]) if rule.get("hint") is not None else None,
        )
        for name, rule in written
        if isinstance(rule.get("match"), Mapping)
    )


def trusted_first(
    own: Sequence[PolicyRule], trusted: Sequence[PolicyRule]
) -> tuple[PolicyRule, ...]:
    """Return the rules of both. Of two with one id, the trusted one applies."""
    return tuple({rule.id: rule for rule in (*own, *trusted)}.values())


class Limit(Struct, frozen=True):
    """A limit of changes: a number, or a percentage of the managed objects."""

    value: float
    percent: bool = False

    def allows(self, count: int, *, total: int) -> bool:
        """Return whether `count` of `total` is within the limit."""
        return count <= (self.value * total / 100 if self.percent else self.value)

    def __str__(self) -> str:
        return f"{self.value:g}%" if self.percent else f"{self.value:g}"


DEFAULT_DELETES = Limit(10)
"""Deletions of removed resources that a plan may have where `max_deletes` is not set."""


def texts_of(value: JSON) -> tuple[str, ...]:
    """Return a list of texts, empty for anything else."""
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _limit(value: JSON) -> Limit | None:
    if isinstance(value, str) and value.endswith("%"):
        try:
            return Limit(float(value[:-1]), percent=True)
        except ValueError:
            return None
    return Limit(float(value)) if isinstance(value, (int, float)) else None


def _is_on(value: JSON) -> bool:
    return value is True


def _union(own: tuple[str, ...], trusted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own, *trusted)))


def _common(own: tuple[str, ...], trusted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in own if item in trusted)


def _lower(own: Limit | None, trusted: Limit | None) -> Limit | None:
    """Return the lower limit. A number and a percentage are not comparable: the trusted one."""
    if own is None or trusted is None or own.percent != trusted.percent:
        return trusted or own
    return min(own, trusted, key=lambda limit: limit.value)


def _fewer_deletes(own: Limit | None, trusted: Limit | None) -> Limit | None:
    """Return the lower limit. One that is not set has a default, which no file raises by itself."""
    if trusted is None and own is not None:
        return own if not own.percent and own.value <= DEFAULT_DELETES.value else None
    return _lower(own, trusted)


_KEYS: Mapping[str, tuple[Callable[[JSON], Any], Callable[[Any, Any], Any]]] = {
    "prune": (_is_on, min),
    "ignore": (texts_of, _union),
    "max_deletes": (_limit, _fewer_deletes),
    "max_changes": (_limit, _lower),
    "deny": (texts_of, _union),
    "attempt": (texts_of, _common),
    "allow_literal_secrets": (_is_on, min),
    "allow_exec_secrets": (_is_on, min),
    "rules": (rules_of, trusted_first),
}
"""The keys of `policy:`: what reads the value, and the stricter of an own and a trusted value."""


class Policy(Struct, frozen=True):
    """The rules of one environment: a field for each key of `policy:` in the files."""

    prune: bool = False
    ignore: tuple[str, ...] = ()
    max_deletes: Limit | None = None
    max_changes: Limit | None = None
    deletable: frozenset[str] = frozenset()
    """The kinds whose `Kind.deletion_switch` is on."""
    deny: tuple[str, ...] = ()
    attempt: tuple[str, ...] = ()
    """The known refusals of servers that are not violations."""
    allow_literal_secrets: bool = False
    allow_exec_secrets: bool = False
    rules: tuple[PolicyRule, ...] = ()
    """Those of users."""
    marks: Mapping[str, Mark] = field(default_factory=dict)
    """The places of the keys, and of rules by their code."""

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys of `policy:`, without the switches of kinds."""
        return tuple(_KEYS)

    @classmethod
    def read(
        cls, written: JSONObject, *, switches: Mapping[str, str], marks: Mapping[str, Mark]
    ) -> Policy:
        """Return the policy of a mapping. `switches` are the deletion switches by kind."""
        values = {key: read(written.get(key)) for key, (read, _) in _KEYS.items()}
        on = frozenset(kind for kind, switch in switches.items() if written.get(switch) is True)
        return cls(**values, deletable=on, marks=marks)

    @classmethod
    def strictest(cls) -> Policy:
        """Return the policy of what no trusted file declares: nothing may be lost."""
        return cls(max_deletes=Limit(0))

    def stricter(self, trusted: Policy) -> Policy:
        """Return the stricter of this policy and a trusted one, key by key."""
        values = {
            key: stricter(getattr(self, key), getattr(trusted, key))
            for key, (_, stricter) in _KEYS.items()
        }
        return replace(self, **values, deletable=self.deletable & trusted.deletable)

    def looser_than(self, other: Policy) -> Iterator[str]:
        """Yield by which keys this policy permits more than another one, and what to delete.

        A key with a list is followed by the names that make the difference.
        """
        for key, (_, stricter) in _KEYS.items():
            own = getattr(self, key)
            least = stricter(own, getattr(other, key))
            if own == least:
                continue
            both = (*own, *least) if isinstance(own, tuple) else ()
            differing = (item for item in both if (item in own) is not (item in least))
            names = dict.fromkeys(getattr(item, "id", item) for item in differing)
            yield f"{key} ({', '.join(names)})" if names else key
        yield from (f"deletion of {kind}" for kind in sorted(self.deletable - other.deletable))


def to_send_anyway(rule: str) -> str:
    """Return how to allow what a service is known to refuse."""
    return f"to send it anyway: `policy: {{attempt: [{rule}]}}`"


class Readable(Struct, frozen=True):
    """What references may read: names and folders of lists, and whether commands may run."""

    env: frozenset[str] = frozenset()
    """The names of `env:`."""
    secrets: frozenset[str] = frozenset()
    """The names of `secrets:`."""
    secret_files: tuple[str, ...] = ()
    """The folders of `secret_files:`, absolute or relative to the workspace."""
    allow_exec: bool = False
    """Whether the policy allows `${secret:exec:…}`."""
    strict: bool = False
    """Whether the files that are loaded do not decide themselves: a command without a terminal."""
    reason: str = ""
    """Why what only the loaded files have does not count, if it does not."""


def untrusted(setting: str, reason: str) -> str:
    """Return the message for a setting of the loaded files that does not count."""
    return f"{setting} cannot be trusted here: {reason}"


class Connection(Struct, frozen=True):
    """The service of an environment. The first request resolves `api_key`."""

    environment: str
    base_url: str
    """Without a trailing slash."""
    organization: str
    api_key: SecretRef
    key_text: str = ""
    """The reference to the API key as it is written, empty if that is how it reads."""
    headers: Mapping[str, SecretRef] = {}
    """Sent with every request, for a proxy in front of the service."""

    @property
    def written_key(self) -> str:
        """The reference to the API key as the files write it."""
        return self.key_text or str(self.api_key)


class SecretSettings(Struct, frozen=True):
    """The settings of the workspace for resolving secrets."""

    folder: str
    """The workspace folder, in which relative paths are."""
    allow_exec: bool = False
    """Whether `${secret:exec:…}` is allowed."""
    literals: Mapping[str, SecretValue] = field(default_factory=dict)
    """The secrets that are written in the files, by the argument of their `SecretSource`."""
    trusted: Readable = field(default_factory=Readable)
    """What may be read."""


def is_loopback(host: str) -> bool:
    """Return whether a host name is that of this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Window(Struct, frozen=True):
    """At most `calls` within `seconds`."""

    calls: int
    seconds: float

    def __str__(self) -> str:
        units = {1.0: "a second", 60.0: "a minute", 3_600.0: "an hour"}
        unit = units.get(self.seconds)
        return f"{self.calls} in {self.seconds:g} s" if unit is None else f"{self.calls} {unit}"


class ClientOptions(Struct, frozen=True):
    """The keys of `client:`, and `--rate`; None where nothing is said."""

    parallelism: int | None = None
    """Requests at once."""
    rate: tuple[Window, ...] | None = None
    """The limit of calls, empty for none."""
    timeout: float | None = None
    """Seconds for one request, connecting and the whole response included."""
    max_wait: float | None = None
    """The longest wait, in seconds, that the service may ask for."""
    retry_for: float | None = None
    """Seconds for which a failed request is repeated."""
    insecure_http: bool | None = None
    """Whether to send the key unencrypted to a service that is not on loopback."""

    def over(self, other: ClientOptions) -> ClientOptions:
        """Return these options, and those of `other` where these say nothing."""
        return ClientOptions(**(other.given() | self.given()))

    def given(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = asdict(self)
        return {name: value for name, value in values.items() if value is not None}


def duration(name: str, text: str) -> float | None:
    """Return the seconds of a key of `DURATIONS`, written like `30`, `30s`, `5m` or `1h`.

    None for another text, and for a time that is too short.
    """
    seconds = _seconds(text)
    return seconds if seconds is not None and seconds >= DURATIONS[name] else None


def how_to_write(name: str) -> str:
    """Return a hint for an invalid value of a key."""
    if name == "rate":
        return "write calls and seconds, such as 240/60"
    least = DURATIONS[name]
    return "write seconds, or text such as 30s, 5m or 1h" + (
        f", at least {least:g} s" * bool(least)
    )


def rate(text: str) -> tuple[Window, ...] | None:
    """Return the windows of `CALLS/SECONDS` or `off`, None for another text."""
    if text == "off":
        return ()
    match = _RATE.fullmatch(text)
    calls, seconds = (int(match[1]), _seconds(match[2])) if match else (0, None)
    return (Window(calls, seconds),) if calls and seconds else None


def _seconds(text: str) -> float | None:
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else None
