"""Plans refuse what the service refuses, and nothing else, for every destination and dialect."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.kinds.batch_export import DESTINATION
from reconciler.model.kind import Dialect
from reconciler.model.live import Live
from reconciler.model.plan import Change, Plan
from reconciler.model.resource import Desired, ParentRef, Resource
from reconciler.model.schemas import known_schema
from reconciler.model.values import SecretRef
from reconciler.service.live import read_live
from tests.conftest import StartService
from tests.support import worlds
from tests.support.declared import NOOP, seed
from tests.support.emulator import DIALECTS, RunningEmulator
from tests.support.fields import BY_INTEGRATION, INLINE, INTEGRATIONS, QUERIES
from tests.support.simulated import no_op_export
from tests.support.transport import connected, resolver
from tests.support.worlds import KINDS, export, project

WEB = ParentRef(id="1")
CAPTURE = "https://eu.i.posthog.com/batch/"
SECRET = SecretRef.of("env", "X")
UNKNOWN = {"FileDownload", "Workflows"}
"""Types that the embedded service does not have, or that no list shows."""


def seed_of() -> dict[str, Any]:
    integrations = [
        {"id": number, "project": 1, "kind": kind, "config": {"host": "h"}}
        for number, kind in enumerate(INTEGRATIONS.values(), start=1)
    ]
    given = seed({"id": 1, "name": "Web"}, {"id": 2, "name": "App"})
    return {**given, "integrations": integrations}


@pytest.fixture(params=DIALECTS)
def running(request: pytest.FixtureRequest, service_of: StartService) -> RunningEmulator:
    return service_of(seed_of(), "--dialect", request.param)


def config_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: SECRET if str(value).startswith("${secret") else value
        for name, value in fields.items()
        if name != "copy_inputs"
    } | ({"mode": "INSERT"} if "mode" in fields else {})


def destinations() -> dict[str, dict[str, Any]]:
    """Return every type with every form of its credentials, by name."""
    made = {}
    for form, types in (("inline", INLINE), ("integration", BY_INTEGRATION)):
        for tag, fields in types.items():
            body = {"type": tag, "config": config_of(fields)}
            made[f"{tag} {form}"] = body
            made |= {f"{tag} {form} named": named for named in with_integration(body)}
    made["S3 named"] = {**made["S3 inline"], "integration": 1}
    elsewhere = {"url": "https://example.com/", "token": SECRET}
    made["HTTP elsewhere"] = {"type": "HTTP", "config": elsewhere}
    legacy = {"bucket_name": "b", "region": "r", "prefix": "", "legacy_parquet_extension": True}
    made["AwsS3 legacy"] = {**made["AwsS3 integration named"], "config": legacy}
    return made


def with_integration(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a destination with an integration, if its type has any."""
    if body["type"] in INTEGRATIONS:
        yield {**body, "integration": 1 + list(INTEGRATIONS).index(body["type"])}


def in_web(key: str, **parts: Any) -> Resource:
    return replace(export(key, **parts), parent=WEB)


def to_each(destinations: Mapping[str, dict[str, Any]]) -> list[Resource]:
    """Return an export to each destination, named as it."""
    numbered = enumerate(destinations.items())
    return [in_web(f"d{n}", name=name, destination=body) for n, (name, body) in numbered]


def exports() -> list[Resource]:
    merged = {"model": "hogql", "sql_query": QUERIES[0], "incremental_mode": "MERGE"}
    own = {
        "merged": {**merged, "primary_key": ["event"]},
        "merged without a key": merged,
        "query": {"sql_query": QUERIES[0]},
        "hogql": {"model": "hogql", "sql_query": QUERIES[0]},
        "hogql-bare": {"model": "hogql"},
        "persons": {"model": "persons"},
    }
    plain = [in_web(name, name=name, destination=NOOP, **more) for name, more in own.items()]
    return [*to_each(destinations()), *plain]


def read(running: RunningEmulator, desired: Desired) -> Live:
    async def run() -> Live:
        secrets = resolver(RECONCILER_API_KEY="phx_key")
        async with connected(running, secrets=secrets) as transport:
            return await read_live(transport, desired, kinds=KINDS)

    return asyncio.run(run())


def desired_by(running: RunningEmulator, *resources: Resource) -> Desired:
    return replace(worlds.desired_of(*resources), base_url=running.base_url)


def planned(running: RunningEmulator, *resources: Resource, live: Live | None = None) -> Plan:
    desired = desired_by(running, *resources)
    return worlds.planned(desired, live or read(running, desired))


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    return "secret" if isinstance(value, SecretRef) else value


def answer(running: RunningEmulator, change: Change) -> int:
    path = "/api/projects/1/batch_exports/"
    return running.call("POST", path, plain(change.body)).status_code


def names_of(plan: Plan) -> set[str]:
    """Return the names of the objects whose change violates the policy."""
    refused = {address for refusal in plan.refusals for address in refusal.addresses}
    return {change.name for change in plan.effective if change.address in refused}


def refused(running: RunningEmulator, exports: list[Resource]) -> set[str]:
    """Return the names of exports whose creates the plan refuses, as the service does."""
    path = "/api/projects/1/batch_exports/"
    running.call("POST", path, no_op_export("Known")).raise_for_status()
    plan = planned(running, *exports)
    answers = {change.name: answer(running, change) for change in plan.effective}
    assert names_of(plan) == {name for name, status in answers.items() if status >= 400}
    assert len(answers) == len(exports)
    return names_of(plan)


def test_experience_19_a_create_is_refused_in_the_plan_if_the_service_refuses_it(
    running: RunningEmulator,
) -> None:
    assert refused(running, exports())


def lacking() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every type with what its schema says that it needs, and without each part of it."""
    for tag in sorted(DESTINATION.variants.keys() - UNKNOWN):
        described = known_schema(f"destinations/{tag}")
        properties = described["properties"]
        plain = (*described["required"], *described.get("x-required-unless", ()))
        # A file can't have an empty value where the schema has a least length.
        blank = [name for name in plain if "minLength" not in properties[name]]
        for number, method in enumerate(described.get("x-credentials", [{"fields": []}])):
            whole = {
                **dict.fromkeys(plain, CAPTURE),
                **dict.fromkeys(method["fields"], SECRET),
                **method.get("when", {}),
            }
            configs = {"nothing": whole}
            configs |= {name: without(whole, name) for name in whole}
            configs |= {f"a value of {name}": {**whole, name: None} for name in plain}
            configs |= {f"text of {name}": {**whole, name: ""} for name in blank}
            for condition in described.get("x-required-when", ()):
                more: dict[str, Any] = {**whole, **condition["when"]}
                for top, name in (path.split(".") for path in condition["required"]):
                    node = properties[top]["properties"][name]
                    keys = dict.fromkeys(node.get("properties", ()), SECRET)
                    more[top] = {**more.get(top, {}), name: keys or CAPTURE}
                configs |= {f"nothing for {condition['when']}": more}
                for top, name in (path.split(".") for path in condition["required"]):
                    configs[f"{top} for {condition['when']}"] = without(more, top)
                    configs[f"{top}.{name}"] = {**more, top: without(more[top], name)}
            for what, config in configs.items():
                yield f"{tag} {number} lacks {what}", {"type": tag, "config": config}


def without(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {other: value for other, value in config.items() if other != name}


def test_plan_d10_a_create_without_a_required_field_is_refused_if_the_service_refuses_it(
    running: RunningEmulator,
) -> None:
    lack = dict(lacking())
    for name, body in [*lack.items()]:
        lack |= {f"{name} and an integration": named for named in with_integration(body)}
    assert "HTTP 0 lacks token" in refused(running, to_each(lack))


def variants_of(resource: Resource) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield changes of an export that some servers refuse, and one that all accept."""
    destination = resource.spec["destination"]
    config = destination["config"]
    yield "name", {"name": f"{resource.name} 2"}
    if destination.get("integration"):
        yield "integration", {"destination": {**destination, "integration": None}}
    if "url" in config:
        elsewhere = {**config, "url": "https://example.com/"}
        yield "url", {"destination": {**destination, "config": elsewhere}}
    if "legacy_parquet_extension" in config:
        switched_on = {**config, "legacy_parquet_extension": True}
        yield "extension", {"destination": {**destination, "config": switched_on}}
    if "prefix" in config:
        yield "prefix", {"destination": {**destination, "config": {**config, "prefix": ""}}}
    if "primary_key" in resource.spec:
        yield "no key", {"primary_key": None}
    if resource.spec.get("sql_query"):
        yield "query", {"sql_query": QUERIES[1]}
        yield "no query", {"sql_query": None}


def test_an_update_is_refused_in_the_plan_if_the_service_refuses_it(
    running: RunningEmulator,
) -> None:
    for change in planned(running, *exports()).effective:
        answer(running, change)
    live = read(running, desired_by(running))
    ids = {item.name: item.id for item in live.of("batch_export")}
    compared = 0
    for resource in exports():
        if resource.name not in ids:
            continue
        pinned = replace(resource, pinned_id=ids[resource.name])
        for what, changed in variants_of(resource):
            variant = replace(pinned, spec={**resource.spec, **changed})
            plan = planned(running, variant, live=live)
            for change in plan.effective:
                path = f"/api/projects/1/batch_exports/{change.live_id}/"
                status = running.call("PATCH", path, plain(change.body)).status_code
                assert bool(plan.refusals) is (status >= 400), f"{resource.name}: {what}"
                compared += 1
    assert compared > len(ids)


def test_model_f7_a_plan_without_exports_knows_the_newest_service(running: RunningEmulator) -> None:
    """Two projects whose names differ only in case: the second one is refused by newer servers."""
    plan = planned(running, project("a", name="New"), project("b", name="NEW"))
    is_newest = plan.source.dialect is Dialect.V2026
    assert [refusal.rule for refusal in plan.refusals] == ["name-taken"] * is_newest
    path = "/api/organizations/org/projects/"
    answers = [running.call("POST", path, change.body).status_code for change in plan.effective]
    assert answers == [201, 409 if is_newest else 201]
