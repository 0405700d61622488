"""What a project sends after a change, and neither now nor as applied."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.model.kind import Action, Dialect
from reconciler.model.live import LiveObject
from reconciler.model.plan import NewPlace, Novelty, Plan
from reconciler.model.resource import Lifecycle, ParentRef, Resource
from reconciler.model.settings import PlanOptions, Policy
from reconciler.model.values import SecretRef, SecretSource
from reconciler.render.options import RenderOptions, Style
from reconciler.render.plan_text import plan_as_text
from tests.support.worlds import (
    desired_of,
    export,
    inventory_of,
    live_export,
    live_of,
    live_project,
    planned,
    project,
    s3,
)

WEB = project()
USER, PASSWORD = SecretRef.of("env", "PG_USER"), SecretRef.of("env", "PG_PASSWORD")
EVIL = "evil.example"


def postgres(host: str = "db.example", kind: str = "Postgres", **config: Any) -> dict[str, Any]:
    """Return a destination with known secrets; None takes a field away."""
    whole = {"host": host, "database": "d", "table_name": "t", "user": USER, "password": PASSWORD}
    given = {name: value for name, value in {**whole, **config}.items() if value is not None}
    return {"type": kind, "config": given}


def integrated(number: int, **config: Any) -> dict[str, Any]:
    return {"type": "Postgres", "integration": number, "config": {"database": "d", **config}}


def stored(destination: dict[str, Any]) -> dict[str, Any]:
    """Return what the service shows of a destination."""
    config = destination["config"]
    shown = {key: item for key, item in config.items() if not isinstance(item, SecretRef)}
    return {**destination, "config": shown}


def live_of_export(resource: Resource, **body: Any) -> LiveObject:
    spec = {name: value for name, value in resource.spec.items() if name != "name"}
    spec["destination"] = stored(resource.spec["destination"])
    key = resource.address.key
    return live_export(key, key.title(), **{**spec, **body})


def changed(
    *after: Resource,
    before: tuple[Resource, ...] = (),
    base: bool = True,
    dialect: Dialect = Dialect.INTERFACE,
    options: PlanOptions | None = None,
    policy: Policy | None = None,
) -> Plan:
    """Plan the change from the resources of the base, which are live, to others."""
    live = live_of(live_project(), *map(live_of_export, before), dialect=dialect)
    former = desired_of(WEB, *before) if base else None
    return planned(desired_of(WEB, *after), live, policy, options=options, base=former)


def new_in(plan: Plan) -> list[NewPlace]:
    return [item for change in plan.effective for item in change.new]


def texts(plan: Plan, *sorts: Novelty) -> list[str]:
    return [item.shown for item in new_in(plan) if item.sort in sorts or not sorts]


def dangers(plan: Plan) -> list[str]:
    return [
        item.message
        for change in plan.effective
        for item in change.consequences
        if item.rule == "credentials-to-new-address"
    ]


PG, S3_KEYS = postgres(), s3(aws_access_key_id=USER, aws_secret_access_key=PASSWORD)
LAKE = export(destination=PG)
OLD, NEW = Dialect.INTERFACE, Dialect.V2026
BOTH, STORED = {"user": USER, "password": PASSWORD}, {"user": None, "password": None}
IN_TEXT = SecretRef(("x-", SecretSource("env", "PG_PASSWORD")))
OWN_PASSWORD = {"user": None, "password": SecretRef.of("env", "OWN")}
COPIED = {"kind": "Redshift", "copy_inputs": {"authorization": {"k": USER}}}


def pond(destination: dict[str, Any]) -> Resource:
    return export("pond", destination=destination)


@pytest.mark.parametrize(
    ("before", "after", "dialect"),
    [
        pytest.param(PG, postgres(EVIL), OLD, id="another host"),
        pytest.param(PG, postgres(EVIL, "Redshift"), NEW, id="a replacement"),
        pytest.param(
            PG, pond(postgres(EVIL, user="u", password=IN_TEXT)), OLD, id="inside of text"
        ),
        pytest.param(postgres(**STORED), postgres(EVIL, **STORED), OLD, id="stored secrets"),
        pytest.param(postgres(user=None), postgres(EVIL, **OWN_PASSWORD), OLD, id="a stored one"),
        pytest.param(
            integrated(1, **BOTH), pond(integrated(2, **BOTH)), NEW, id="an integration and secrets"
        ),
        pytest.param(postgres(**COPIED), postgres(EVIL, **COPIED), OLD, id="copy_inputs"),
    ],
)
def test_plan_v1_a_known_secret_goes_to_a_new_address(
    before: dict[str, Any], after: dict[str, Any] | Resource, dialect: Dialect
) -> None:
    lake = export(destination=before)
    now = [lake, after] if isinstance(after, Resource) else [export(destination=after)]
    options, policy = PlanOptions(allow_replace=True), Policy(deny=("credentials-to-new-address",))
    plan = changed(*now, before=(lake,), dialect=dialect, options=options, policy=policy)
    assert len(dangers(plan)) == 1
    assert "deny" in [refusal.rule for refusal in plan.refusals]
    (text,) = texts(plan, Novelty.SECRET)
    what, _, where = text.rpartition(" -> ")
    assert dangers(plan)[0].startswith(f"data goes to {where}")
    assert where.startswith("integration") or what in dangers(plan)[0]
    if before is PG and now[0] is not lake:
        # Without a base, the address of the object counts.
        assert len(dangers(changed(*now, before=(lake,), dialect=dialect, base=False))) == 1


def test_plan_v1_a_rotated_secret_says_where_it_went_where_the_base_lacks_the_object() -> None:
    same = pond(S3_KEYS)
    for live, after, before in (
        (same, same, "db.example:5432"),
        (pond(postgres("two.example")), pond(postgres(EVIL)), "two.example:5432"),
    ):
        plan = planned(
            desired_of(WEB, LAKE, after),
            live_of(live_project(), live_of_export(LAKE), live_of_export(live)),
            base=desired_of(WEB, LAKE),
            options=PlanOptions(rotate=("*pond",)),
        )
        (item,) = (item for item in new_in(plan) if item.sort is Novelty.SECRET)
        assert item.before == before
        assert f"(before: {before})" in dangers(plan)[0]


OTHER = SecretRef.of("env", "OTHER")
ELSEWHERE = postgres("new.example", user=OTHER, password=OTHER)


@pytest.mark.parametrize(
    ("after", "hosts", "base"),
    [
        pytest.param((LAKE, pond(PG)), 0, True, id="known secrets at a known address"),
        pytest.param((LAKE, pond(PG)), 0, False, id="the same without a base"),
        pytest.param((LAKE, pond(ELSEWHERE)), 1, True, id="new secrets at a new address"),
        pytest.param((export(destination=ELSEWHERE),), 1, True, id="new secrets with a move"),
        pytest.param((export(destination=postgres("DB.Example.")),), 0, True, id="capitals"),
        pytest.param((export(destination=postgres(table_name="x")),), 0, True, id="another table"),
        pytest.param((export(destination=PG, interval="day"),), 0, True, id="another interval"),
    ],
)
def test_a_pair_of_secret_and_address_that_is_known_or_new_as_a_whole_is_no_danger(
    after: tuple[Resource, ...], hosts: int, *, base: bool
) -> None:
    plan = changed(*after, before=(LAKE,), base=base)
    assert dangers(plan) == []
    assert texts(plan, Novelty.HOST) == ["new.example:5432"] * hosts


@pytest.mark.parametrize(
    ("before", "after", "is_new"),
    [
        ({"endpoint_url": "https://e.example/x"}, {"endpoint_url": "https://E.example/X"}, True),
        ({"endpoint_url": "https://e.example"}, {"endpoint_url": "https://E.example."}, False),
        ({"bucket_name": "lake"}, {"bucket_name": "LAKE"}, True),
        ({"prefix": "a"}, {"prefix": "A"}, False),
    ],
)
def test_only_a_host_has_no_case(
    before: dict[str, Any], after: dict[str, Any], is_new: bool
) -> None:
    (was, now) = (export(destination=s3(**config)) for config in (before, after))
    assert bool(texts(changed(now, before=(was,)))) is is_new


def test_setting_drift_back_is_no_danger() -> None:
    drifted = live_of_export(LAKE, destination=stored(postgres("other.example")))
    desired = desired_of(WEB, LAKE)
    plan = planned(desired, live_of(live_project(), drifted), base=desired)
    assert plan.effective
    assert new_in(plan) == []


def test_secrets_go_to_the_live_address_where_changes_of_it_are_ignored() -> None:
    ignoring = Lifecycle(ignore_changes=("destination.config.host",))
    declared = export(destination=postgres(), lifecycle=ignoring)
    other = export("other", destination=postgres())
    drifted = live_of_export(declared, destination=stored(postgres(EVIL)))
    plan = planned(
        desired_of(WEB, other, export(destination=postgres(user=OTHER), lifecycle=ignoring)),
        live_of(live_project(), live_of_export(other), drifted),
        base=desired_of(WEB, other, export(destination=postgres(user=None), lifecycle=ignoring)),
        options=PlanOptions(rotate=("*lake",)),
    )
    (change,) = plan.effective
    assert change.reach == (f"{EVIL}:5432",)


def http(url: str) -> dict[str, Any]:
    return {"type": "HTTP", "config": {"url": url}}


def of_type(tag: str, integration: int | None = None, **config: Any) -> dict[str, Any]:
    by = {} if integration is None else {"integration": integration}
    return {"type": tag, **by, "config": config}


HOST, BUCKET, INTEGRATION = Novelty.HOST, Novelty.BUCKET, Novelty.INTEGRATION
REDSHIFT = postgres(kind="Redshift", copy_inputs={"s3_bucket": "evil", "authorization": 6})
PARTS = [(HOST, "db.example:5439"), (INTEGRATION, "authorization 6"), (BUCKET, "s3://evil")]
SNOWFLAKE = of_type("Snowflake", account="a", database="d")
BIG_QUERY = of_type("BigQuery", project_id="p", dataset_id="d")
BY_INTEGRATION = [(INTEGRATION, "s3://b by integration 7")]


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        (s3(endpoint_url="https://e"), [(HOST, "s3://b at https://e")]),
        (integrated(7), [(INTEGRATION, "integration 7")]),
        (of_type("AwsS3", 7, bucket_name="b", prefix=""), [(INTEGRATION, "integration 7")]),
        (of_type("S3Compatible", 7, bucket_name="b"), BY_INTEGRATION),
        (http("https://e/batch/"), [(HOST, "https://e/batch/")]),
        (SNOWFLAKE, [(HOST, "Snowflake account a")]),
        (BIG_QUERY, [(BUCKET, "BigQuery project p")]),
        (of_type("Kafka", hosts=["e"]), [(HOST, "Kafka e")]),
        (of_type("Kafka"), [(HOST, "Kafka")]),
        # In JSON nothing is escaped.
        (postgres("d\u0430t\u0430.example"), [(HOST, "d\u0430t\u0430.example:5432")]),
        (REDSHIFT, PARTS),
        (of_type("NoOp"), []),
    ],
    ids=lambda item: str(item)[:40],
)
def test_plan_v3_each_place_is_new_once(
    destination: dict[str, Any], expected: list[tuple[Novelty, str]]
) -> None:
    lake = export(destination=s3())
    plan = changed(lake, pond(destination), before=(lake,))
    found = [(item.sort, item.text) for item in new_in(plan)]
    assert [item for item in found if item[0] is not Novelty.QUERY] == expected


PERSONS, SELECT = "select email from persons  p", "select email from persons p"
ONE, TWO = ({"destination": s3(include_events=names)} for names in (["a"], ["b", "a"]))
MODES = [
    {"model": "hogql", "hogql_query": "select 1", "hogql_modifiers": {"mode": mode}}
    for mode in ("a", "b")
]
MODE_A, MODE_B = (
    f'model hogql, query over ?: select 1, hogql modifiers {{"mode":"{mode}"}}' for mode in "ab"
)


@pytest.mark.parametrize(
    ("before", "after", "text", "former"),
    [
        ({}, {"sql_query": PERSONS}, f"query over persons: {SELECT}", "everything"),
        ({"destination": s3(exclude_events=["x"])}, {}, "everything", "exclude events x"),
        (ONE, TWO, "include events a, b", "include events a"),
        (*MODES, MODE_B, MODE_A),
    ],
)
def test_plan_v2_other_data_at_a_known_place_is_new(
    before: dict[str, Any], after: dict[str, Any], text: str, former: str
) -> None:
    plan = changed(export(**after), before=(export(**before),))
    (item,) = new_in(plan)
    expected = (Novelty.QUERY, f"{text} -> s3://b", former)
    assert (item.sort, item.shown, item.before) == expected


def test_what_and_where_are_judged_as_a_pair() -> None:
    crm = export("crm", model="persons", destination=s3(bucket_name="crm"))
    known = (export(), crm)
    assert new_in(changed(*known, export("new", model="persons"), before=known))
    equal = export("new", model="persons", destination=s3(bucket_name="crm", prefix="new/"))
    assert new_in(changed(*known, equal, before=known)) == []
    rewritten = export(sql_query="SELECT  event FROM events")
    assert not new_in(changed(rewritten, before=(export(sql_query="select event from events"),)))


FORGOTTEN = s3(bucket_name="forgotten")
PAUSED = export(destination=FORGOTTEN, paused=True)
UNPAUSED = export(destination=FORGOTTEN, paused=False)
ENDED = export(end_at="2026-01-01T00:00:00Z")
ENDED_LATER = export(end_at="2026-02-01T00:00:00Z")


@pytest.mark.parametrize(
    ("before", "after", "beside", "expected"),
    [
        (PAUSED, UNPAUSED, export("other"), ["s3://forgotten"]),
        (PAUSED, UNPAUSED, export("other", destination=FORGOTTEN), []),
        (PAUSED, UNPAUSED, export("other", destination=FORGOTTEN, paused=True), ["s3://forgotten"]),
        (ENDED, export(), None, ["s3://b"]),
        (ENDED, ENDED_LATER, None, []),
        # The update takes the end away, and the other change unpauses it.
        (
            replace(ENDED, spec={**ENDED.spec, "paused": True}),
            export(paused=False),
            None,
            ["s3://b"],
        ),
    ],
)
def test_an_export_that_begins_to_run_again_is_judged_as_a_new_one(
    before: Resource, after: Resource, beside: Resource | None, expected: list[str]
) -> None:
    others = (beside,) if beside else ()
    plan = changed(after, *others, before=(before, *others))
    assert [(item.text, item.again) for item in new_in(plan)] == [(x, True) for x in expected]


def test_an_unpaused_export_shows_what_it_reaches() -> None:
    paused = export(model="persons", paused=True)
    (change,) = changed(export(model="persons", paused=False), before=(paused,)).effective
    assert (change.action, change.reach) == (Action.UNPAUSE, ("s3://b", "model persons"))


@pytest.mark.parametrize(
    ("parent", "paused", "expected"),
    [(1, False, []), (1, True, ["s3://b"]), (2, False, ["s3://b"])],
)
def test_what_the_live_project_sends_is_known(
    *, parent: int, paused: bool, expected: list[str]
) -> None:
    """An object that nothing manages counts, in the same project and while it runs."""
    unmanaged = live_export("x", "X", parent=parent, paused=paused, interval="day")
    live = live_of(live_project(), live_project(2, "Shop"), unmanaged)
    assert texts(planned(desired_of(WEB, export(prefix="q/")), live)) == expected


def test_in_a_project_that_the_plan_creates_every_place_is_new() -> None:
    known, created = export(), export("new", parent="shop")
    live = live_of(live_project(), live_of_export(known))
    desired = desired_of(WEB, known, project("shop"), created)
    assert texts(planned(desired, live, base=desired_of(WEB, known))) == ["s3://b"]


PARTNER = s3(bucket_name="partner-drop")


def sending(key: str, /, **parent: str) -> Resource:
    """Return an export to the partner from a project with a key or a name."""
    return replace(export(key, destination=PARTNER), parent=ParentRef(**parent))


HR = replace(project("web", name="HR"), pinned_id="2")
SHOP = replace(project("shop", name="Web"), pinned_id="1")


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        pytest.param(
            (project("web"), sending("lake", key="web"), project("hr", name="HR")),
            (HR, SHOP, sending("people", key="web"), sending("lake", key="shop")),
            ("Web", "HR"),
            id="by a pinned id",
        ),
        pytest.param(
            (sending("lake", name="Web"),),
            (sending("people", name="Web"), sending("lake", name="Old")),
            ("Old", "Web"),
            id="by names that the service changed",
        ),
    ],
)
def test_r1_what_another_project_sends_under_the_same_name_or_key_is_new(
    before: tuple[Resource, ...], after: tuple[Resource, ...], names: tuple[str, str]
) -> None:
    """R1: a re-pointed key of a project hid where its data goes."""
    lake = live_export(destination=PARTNER)
    base = inventory_of(desired_of(*before), live_of(live_project(), live_project(2, "HR"), lake))
    projects = (live_project(number, name) for number, name in enumerate(names, start=1))
    plan = planned(desired_of(*after), live_of(*projects, lake), base=base)
    found = {
        str(change.address): [item.text for item in change.new if item.sort is BUCKET]
        for change in plan.effective
    }
    assert found == {"batch_export.people": ["s3://partner-drop"]}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"target": "https://evil.example/x"}, ["https://evil.example/x"]),
        ({"site": "EVIL.example"}, ["evil.example"]),
        ({"hook": "kafka:9092"}, ["kafka:9092"]),
        ({"path": "//evil/share"}, ["//evil/share"]),
        ({"path": "\\\\evil\\share"}, ["\\\\evil\\share"]),
        ({"routes": [{"to": "a.example"}, {"to": ["10.0.0.1"]}]}, ["a.example", "10.0.0.1"]),
        ({"routes": {"evil.example": {"topic": "t"}}}, ["evil.example"]),
        ({"line": "host=evil.example port=1"}, ["host=evil.example port=1"]),
        ({"to": "me@evil", "v6": "2001:db8::1"}, ["me@evil", "2001:db8::1"]),
        ({"host": "evil", "port": 9}, ["evil", "9"]),
        ({"topic": "orders", "size": 1.23e29, "on": True, "none": None, "time": "10:30"}, []),
    ],
    ids=lambda item: str(item)[:40],
)
def test_r7_every_address_of_an_unknown_type_is_a_place(
    config: dict[str, Any], expected: list[str]
) -> None:
    """R7: an address under a name that says nothing was no new place."""
    known = export(destination=of_type("Kafka", target="known.example"))
    now = export(destination=of_type("Kafka", **{"target": "known.example", **config}))
    plan = changed(now, before=(known,))
    listed = [text for text in texts(plan) if text.startswith("Kafka ")]
    assert listed == [f"Kafka {text}" for text in expected]
    assert texts(changed(now, before=(now,))) == []


def test_a_nested_secret_that_the_service_returns_is_not_shown() -> None:
    """It says where an object sends as little as any other secret."""
    auth = {"password": "hunter2", "secret": 424242, "role": {"token": "arn:aws:iam::1:role/x"}}
    kafka = of_type("Kafka", target="known.example", bucket="b", auth=auth)
    (change,) = changed(export(destination=PG), before=(export(destination=kafka),)).effective
    shown = str((change.new, change.reach, change.consequences, change.fields))
    assert not [text for text in ("hunter2", "424242") if text in shown]
    (known,) = changed(export(destination=kafka)).effective
    assert known.reach == ("token arn:aws:iam::1:role/x", "s3://b", "Kafka known.example")


def test_what_another_type_left_is_no_place() -> None:
    """A PATCH keeps the settings of the old type, which the new one does not use."""
    container = of_type("AzureBlob", 7, container_name="c")
    plan = changed(export(destination=container), before=(export(destination=http("https://e")),))
    assert texts(plan, HOST, BUCKET, INTEGRATION) == ["Azure container c by integration 7"]


def test_a_bucket_without_a_prefix_is_an_exact_place_without_one() -> None:
    """Its credentials are those of an integration, which say as little as an address."""
    bucket = of_type("S3Compatible", 7, bucket_name="b", aws_access_key_id=PASSWORD)
    known = (
        export("known", destination=integrated(7)),
        pond(of_type("S3Compatible", 7, bucket_name="b")),
    )
    plan = changed(export(destination=bucket), *known, before=known)
    assert texts(plan) == ["aws_access_key_id env:PG_PASSWORD -> integration 7"]
    (note,) = (note.message for note in plan.notes if note.code == "same-place")
    assert "(bucket 'b', integration '7')" in note


def test_the_content_of_a_secret_file_is_known_under_another_name() -> None:
    """T2: the content decides, not the name of the file."""
    eu, copied = SecretRef.of("file", "eu.txt"), SecretRef.of("file", "copy.txt")
    lake = export(destination=postgres(user="u", password=eu))
    pond = export("pond", destination=postgres(EVIL, user="u", password=copied))
    live = live_of(live_project(), live_of_export(lake))
    base = inventory_of(desired_of(WEB, lake), live, desired_of(WEB, lake, pond))
    for content, expected in (("same", ["secret file:copy.txt -> evil.example:5432"]), ("new", [])):
        entry = replace(base.every[lake.address], contents={"file:eu.txt": "same"})
        every = {**base.every, lake.address: entry}
        known = replace(base, every=every, contents={"file:copy.txt": content})
        plan = planned(desired_of(WEB, lake, pond), live, base=known)
        assert texts(plan, Novelty.SECRET) == expected


A_B = ["a.example", "b.example"]
INSIDE = {"url": "https://u@x.example"}


@pytest.mark.parametrize(
    ("brokers", "given", "text", "before"),
    [
        (["a.example", "c.example"], {}, "stored credentials -> Kafka c.example", "b.example"),
        (["c.example", *A_B], {}, "stored credentials -> Kafka c.example", ""),
        (["b.example", "a.example"], {}, "", ""),
        (["a.example"], {"to": "db.example:5432", "key": USER}, "", ""),
    ],
)
def test_of_several_addresses_those_that_are_new_get_a_secret(
    brokers: list[str], given: dict[str, Any], text: str, before: str
) -> None:
    """The new one was cut out of the middle of a long list."""
    lake = export(destination=of_type("Kafka", brokers=A_B, inside=INSIDE, **given))
    now = export(destination=of_type("Kafka", brokers=brokers, inside=INSIDE, **given))
    found = [item for item in new_in(changed(now, before=(lake,))) if item.sort is Novelty.SECRET]
    expected = [(text, before and f"Kafka {before}")] if text else []
    assert [(item.shown, item.before) for item in found] == expected


@pytest.mark.parametrize(
    ("host", "version", "expected"),
    [("two.example", None, 0), (EVIL, None, 1), ("two.example", "2", 1)],
)
def test_secrets_that_files_without_a_commit_sent_are_known_by_their_hash(
    host: str, version: str | None, expected: int
) -> None:
    """Those of an object that nothing changes counted as sent to a new address."""
    applied = pond(postgres("two.example"))
    now = desired_of(WEB, LAKE, replace(pond(postgres(host)), secret_version=version))
    live = live_of(live_project(), live_of_export(LAKE), live_of_export(applied))
    base = inventory_of(desired_of(WEB, LAKE, applied), live, now)
    entry = replace(base.every[applied.address], commit=None, was=None)
    base = replace(base, every={**base.every, applied.address: entry})
    plan = planned(now, live, base=base, options=PlanOptions(rotate=("*",)))
    assert len(dangers(plan)) == expected


@pytest.mark.parametrize(
    ("entry", "other", "expected"),
    [
        ("lake", "s3://b", []),
        ("pond", "s3://b", ["s3://acme"]),
        (None, "s3://b", ["s3://acme"]),
        (None, "s3://acme", []),
        ("no record", "s3://b", []),
    ],
)
def test_the_places_of_an_object_that_is_taken_over_by_id_are_new(
    entry: str | None, other: str, expected: list[str]
) -> None:
    """A pinned `id` hid that a place was never applied for this address."""
    acme = s3(bucket_name="acme")
    sea = export("sea", destination=s3(bucket_name=other.removeprefix("s3://")))
    lake = export(destination=acme, pinned_id="e1")
    applied = export(entry or "gone", name="Lake", destination=acme)
    live = live_of(
        live_project(), live_export(destination=acme, interval="day"), live_of_export(sea)
    )
    base = inventory_of(desired_of(WEB, sea, *([applied] if entry else [])), live)
    plan = planned(desired_of(WEB, sea, lake), live, base=base if entry != "no record" else None)
    assert texts(plan, Novelty.BUCKET) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select 1", "?"),
        ("select a, b from events", "events"),
        ("select a from events, persons", "events, persons"),
        ("select a from ev as e, x.y z, `my t` where f(a, b), c", "ev, x.y, my t"),
        ("select a from (select b, c from cohorts) x, persons limit 1, 2", "cohorts, persons"),
        ("select a from (events join groups on f(a, b)), persons", "events, groups, persons"),
        ("select 'from x' from events -- from y", "events"),
        ("select a from events union all select b, c from events join x.y", "events, x.y"),
    ],
)
def test_every_table_of_a_query_is_named(query: str, expected: str) -> None:
    """A comma join named the first table only."""
    (text,) = texts(changed(export(model="hogql", sql_query=query), before=()), Novelty.QUERY)
    assert f"query over {expected}:" in text


def test_names_of_objects_in_json_are_not_escaped() -> None:
    lake, live = export(name="L\u0430ke"), live_of(live_project(), live_export(name="L\u200bke"))
    base = inventory_of(desired_of(WEB, export(name="L\u200bke")), live)
    plan = planned(desired_of(WEB, lake), live, base=base)
    (item,) = (item for item in new_in(plan) if item.sort is Novelty.OBJECT)
    assert item.shown == "'L\u200bke' (id e1) -> 'L\u0430ke'"
    assert "L\\u200bke" in plan_as_text(plan, RenderOptions(Style(width=100)))


def test_a_recorded_object_with_another_name_is_shown_with_both() -> None:
    lake, live = export(), [live_project(), live_export()]
    base = inventory_of(desired_of(WEB, lake), live_of(*live), desired_of(WEB, lake))
    renamed = desired_of(project(name="HR"), export(name="Sea"))
    plan = planned(renamed, live_of(*live), base=base)
    assert texts(plan, Novelty.OBJECT) == ["'Web' (id 1) -> 'HR'", "'Lake' (id e1) -> 'Sea'"]
    other = live_of(live_project(), live_export("e2", interval="day"))
    plan = planned(desired_of(WEB, lake), other, base=base)
    assert texts(plan, Novelty.OBJECT) == ["'Lake' (id e1) -> 'Lake' (id e2)"]
    pinned = export(name="Sea", pinned_id="e1")
    assert not texts(planned(desired_of(WEB, pinned), live_of(*live), base=base), Novelty.OBJECT)


@pytest.mark.parametrize("key", ["lake", "renamed"])
def test_what_the_base_ignores_is_new_under_another_key_too(key: str) -> None:
    ignoring = Lifecycle(ignore_changes=("destination.config.host",))
    base = desired_of(WEB, export(destination=postgres(EVIL), lifecycle=ignoring))
    now = desired_of(WEB, export(key, name="Lake", destination=postgres(EVIL)))
    live = live_of(live_project(), live_of_export(LAKE))
    assert len(dangers(planned(now, live, base=base))) == 1
