"""The saved form of a plan: `Plan` ⇄ JSON, without loss, with a digest.

This is also the public JSON, and what every output is drawn from. It is for careless readers: one
list of changes, each with its action as a word and `destructive: true` where something is lost.
Secrets are references. `{"$secret": "${secret:env:X}"}` stands for one inside a body, and a key of
the user's own that begins with `$` is written with one `$` more.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from reconciler.errors import ReconcilerError
from reconciler.model.address import Address
from reconciler.model.change import (
    Action,
    Change,
    Consequence,
    Danger,
    FieldChange,
    Origin,
    Reason,
    SecretNote,
    SecretUse,
    Seen,
)
from reconciler.model.live import Dialect
from reconciler.model.plan import Note, Plan, PlanSource, Refusal, Selection, Unmanaged
from reconciler.model.resource import ParentRef
from reconciler.model.values import (
    JSON,
    MISSING,
    JSONObject,
    SecretRef,
    SecretSource,
)
from reconciler.model.wording import plain_json

FORMAT_VERSION = 1
_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
_SECRET_KEY = "$secret"  # noqa: S105 - a marker


class NoPlan(ReconcilerError):
    """A file that is no plan, of another format, or edited by hand."""


def encode(plan: Plan) -> bytes:
    """Canonical bytes: the same plan gives the same bytes."""
    return plain_json(orjson.dumps(encoded(plan), option=_OPTIONS).decode()).encode()


def encoded(plan: Plan) -> dict[str, Any]:
    """The public JSON as a value."""
    content = _content(plan)
    return {**content, "digest": _digest(content), "created_at": plan.created_at}


def digest(plan: Plan) -> str:
    """SHA-256 (hex) over everything but the time of creation."""
    return _digest(_content(plan))


def decode(data: bytes) -> Plan:
    """The plan that `encode` made. Raises NoPlan."""
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise NoPlan("this is not a plan file: it is no JSON") from None
    if not isinstance(content, dict) or "format_version" not in content:
        raise NoPlan("this is not a plan file", hint="make one with `reconciler plan --out FILE`")
    version = content["format_version"]
    if version != FORMAT_VERSION:
        raise NoPlan(
            f"this plan has format {version}, and this version of reconciler reads format "
            f"{FORMAT_VERSION}",
            hint="make the plan again with this version",
        )
    rest = {key: value for key, value in content.items() if key not in ("digest", "created_at")}
    if content.get("digest") != _digest(rest):
        raise NoPlan(
            "the plan file was changed after it was made: its digest does not fit",
            hint="make the plan again; a plan can't be edited",
        )
    try:
        return _plan(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NoPlan(f"this plan file can't be read ({type(error).__name__})") from None


def _digest(content: Mapping[str, Any]) -> str:
    return sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _content(plan: Plan) -> dict[str, Any]:
    source = plan.source
    counts = {action.value: count for action, count in plan.counts.items()}
    return {
        "format_version": FORMAT_VERSION,
        "source": {
            "environment": source.environment,
            "organization": source.organization,
            "base_url": source.base_url,
            "tool_version": source.tool_version,
            "config_digest": source.config_digest,
            "live_digest": source.live_digest,
            "dialect": source.dialect.value if source.dialect is not None else None,
            "base": source.base,
            "undoes": source.undoes,
        },
        "summary": {**counts, "unmanaged": len(plan.unmanaged), "empty": plan.empty},
        "changes": [_from_change(each) for each in plan.changes],
        "unmanaged": [_from_unmanaged(each) for each in plan.unmanaged],
        "ignored": [_from_unmanaged(each) for each in plan.ignored],
        "notes": [{"code": each.code, "message": each.message} for each in plan.notes],
        "refusals": [_from_refusal(each) for each in plan.refusals],
        "selection": {
            "targets": list(plan.selection.targets),
            "excludes": list(plan.selection.excludes),
            "kinds": list(plan.selection.kinds),
            "parents": list(plan.selection.parents),
            "partial": plan.selection.partial,
        },
    }


def _from_change(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "address": str(change.address),
        "kind": change.address.kind,
        "key": change.address.key,
        "action": change.action.value,
        "destructive": change.action.destructive,
        "name": change.name,
        "live_id": change.live_id,
        "parent": _from_parent(change.parent),
        "parent_id": change.parent_id,
        "old_parent_id": change.old_parent_id,
        "fields": [_from_field(each) for each in change.fields],
        "body": _from_body(change.body),
        "after_create": _from_body(change.after_create),
        "secrets": [
            {
                "path": list(each.path),
                "reference": str(each.ref),
                "parts": _from_value(each.ref)[_SECRET_KEY],
                "use": each.use.value,
                "sent": each.use.sent,
            }
            for each in change.secrets
        ],
        "reasons": [each.value for each in change.reasons],
        "consequences": [
            {"rule": each.rule, "severity": each.severity.value, "message": each.message}
            for each in change.consequences
        ],
        "depends_on": list(change.depends_on),
        "seen": (
            {
                "updated_at": change.seen.updated_at,
                "fields": _from_value(change.seen.fields),
            }
            if change.seen is not None
            else None
        ),
    }


def _from_parent(parent: ParentRef | None) -> dict[str, str | None] | None:
    if parent is None:
        return None
    return {"key": parent.key, "id": parent.id, "name": parent.name}


def _from_field(change: FieldChange) -> dict[str, Any]:
    """A side that is absent has no key, one that is null has null."""
    told: dict[str, Any] = {
        "path": list(change.path),
        "secret": change.secret,
        "reset": change.reset,
        "origin": change.origin.value,
    }
    if change.before is not MISSING:
        told["before"] = _from_value(change.before)
    if change.after is not MISSING:
        told["after"] = _from_value(change.after)
    return told


def _from_unmanaged(each: Unmanaged) -> dict[str, Any]:
    return {
        "address": str(each.address),
        "name": each.name,
        "parent_id": each.parent_id,
        "parent_name": each.parent_name,
    }


def _from_refusal(each: Refusal) -> dict[str, Any]:
    return {
        "rule": each.rule,
        "message": each.message,
        "addresses": [str(address) for address in each.addresses],
        "where": each.where,
        "allow": each.allow,
    }


def _from_body(body: JSONObject | None) -> JSON:
    return None if body is None else _from_value(body)


def _from_value(value: JSON) -> JSON:
    if isinstance(value, SecretRef):
        parts = [part if isinstance(part, str) else {"ref": str(part)} for part in value.parts]
        return {_SECRET_KEY: parts}
    if isinstance(value, Mapping):
        return {
            f"${key}" if str(key).startswith("$") else str(key): _from_value(item)
            for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_from_value(item) for item in value]
    return value


def _to_value(value: JSON) -> JSON:
    if isinstance(value, dict):
        if set(value) == {_SECRET_KEY}:
            return _to_secret(value[_SECRET_KEY])
        return {key.removeprefix("$"): _to_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_value(item) for item in value]
    return value


def _to_secret(parts: list[Any]) -> SecretRef:
    return SecretRef(
        tuple(part if isinstance(part, str) else SecretSource.parse(part["ref"]) for part in parts)
    )


def _plan(content: Mapping[str, Any]) -> Plan:
    source, selection = content["source"], content["selection"]
    dialect = source["dialect"]
    return Plan(
        source=PlanSource(
            environment=source["environment"],
            organization=source["organization"],
            base_url=source["base_url"],
            tool_version=source["tool_version"],
            config_digest=source["config_digest"],
            live_digest=source["live_digest"],
            dialect=Dialect(dialect) if dialect is not None else None,
            base=source["base"],
            undoes=source["undoes"],
        ),
        changes=tuple(_to_change(each) for each in content["changes"]),
        unmanaged=tuple(_to_unmanaged(each) for each in content["unmanaged"]),
        ignored=tuple(_to_unmanaged(each) for each in content["ignored"]),
        notes=tuple(Note(each["code"], each["message"]) for each in content["notes"]),
        refusals=tuple(_to_refusal(each) for each in content["refusals"]),
        selection=Selection(
            targets=tuple(selection["targets"]),
            excludes=tuple(selection["excludes"]),
            kinds=tuple(selection["kinds"]),
            parents=tuple(selection["parents"]),
        ),
        created_at=content["created_at"],
    )


def _to_change(each: Mapping[str, Any]) -> Change:
    seen, parent = each["seen"], each["parent"]
    body, after = each["body"], each["after_create"]
    return Change(
        address=Address(each["kind"], each["key"]),
        action=Action(each["action"]),
        name=each["name"],
        live_id=each["live_id"],
        parent=ParentRef(**parent) if parent is not None else None,
        parent_id=each["parent_id"],
        old_parent_id=each["old_parent_id"],
        fields=tuple(_to_field(field) for field in each["fields"]),
        body=_to_value(body) if body is not None else None,
        after_create=_to_value(after) if after is not None else None,
        secrets=tuple(
            SecretNote(tuple(note["path"]), _to_secret(note["parts"]), SecretUse(note["use"]))
            for note in each["secrets"]
        ),
        reasons=tuple(Reason(reason) for reason in each["reasons"]),
        consequences=tuple(
            Consequence(item["rule"], Danger(item["severity"]), item["message"])
            for item in each["consequences"]
        ),
        depends_on=tuple(each["depends_on"]),
        seen=Seen(seen["updated_at"], _to_value(seen["fields"])) if seen is not None else None,
    )


def _to_field(each: Mapping[str, Any]) -> FieldChange:
    return FieldChange(
        path=tuple(each["path"]),
        before=_to_value(each["before"]) if "before" in each else MISSING,
        after=_to_value(each["after"]) if "after" in each else MISSING,
        secret=each["secret"],
        reset=each["reset"],
        origin=Origin(each["origin"]),
    )


def _to_unmanaged(each: Mapping[str, Any]) -> Unmanaged:
    return Unmanaged(
        Address.parse(each["address"]), each["name"], each["parent_id"], each["parent_name"]
    )


def _to_refusal(each: Mapping[str, Any]) -> Refusal:
    return Refusal(
        each["rule"],
        each["message"],
        tuple(Address.parse(address) for address in each["addresses"]),
        each["where"],
        each["allow"],
    )
