"""Defaults of files against the same resources written out: equal resources."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.files.loading import load
from reconciler.model.resource import Desired, Resource
from reconciler.model.values import MISSING, UNSET, value_at
from tests.conftest import LONG
from tests.support.cli import write

Fields = dict[str, Any]
ENVIRONMENTS = ("one", "two")
WORKSPACE: Fields = {
    "version": 1,
    "secrets": ["KEY", "OTHER"],
    "vars": {"size": "small", "kind": "hour"},
    "environments": {"one": {"vars": {"size": "large"}}, "two": {"vars": {"kind": "day"}}},
}
KEYS = {"aws_access_key_id": "${secret:env:KEY}", "aws_secret_access_key": "${secret:env:KEY}"}
COMPLETE: Fields = {
    "S3": {"bucket_name": "acme", "region": "eu-central-1", "prefix": "p/", **KEYS},
    "HTTP": {"url": "https://h.example.com", "token": "${secret:env:KEY}"},
    "NoOp": {},
}
_texts = st.sampled_from(["a/", "b/", "${var:size}/", "$${b/"])
_names = st.sampled_from(["a", "b", "${var:size}"])
_configs = {
    "S3": st.fixed_dictionaries(
        {},
        optional={
            "prefix": _texts,
            "bucket_name": _names,
            "compression": st.sampled_from(["gzip", None]),
            "exclude_events": st.lists(st.sampled_from("ab"), max_size=2),
            "aws_access_key_id": st.sampled_from(["${secret:env:KEY}", "${secret:env:OTHER}"]),
        },
    ),
    "HTTP": st.just({"url": "https://u.example.com"}),
    "NoOp": st.just({}),
}
_lifecycles = st.fixed_dictionaries(
    {}, optional={"protect": st.booleans(), "ignore_changes": st.just(["name"])}
)
_project_fields = st.fixed_dictionaries(
    {},
    optional={
        "timezone": st.sampled_from(["UTC", "Europe/Berlin", UNSET]),
        "anonymize_ips": st.booleans(),
        "app_urls": st.lists(st.sampled_from(["https://a", "https://b"]), max_size=2),
        "modifiers": st.dictionaries(
            st.sampled_from("ab"), st.sampled_from([0, 1, UNSET]), max_size=2
        ),
        "lifecycle": _lifecycles,
    },
)


@st.composite
def _export_fields(draw: st.DrawFn, below: Fields) -> Fields:
    """Draw some fields of an export over lower layers: the type may be that of a lower one."""
    fields: Fields = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "project": st.sampled_from(["p0", {"name": "Live"}, {"id": 7}]),
                "interval": st.sampled_from(["hour", "day", "${var:kind}"]),
                "paused": st.booleans(),
                "end_at": st.sampled_from([None, "2031-01-01T00:00:00Z", UNSET]),
                "lifecycle": _lifecycles,
                "secret_version": st.sampled_from(["1", "2"]),
            },
        )
    )
    if draw(st.booleans()):
        name = draw(st.sampled_from(["S3", "S3", "HTTP", "NoOp"]))
        is_same = below.get("destination", {}).get("type") == name
        given_type = {} if is_same and draw(st.booleans()) else {"type": name}
        fields["destination"] = {**given_type, "config": draw(_configs[name])}
    return fields


_COLLECTIONS = {"project": "projects", "batch_export": "batch_exports"}


def _fields(kind: str, below: Fields) -> st.SearchStrategy[Fields]:
    return _project_fields if kind == "project" else _export_fields(below)


@st.composite
def _defaults(draw: st.DrawFn, below: Fields) -> Fields:
    return {
        kind: draw(_fields(kind, below.get(kind, {})))
        for kind in _COLLECTIONS
        if draw(st.integers(0, 3))
    }


def laid_out(below: Fields, above: Fields, *, top: bool = True) -> Fields:
    """Return two layers as one, as the documentation describes it. `${unset}` stays."""
    merged = dict(below)
    for name, value in above.items():
        lower = merged.get(name)
        is_mapping = isinstance(value, dict) and isinstance(lower, dict)
        if not is_mapping or (top and (name == "project" or _has_another_type(lower, value))):
            merged[name] = value
        else:
            merged[name] = laid_out(lower or {}, value, top=False)
    return merged


def _has_another_type(lower: Any, value: Fields) -> bool:
    return value.get("type", lower.get("type")) != lower.get("type") and "type" in lower


def completed(kind: str, body: Fields, below: Fields) -> Fields:
    """Return a resource with the required fields that the layers below lack."""
    whole = laid_out(below, body)
    if kind == "project":
        return body
    needed: Fields = {"project": "p0", "interval": "hour"}
    destination = whole.get("destination", {})
    name = destination.get("type", "S3")
    config = {
        field: value
        for field, value in COMPLETE[name].items()
        if field not in destination.get("config", {})
    }
    needed = {field: value for field, value in needed.items() if field not in whole}
    own = laid_out(body.get("destination", {}), {"config": config}, top=False)
    if "type" not in destination:
        own["type"] = name
    return {**body, **needed, "destination": own}


@st.composite
def workspaces(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, str]]:
    """Draw a workspace whose files have defaults, and the same one written out in one file."""
    shared = draw(_defaults({}))
    files = {"reconciler.yaml": json.dumps({**WORKSPACE, "defaults": shared})}
    whole: dict[str, dict[str, Fields]] = {name: {} for name in _COLLECTIONS.values()}
    for number in range(draw(st.integers(1, 3))):
        own = draw(_defaults(shared))
        text: Fields = {"defaults": own} if own else {}
        for kind, collection in _COLLECTIONS.items():
            below = laid_out(shared.get(kind, {}), own.get(kind, {}))
            for position in range(draw(st.integers(int(kind in own or not number), 3))):
                body = completed(kind, draw(_fields(kind, below)), below)
                key = f"{kind[0]}{number or ''}{position}"
                body = {"name": f"N {key}", **body}
                override = draw(_fields(kind, {})) if draw(st.booleans()) else {}
                override.pop("destination", None)
                if override:
                    body["overrides"] = {draw(st.sampled_from(ENVIRONMENTS)): override}
                text.setdefault(collection, {})[key] = body
                whole[collection][key] = laid_out(below, body)
        files[f"f{number}.yaml"] = json.dumps(text)
    expected = {"reconciler.yaml": json.dumps(WORKSPACE), "all.yaml": json.dumps(whole)}
    return files, expected


def _desired(folder: Path, environment: str) -> Desired:
    """Return the resources of an environment without their places."""
    desired = load(folder, environment=environment, environ={}).desired
    resources = {address: _placeless(item) for address, item in desired.resources.items()}
    return replace(desired, resources=resources)


def _placeless(resource: Resource) -> Resource:
    """Return a resource without places, and without `${unset}` that a later layer replaces."""
    unset = {path for path in resource.unset if value_at(resource.spec, path) is MISSING}
    return replace(resource, mark=None, marks={}, unset=tuple(sorted(unset)))


@settings(max_examples=1000 if LONG else 50)
@given(workspaces())
def test_defaults_of_files_equal_the_resources_written_out(
    workspace: tuple[dict[str, str], dict[str, str]],
) -> None:
    with TemporaryDirectory() as name:
        folders = [write(Path(name, str(side)), files) for side, files in enumerate(workspace)]
        for environment in ENVIRONMENTS:
            defaulted, written = (_desired(folder, environment) for folder in folders)
            assert defaulted == written
