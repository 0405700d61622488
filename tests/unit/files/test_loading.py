"""Files to values, and everything that can be wrong with them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.diagnostics import Diagnostic, DiagnosticCollector, InvalidConfiguration
from reconciler.errors import BadUsage
from reconciler.files.loading import LoadOptions, load, load_all
from reconciler.files.yaml_loader import parse
from reconciler.model.values import Address, SecretRef, SecretValue
from tests.support.cli import write

WORKSPACE = """\
version: 1
env: [A, NAME, UNSET]
secrets: [X, Z]
"""
EXPORT = """\
batch_exports:
  lake:
    project: {id: 1}
    name: Lake
    interval: hour
    destination: {type: NoOp, config: {}}
"""


def problems_of(text: str | bytes) -> list[Diagnostic]:
    problems = DiagnosticCollector()
    parse(text if isinstance(text, bytes) else text.encode(), "f.yaml", problems)
    return list(problems.in_order())


def loaded(folder: Path, files: dict[str, str], environ: dict[str, str] | None = None, **more):
    write(folder, files)
    return load(
        folder,
        environment=more.get("environment"),
        environ=environ or {},
        options=LoadOptions(strict=more.get("strict", False)),
    )


def codes(folder: Path, files: dict[str, str], environ: dict[str, str] | None = None) -> set[str]:
    with pytest.raises(InvalidConfiguration) as told:
        loaded(folder, files, environ)
    return {each.code for each in told.value.diagnostics}


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\na: 2\n", "duplicate-key", (2, 1)),
        ("a: no\n", "ambiguous-boolean", (1, 4)),
        ("on: 1\n", "ambiguous-boolean", (1, 1)),
        ("a: 0123\n", "ambiguous-number", (1, 4)),
        ("a: 0o17\n", "ambiguous-number", (1, 4)),
        ("a: 12:30:45\n", "ambiguous-number", (1, 4)),
        ("a: 1_000\n", "ambiguous-number", (1, 4)),
        ("a: 1e3\n", "ambiguous-number", (1, 4)),
        ("a: 1.5e3\n", "ambiguous-number", (1, 4)),
        ("a: +.5\n", "ambiguous-number", (1, 4)),
        ("a: .inf\n", "ambiguous-number", (1, 4)),
        ("a: 1.0e+999\n", "ambiguous-number", (1, 4)),
        ("a: 9223372036854775808\n", "ambiguous-number", (1, 4)),
        ("a: -9223372036854775809\n", "ambiguous-number", (1, 4)),
        (f"a: {'9' * 5000}\n", "ambiguous-number", (1, 4)),
        ("a: !!null x\n", "unknown-tag", (1, 4)),
        ("a: !!bool x\n", "unknown-tag", (1, 4)),
        ("a: !!int '1'\n", "unknown-tag", (1, 4)),
        ("a: !!python/object:os.system x\n", "unknown-tag", (1, 4)),
        ("a:\n\tb: 1\n", "tab-indent", (2, 1)),
        ("a: 1\n---\nb: 2\n", "several-documents", (2, 1)),
        ("a: [1\n", "bad-yaml", (1, 6)),
        ("a: *nope\n", "unknown-alias", (1, 4)),
        ("a: &x [*x]\n", "recursive-alias", (1, 4)),
        ("1: x\n", "bad-key", (1, 1)),
        ("? [a]\n: x\n", "bad-key", (1, 3)),
        ("${var:x}: 1\n", "reference-in-key", (1, 1)),
        ("a:\n  <<: 3\n", "bad-merge", (2, 7)),
        ("a: \x07\n", "control-character", (1, 4)),
        ("a:\n  b: c # d\u2028  e: f\n", "ambiguous-yaml", (2, 11)),
        ("a: b # c\x85d\n", "ambiguous-yaml", (1, 9)),
        ("a: b # c\u2029 [\n", "ambiguous-yaml", (1, 9)),
        ("a: b # c\rd: e\n", "ambiguous-yaml", (1, 9)),
        ("# a\u2028b\nc: d\n", "ambiguous-yaml", (1, 4)),
        ("a: b\n# c\u2028d", "ambiguous-yaml", (2, 4)),
        ("a: b\u2028c: d\n", "ambiguous-yaml", (1, 5)),
        ("# c\ra: b\r", "ambiguous-yaml", (1, 4)),
        ("a: b # \x85 \n", "ambiguous-yaml", (1, 8)),
        ("a: 1\n\ufeffb: 2\n", "byte-order-mark", (2, 1)),
        ("a: 1\n\ufeff- b\n", "byte-order-mark", (2, 1)),
        (b"\xff\xfea\x00", "bad-encoding", (1, 1)),
        (b"\x00\x00\xfe\xff", "bad-encoding", (1, 1)),
        (b"a\x00:\x00", "bad-encoding", (1, 1)),
        (b"a: 1\nb: \xff\n", "bad-encoding", (2, 4)),
    ],
)
def test_a_surprise_of_yaml_is_told_with_its_place(text, code, place) -> None:
    found = problems_of(text)
    assert [each.code for each in found] == [code]
    assert found[0].at is not None
    assert (found[0].at.line, found[0].at.column) == place


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("+1.5", 1.5),
        ("1.5e+3", 1500.0),
        ("'1e3'", "1e3"),
        ("!!str 1", "1"),
        ("2026-01-01", "2026-01-01"),
        ("~", None),
        ("", None),
        ("True", True),
        ("now", "now"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_a_plain_value_is_what_every_reader_takes_it_for(text: str, value: object) -> None:
    problems = DiagnosticCollector()
    document = parse(f"a: {text}\n".encode(), "f", problems)
    assert problems.in_order() == ()
    assert document.value == {"a": value}


@pytest.mark.parametrize(
    "text",
    [
        "!!seq [" * 100_000,
        "a0: &a0 {}\n" + "\n".join(f"a{n}: &a{n} {{b: *a{n - 1}}}" for n in range(1, 2000)),
    ],
)
def test_deep_nesting_is_told(text: str) -> None:
    assert {each.code for each in problems_of(text)} == {"too-deep"}


def test_places_are_found_in_a_mapping_that_merges_itself() -> None:
    document = parse(b"a: &x\n  <<: *x\n  b: 1\n", "f", DiagnosticCollector())
    assert document.mark(("a", "b")).line == 3
    assert document.mark(("a", "c")).line == 1


def test_earlier_sources_of_a_merge_key_win() -> None:
    text = b"x: &x {a: 1}\ny: &y {<<: *x, b: 2}\nz:\n  <<: [*y, {a: 3, c: 4}]\n"
    document = parse(text, "f", DiagnosticCollector())
    assert document.value["z"] == {"b": 2, "a": 1, "c": 4}
    assert document.mark(("z", "a")).line == 1
    assert document.mark(("z", "c")).line == 4


def test_merge_keys_keep_their_places() -> None:
    problems = DiagnosticCollector()
    document = parse(b"x: &x\n  a: 1\n  b: 2\ny:\n  <<: *x\n  b: 3\n", "f", problems)
    assert document.value["y"] == {"a": 1, "b": 3}
    assert document.mark(("y", "a")).line == 2
    assert document.mark(("y", "b")).line == 6
    assert problems.in_order() == ()


@given(st.text(max_size=200))
def test_no_text_makes_the_loader_fail(text: str) -> None:
    problems_of(text.encode("utf-8", errors="surrogatepass"))


@given(st.binary(max_size=200))
def test_no_bytes_make_the_loader_fail(raw: bytes) -> None:
    problems_of(raw)


# Workspaces

ANCHORED = """\
projects: {web: {name: Web}}
batch_exports:
  lake: {<<: *export, name: Lake}
  pond: {<<: *export, name: Pond, destination: {type: S3, config: *config}}
"""


@pytest.mark.parametrize("defaults", ["", "defaults: {batch_export: {timezone: Europe/Berlin}}\n"])
def test_x15_anchors_has_a_place_for_the_anchors_of_a_file(tmp_path: Path, defaults: str) -> None:
    """X15: its value counts where an alias refers to it, and nowhere else."""
    anchors = """\
anchors:
  - &export {project: web, interval: day, destination: &none {type: NoOp}}
  - &config {bucket_name: "${var:bucket}", region: eu-central-1, prefix: p/}
  - {unknown: "${var:undefined}", projects: {other: {name: 1}}}
"""
    files = {
        "reconciler.yaml": """\
version: 1
anchors: {unknown: 1, of: &all {vars: {bucket: drop}}}
environments: {staging: *all, production: *all}
""",
        "a.yaml": f"{anchors}{defaults}{ANCHORED}",
        "b.yaml": f"anchors: {{a: 1}}\n{defaults}projects: {{app: {{name: App}}}}\n",
    }
    write(tmp_path, files)
    problems = load_all(tmp_path, environ={})
    assert [item.code for item in problems] == ["no-effect"] * bool(defaults)  # Of b.yaml.
    resources = load(tmp_path, environment="staging", environ={}).desired.resources
    assert sorted(map(str, resources)) == [
        *("batch_export.lake", "batch_export.pond", "project.app", "project.web"),
    ]
    lake, pond = (resources[Address("batch_export", key)].spec for key in ("lake", "pond"))
    assert (lake["interval"], lake["destination"]) == ("day", {"type": "NoOp"})
    assert pond["destination"]["config"]["bucket_name"] == "drop"
    assert lake.get("timezone") == ("Europe/Berlin" if defaults else None)


def test_x15_anchors_hides_no_mistake(tmp_path: Path) -> None:
    """X15: it is YAML as strict as elsewhere, and a misspelt name is a mistake."""
    files = {
        "reconciler.yaml": "version: 1\nanchor: {}\n",
        "a.yaml": "anchors: {x: &x no}\nprojects: {web: {name: *x}}\n",
        "b.yaml": "anchor: {}\nprojects: {app: {name: App}}\n",
        "c.yaml": "anchors: {x: &x 7}\nprojects: {late: {name: *x}}\n",
        "d.yaml": "anchors: &x D\nprojects: {d: {name: *x}}\n",
    }
    write(tmp_path, files)
    found = [(str(item.at), item.code, item.hint) for item in load_all(tmp_path, environ={})]
    assert found == [
        ("a.yaml:1:14", "ambiguous-boolean", "write false, or quote it: 'no'"),
        ("b.yaml:1:1", "unknown-field", "did you mean 'anchors'?"),
        ("c.yaml:1:14", "wrong-type", "quote it: '7'"),
        ("d.yaml:1:10", "wrong-type", "write a list: `- item` lines, or [item, item]"),
        ("reconciler.yaml:2:1", "unknown-field", "did you mean 'anchors'?"),
    ]


def test_x4_resources_of_one_environment_are_not_compared(tmp_path: Path) -> None:
    """X4: "differs between a and a", and a name that moves to another key in both."""
    service = "{base_url: 'https://eu.posthog.com', organization: 0188461e}"
    environments = f"version: 1\nenvironments:\n  a: {service}\n  b: {service}\n"
    twice = "projects:\n  one: {name: Web}\n  two: {name: Web, timezone: Europe/Berlin}\n"
    write(tmp_path, {"reconciler.yaml": environments, "a.yaml": twice})
    assert [item.code for item in load_all(tmp_path, environ={})] == ["same-name"]
    moved = "projects:\n  one: {name: Web, state: absent}\n  two: {name: Web}\n"
    write(tmp_path, {"a.yaml": moved})
    assert load_all(tmp_path, environ={}) == ()


def test_variables_environment_and_overrides_are_merged(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": """\
version: 1
defaults: {batch_export: {model: persons, interval: day}}
vars: {bucket: common, port: 5433}
environments:
  staging: {vars: {bucket: "${env:WHERE:-stage}-b"}}
  production: {}
env: [WHERE]
secrets: [U]
""",
        "a.yaml": """\
batch_exports:
  lake:
    project: {name: Web}
    name: Lake ${var:bucket}
    paused: false
    destination:
      type: Postgres
      config: {host: h, database: d, port: "${var:port}", user: "${secret:env:U}",
               password: "${secret:file:p}:${secret:env:U}"}
    overrides: {staging: {paused: true, destination: {config: {host: h2}}}}
""",
    }
    found = loaded(tmp_path, files, environment="staging")
    resource = found.desired.resources[Address("batch_export", "lake")]
    config = resource.spec["destination"]["config"]
    assert resource.name == "Lake stage-b"
    assert (resource.spec["model"], resource.spec["interval"]) == ("persons", "day")
    assert resource.spec["paused"] is True
    assert (config["host"], config["database"], config["port"]) == ("h2", "d", 5433)
    assert config["user"] == SecretRef.of("env", "U")
    assert str(config["password"]) == "${secret:file:p}:${secret:env:U}"
    assert resource.marks[("paused",)].line == 10
    assert resource.marks[("model",)].file == "reconciler.yaml"
    with pytest.raises(BadUsage, match="no environment selected"):
        load(tmp_path, environment=None, environ={})
    with pytest.raises(BadUsage, match="unknown environment 'stagin'") as told:
        load(tmp_path, environment="stagin", environ={})
    assert "did you mean 'staging'" in (told.value.hint or "")


@pytest.mark.parametrize("default", ["q", ""])
def test_an_unknown_default_is_reported_at_its_place(tmp_path: Path, default: str) -> None:
    text = f"version: 1\nenvironments: {{a: {{}}, b: {{}}}}\ndefault: '{default}'\n"
    write(tmp_path, {"reconciler.yaml": text})
    with pytest.raises(InvalidConfiguration) as refused:
        load(tmp_path, environment=None, environ={})
    (found,) = refused.value.diagnostics
    assert (found.code, str(found.at)) == ("unknown-environment", "reconciler.yaml:3:10")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("name: Lake", "name: no", "ambiguous-boolean"),
        ("name: Lake", "name: ${var:x}", "unknown-variable"),
        ("interval: hour", "interval: 1e3", "ambiguous-number"),
        ("interval: hour", "interval: hour\n    timezone: ${var:x}", "unknown-variable"),
        ("interval: hour", "interval: hour\n    start_at: 0123", "ambiguous-number"),
        ("interval: hour", "interval: hour\n    id: 99999999999999999999", "ambiguous-number"),
        ("interval: hour", "interval: hour\n    environments: [no]", "ambiguous-boolean"),
        ("{id: 1}", "no", "ambiguous-boolean"),
        ("{type: NoOp, config: {}}", "{type: no, config: {}}", "ambiguous-boolean"),
        ("{type: NoOp, config: {}}", "{type: NoOp, config: no}", "ambiguous-boolean"),
        (
            "{type: NoOp, config: {}}",
            "{type: HTTP, config: {url: https://u, token: 0o1}}",
            "ambiguous-number",
        ),
        ("{type: NoOp, config: {}}", '{type: "../workspace", config: {}}', "unknown-value"),
        ("{type: NoOp, config: {}}", '{type: "a\\0", config: {}}', "control-character"),
    ],
)
def test_one_mistake_is_told_once(tmp_path: Path, old: str, new: str, code: str) -> None:
    files = {"reconciler.yaml": WORKSPACE, "a.yaml": EXPORT.replace(old, new)}
    write(tmp_path, files)
    assert [each.code for each in load_all(tmp_path, environ={})] == [code]


@pytest.mark.parametrize(
    "field",
    [
        "model: hogql\n    hogql_modifiers: {a: '${secret:env:X}'}",
        "model: hogql\n    hogql_modifiers: {a: [{b: 'x${secret:env:X}'}]}",
        "model: hogql\n    primary_key: ['${secret:env:X}']",
        "filters: [{type: event, value: '${secret:env:X}'}]",
    ],
)
def test_a_secret_deep_inside_a_plain_field_is_told(tmp_path: Path, field: str) -> None:
    text = EXPORT.replace("interval: hour", f"interval: hour\n    {field}")
    found = codes(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    assert found - {"feature-flag"} == {"secret-in-plain-field"}


def test_secrets_of_a_type_that_is_not_known_are_no_mistake(tmp_path: Path) -> None:
    body = "{type: Kafka, config: {password: '${secret:env:X}', nested: {a: '${secret:env:Z}'}}}"
    text = EXPORT.replace("{type: NoOp, config: {}}", body)
    found = loaded(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    assert [each.code for each in found.diagnostics] == ["unknown-value"]


def test_a_variable_that_is_no_text_is_told(tmp_path: Path) -> None:
    text = EXPORT.replace("name: Lake", "name: ${env:NAME}")
    files = {"reconciler.yaml": WORKSPACE, "a.yaml": text}
    assert codes(tmp_path, files, {"NAME": "caf\udce9"}) == {"not-text"}


def test_what_hangs_on_a_variable_of_another_machine_is_not_judged(tmp_path: Path) -> None:
    fields = "start_at: ${env:A}\n    timezone: x-${env:A}\n    model: ${env:A}"
    text = EXPORT.replace(
        "interval: hour", f"interval: hour\n    {fields}\n    paused: ${{env:A}}1"
    )
    body = "{type: HTTP, config: {url: https://u, token: '${env:A}'}}"
    text = text.replace("{type: NoOp, config: {}}", body)
    write(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    found = load_all(tmp_path, environ={})
    assert {each.code for each in found} == {"wrong-type", "literal-secret"}


def test_a_shared_variable_keeps_its_value_where_a_literal_is_taken_out(tmp_path: Path) -> None:
    shared = EXPORT.replace("{type: NoOp, config: {}}", "{type: HTTP, config: '${var:web}'}")
    files = {
        "reconciler.yaml": "version: 1\npolicy: {allow_literal_secrets: true}\n"
        "vars: {web: {url: https://u, token: hunter2}}\n",
        "a.yaml": shared,
        "b.yaml": shared.replace("lake:", "other:").replace("name: Lake", "name: Other"),
    }
    found = loaded(tmp_path, files)
    secrets = [
        each.spec["destination"]["config"]["token"].sources[0].argument
        for each in found.desired.in_order()
    ]
    assert secrets == [
        "batch_export.lake:destination.config.token",
        "batch_export.other:destination.config.token",
    ]
    assert {found.secrets.literals[each].reveal() for each in secrets} == {"hunter2"}


def test_every_problem_of_every_file_is_told_at_once(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 2\npolicy: {prune: maybe}\nenvironments: {a: {base_ur: x}}\n",
        "a.yaml": EXPORT.replace("hour", "[]"),
        "b.yaml": EXPORT,
        "c.yaml": "projects: no\n",
    }
    found = codes(tmp_path, files)
    assert found >= {
        "not-allowed",
        "unknown-field",
        "wrong-type",
        "declared-twice",
        "ambiguous-boolean",
    }


def test_a_dollar_is_escaped_by_another(tmp_path: Path) -> None:
    files = {"reconciler.yaml": "version: 1\n", "a.yaml": EXPORT.replace("Lake", "$${x} $y")}
    assert loaded(tmp_path, files).desired.in_order()[0].name == "${x} $y"


def test_a_snippet_never_shows_a_secret(tmp_path: Path) -> None:
    secret = "hunter2hunter2"
    body = f"{{type: HTTP, config: {{url: https://u, tokn: 1, token: {secret}}}}}"
    files = {
        "reconciler.yaml": "version: 1\nenvironments: {a: {api_key: phx_hunter2hunter2}}\n",
        "a.yaml": EXPORT.replace("{type: NoOp, config: {}}", body),
        "b.yaml": f"batch_exports:\n  x:\n    private_key: |\n      {secret}\n\t{secret}\n",
        "c.yaml": "password: 0123\npassword: 0123\n",
    }
    with pytest.raises(InvalidConfiguration) as told:
        loaded(tmp_path, files)
    text = repr(told.value.diagnostics)
    assert secret not in text
    assert "0123" not in text
    assert {"literal-secret", "unknown-field"} <= {each.code for each in told.value.diagnostics}


def test_literal_secrets_are_taken_out_where_the_policy_allows_them(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 1\npolicy: {allow_literal_secrets: true}\n",
        "a.yaml": EXPORT.replace(
            "NoOp, config: {}", "HTTP, config: {url: https://u, token: hunter2}"
        ),
    }
    found = loaded(tmp_path, files)
    (resource,) = found.desired.in_order()
    argument = "batch_export.lake:destination.config.token"
    assert resource.spec["destination"]["config"]["token"] == SecretRef.of("literal", argument)
    assert found.secrets.literals[argument].reveal() == "hunter2"
    assert "hunter2" not in repr(found)


def test_a_key_without_text_does_not_stop_the_merge_with_defaults(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": "version: 1\ndefaults: {project: {timezone: UTC}}\n",
        "a.yaml": "projects: {web: {name: Web, '': {a: b}}}\n",
    }
    assert "unknown-field" in codes(tmp_path, files)


def test_policy_is_merged_and_knows_its_lines(tmp_path: Path) -> None:
    files = {
        "reconciler.yaml": """\
version: 1
policy: {prune: true, max_deletes: 20%}
environments:
  a:
    policy:
      max_deletes: 0
      allow_project_deletion: true
""",
        "web.yaml": "projects: {web: {name: Web}}\n",
    }
    policy = loaded(tmp_path, files).policy
    assert policy.prune
    assert policy.deletable == {"project"}
    assert policy.marks["max_deletes"].line == 6


def test_validating_all_environments_needs_no_variables_of_the_machine(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "reconciler.yaml": "version: 1\nenv: [U]\nenvironments:\n"
            "  a: {api_key: '${env:K}'}\n  b: {base_url: '${env:U}'}\n",
            "a.yaml": EXPORT,
        },
    )
    assert load_all(tmp_path, environ={}) == ()


def test_files_outside_the_workspace_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(EXPORT)
    folder = write(tmp_path / "w", {"reconciler.yaml": "version: 1\nresources: ['../*.yaml']\n"})
    assert "outside-workspace" in codes(folder, {})
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (folder / "reconciler.yaml").write_text("version: 1\n")
    assert codes(folder, {}) == {"unreadable-file"}


def test_a_secret_value_gives_nothing_away() -> None:
    secret = SecretValue("hunter2")
    assert "hunter2" not in f"{secret} {secret!r} {secret:>20}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        assert secret == "hunter2"
    with pytest.raises(TypeError):
        hash(secret)


def test_a_type_from_a_variable_may_be_the_same_one(tmp_path: Path) -> None:
    body = EXPORT.replace("{type: NoOp, config: {}}", "{type: '${var:type}', config: {}}")
    files = {
        "reconciler.yaml": "version: 1\nvars: {type: NoOp}\nenvironments:\n  a: {}\n"
        "  b: {vars: {type: FileDownload}}\n"
        "defaults: {batch_export: {destination: {type: NoOp, config: {arg: x}}}}\n",
        "a.yaml": body,
    }
    same, other = (loaded(tmp_path, files, environment=name).desired for name in ("a", "b"))
    destinations = [
        desired.resources[Address("batch_export", "lake")].spec["destination"]
        for desired in (same, other)
    ]
    assert destinations == [
        {"type": "NoOp", "config": {"arg": "x"}},
        {"type": "FileDownload", "config": {}},
    ]


def test_a_destination_of_another_type_is_not_merged_with_what_it_overrides(
    tmp_path: Path,
) -> None:
    text = (
        "batch_exports:\n"
        "  lake:\n"
        "    project: {id: 1}\n"
        "    name: Lake\n"
        "    interval: hour\n"
        "    destination:\n"
        "      type: S3\n"
        "      integration: 7\n"
        "      config: {bucket_name: b, region: r, prefix: p}\n"
        "    overrides:\n"
        "      default: {destination: {type: NoOp, config: {arg: x}}}\n"
    )
    found = loaded(tmp_path, {"reconciler.yaml": WORKSPACE, "a.yaml": text})
    (lake,) = found.desired.in_order()
    assert lake.spec["destination"] == {"type": "NoOp", "config": {"arg": "x"}}


def test_a_consequence_that_there_is_not_can_not_be_denied(tmp_path: Path) -> None:
    text = (
        "version: 1\npolicy: {deny: [history-lost]}\n"
        "environments: {a: {policy: {deny: [histry-lost]}}}\n"
    )
    write(tmp_path, {"reconciler.yaml": text})
    (told,) = load_all(tmp_path, environ={})
    assert (told.code, told.hint) == ("not-allowed", "did you mean 'history-lost'?")
    assert told.at is not None
    assert (told.at.line, told.at.column) == (3, 36)
