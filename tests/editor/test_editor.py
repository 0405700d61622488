"""The schemas in a language server: findings in broken files, and none in examples."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.schemas import known_schema
from tests.conftest import ROOT
from tests.editor.language_server import (
    HOW_TO_INSTALL,
    LanguageServer,
    language_server,
    server_command,
)
from tests.support.limits import TIMEOUT

SCHEMAS = ROOT / "schemas/editor"
BROKEN = Path(__file__).parent / "broken"
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))

if server_command() is None:
    pytest.skip(
        f"the YAML language server is not installed: {HOW_TO_INSTALL}", allow_module_level=True
    )

INTERVALS = '"hour", "day", "week", "every 5 minutes", "every 15 minutes"'
TYPES = ", ".join(
    f'"{name}"'
    for name in known_schema("batch_export")["properties"]["destination"]["properties"]["type"][
        "x-open-enum"
    ]
)
EXPECTED = {
    "unknown-fields.yaml": [
        (10, "Property buckett_name is not allowed."),
        (13, "Property host is not allowed."),
        (16, "Property bucket is not allowed."),
        (17, "Property protected is not allowed."),
    ],
    "wrong-values.yaml": [
        (4, 'Incorrect type. Expected "string".'),
        (5, "Value is above the maximum of 1."),
        (6, "must be a boolean, or a reference such as ${var:NAME}"),
        (7, "must be a list, or a reference such as ${var:NAME}"),
        (8, 'Value is not accepted. Valid values: "present", "absent".'),
        (13, "Value is above the maximum of 23."),
        (14, "use ISO 8601, such as 2026-01-31T00:00:00Z"),
        (17, 'Incorrect type. Expected "string".'),
        (17, "must be a whole number, or a reference such as ${var:NAME}"),
        (19, "must be a boolean, or a reference such as ${var:NAME}"),
        (21, f"Value is not accepted. Valid values: {INTERVALS}."),
        (22, "use a name such as Europe/Berlin or UTC, or a reference such as ${var:NAME}"),
        (24, f"Value is not accepted. Valid values: {TYPES}."),
    ],
    "reconciler.yaml": [
        (2, "Value must be 1."),
        (4, 'Incorrect type. Expected "string".'),
        (4, "Property adress is not allowed."),
        (5, "Property colour is not allowed."),
        (6, 'Incorrect type. Expected "boolean".'),
        (6, 'String does not match the pattern of "^[0-9]+(\\.[0-9]+)?%$".'),
        (8, "Property base_uri is not allowed."),
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    command = server_command()
    assert command is not None
    with language_server(command) as running:
        yield running


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_have_no_findings(server: LanguageServer, path: Path) -> None:
    assert server.findings(path) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_refer_to_their_schema(server: LanguageServer, tmp_path: Path, path: Path) -> None:
    for folder in ("examples", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    wrong = tmp_path / path.relative_to(ROOT)
    wrong.write_text(f"{wrong.read_text(encoding='utf-8')}nonsense: 1\n", encoding="utf-8")
    messages = [message for _, message in server.findings(wrong)]
    assert messages == ["Property nonsense is not allowed."]


@pytest.mark.parametrize("name", EXPECTED)
def test_broken_files_have_findings_at_the_broken_places(server: LanguageServer, name: str) -> None:
    assert server.findings(BROKEN / name) == EXPECTED[name]


def test_completion_knows_the_type_of_the_destination(
    server: LanguageServer, tmp_path: Path
) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(
        f"# yaml-language-server: $schema={(SCHEMAS / 'resources.schema.json').as_uri()}\n"
        "batch_exports:\n"
        "  tables:\n"
        "    destination:\n"
        "      type: BigQuery\n"
        "      config:\n"
        "        dataset_id: d\n"
        "        \n",
        encoding="utf-8",
    )
    server.findings(path)
    offered = server.completions(path, line=8, column=9)
    assert {"project_id", "table_id", "use_json_type", "private_key"} <= set(offered)
    assert "bucket_name" not in offered


def test_a_resource_has_the_type_of_the_defaults_of_its_file(
    server: LanguageServer, tmp_path: Path
) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(
        f"# yaml-language-server: $schema={(SCHEMAS / 'resources.schema.json').as_uri()}\n"
        "defaults:\n"
        "  batch_export:\n"
        "    interval: hour\n"
        "    environments: [a]\n"
        "    destination: {type: BigQuery, config: {datasetid: d}}\n"
        "batch_exports:\n"
        "  tables: {project: web, name: Tables, destination: {config: {table: t}}}\n"
        "  lake: {project: web, destination: {type: S3, config: {prefix: p}}}\n"
        "  more:\n"
        "    destination:\n"
        "      config:\n"
        "        \n",
        encoding="utf-8",
    )
    assert server.findings(path) == [
        (5, "Property environments is not allowed."),
        (6, "Property datasetid is not allowed."),
        (8, "Property table is not allowed."),
    ]
    offered = server.completions(path, line=13, column=9)
    assert {"project_id", "table_id"} <= set(offered)
    assert "bucket_name" not in offered


def test_completion_offers_known_values(server: LanguageServer, tmp_path: Path) -> None:
    path = tmp_path / "lake.yaml"
    path.write_text(
        f"# yaml-language-server: $schema={(SCHEMAS / 'resources.schema.json').as_uri()}\n"
        "batch_exports:\n"
        "  lake:\n"
        "    interval: \n",
        encoding="utf-8",
    )
    server.findings(path)
    assert {"hour", "day", "week"} <= set(server.completions(path, line=4, column=15))


RESOURCE_HEAD = f"# yaml-language-server: $schema={(SCHEMAS / 'resources.schema.json').as_uri()}\n"
WORKSPACE_HEAD = f"# yaml-language-server: $schema={(SCHEMAS / 'workspace.schema.json').as_uri()}\n"
LAKE = f"{RESOURCE_HEAD}batch_exports:\n  lake:\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{WORKSPACE_HEAD}version: 1\npolicy:\n  prune: ", {"true", "false"}),
        (f"{WORKSPACE_HEAD}version: 1\npolicy:\n  deny:\n    - ", {"history-lost"}),
        (f"{WORKSPACE_HEAD}version: 1\npolicy:\n  attempt:\n    - ", {"not-accepted"}),
        (
            f"{LAKE}    lifecycle:\n      ignore_changes:\n        - ",
            {"interval", "destination.config.prefix"},
        ),
        (f"{LAKE}    timezone: ", {"UTC", "Europe/Berlin", "America/Sao_Paulo"}),
        (
            f"{LAKE}    destination:\n      type: S3\n      config:\n        aws_access_key_id: ",
            {"${secret:env:NAME}"},
        ),
    ],
)
def test_configuration_wish_completion(
    server: LanguageServer, tmp_path: Path, text: str, expected: set[str]
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(f"{text}\n", encoding="utf-8")
    server.findings(path)
    line = text.count("\n") + 1
    column = len(text.rpartition("\n")[2]) + 1
    assert expected <= set(server.completions(path, line=line, column=column))


def test_configuration_wish_a_secret_that_is_written_out_is_marked(
    server: LanguageServer, tmp_path: Path
) -> None:
    destination = "    destination:\n      type: S3\n      config:\n"
    path = tmp_path / "secret.yaml"
    path.write_text(f"{LAKE}{destination}        aws_secret_access_key: abc\n", encoding="utf-8")
    assert server.findings(path) == [(7, "write a reference such as ${secret:env:NAME}")]


def test_configuration_wish_hover_repeats_no_examples(
    server: LanguageServer, tmp_path: Path
) -> None:
    path = tmp_path / "hover.yaml"
    path.write_text(f"{LAKE}    destination:\n      type: S3\n", encoding="utf-8")
    server.findings(path)
    shown = server.hover(path, line=5, column=9)
    assert "Type of the destination" in shown
    assert "Example" not in shown


@pytest.mark.parametrize("name", ["workspace", "resources"])
def test_configuration_wish_schemas_pass_a_strict_validator(name: str) -> None:
    command = server_command()
    assert command is not None
    script = """
        const Ajv = require("ajv/dist/2020").default;
        const keywords = ["patternErrorMessage", "errorMessage", "defaultSnippets"];
        const ajv = new Ajv({strict: true, allowUnionTypes: true, keywords});
        ajv.compile(JSON.parse(require("fs").readFileSync(process.argv[1])));
    """
    # npm installs ajv beside the server, to which its command links.
    packages = Path(command[-2]).resolve().parents[2]
    if not (packages / "ajv").is_dir():
        pytest.skip("ajv is installed with the language server by npm")
    checked = subprocess.run(
        ["node", "-e", script, SCHEMAS / f"{name}.schema.json"],
        env={"PATH": os.environ["PATH"], "NODE_PATH": str(packages)},
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr.decode()
