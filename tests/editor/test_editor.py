"""The schemas in a language server: findings in broken files, and none in examples."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.schemas import known_schema
from tests.conftest import ROOT
from tests.support.limits import TIMEOUT, time_limit

NODE = shutil.which("node")
FOLDER = Path(os.environ.get("YAML_LANGUAGE_SERVER", ROOT / "node_modules/yaml-language-server"))
PROGRAM = next(
    (
        Path(path).resolve()
        for path in (FOLDER / "bin/yaml-language-server", shutil.which("yaml-language-server"))
        if path and Path(path).exists()
    ),
    None,
)
if NODE is None or PROGRAM is None:
    pytest.skip(
        "the YAML language server is not installed: npm install yaml-language-server@1.25.0, "
        "and set YAML_LANGUAGE_SERVER to its folder",
        allow_module_level=True,
    )

SCHEMAS = ROOT / "schemas/editor"
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
HEAD = f"# yaml-language-server: $schema={SCHEMAS.as_uri()}/{{}}.schema.json\n"
WORKSPACE, LAKE = (
    f"{HEAD.format('workspace')}version: 1\npolicy:\n  ",
    f"{HEAD.format('resources')}batch_exports:\n  lake:\n    ",
)
S3 = f"{LAKE}destination:\n      type: S3\n      config:\n        "
BIGQUERY = (
    f"{LAKE}destination:\n      type: BigQuery\n      config:\n        dataset_id: d\n        "
)
INHERITED = f"""\
{HEAD.format("resources")}defaults:
  batch_export:
    interval: hour
    environments: [a]
    destination: {{type: BigQuery, config: {{datasetid: d}}}}
batch_exports:
  tables: {{project: web, name: Tables, destination: {{config: {{table: t}}}}}}
  lake: {{project: web, destination: {{type: S3, config: {{prefix: p}}}}}}
  more:
    destination:
      config:
        """
INTERVALS = '"hour", "day", "week", "every 5 minutes", "every 15 minutes"'
DESTINATION = known_schema("batch_export")["properties"]["destination"]
TYPES = ", ".join(f'"{name}"' for name in DESTINATION["properties"]["type"]["x-open-enum"])
TEXTS = {
    "the type of the defaults of its file": INHERITED,
    "a secret that is written out": f"{S3}aws_secret_access_key: abc",
}
EXPECTED = {
    "the type of the defaults of its file": [
        (5, "Property environments is not allowed."),
        (6, "Property datasetid is not allowed."),
        (8, "Property table is not allowed."),
    ],
    "a secret that is written out": [(7, "write a reference such as ${secret:env:NAME}")],
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


class LanguageServer:
    """A running server, as an editor has it: messages over its standard streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._requests = 0
        self._published: dict[str, list[dict[str, Any]]] = {}
        capabilities = {"workspace": {"configuration": True}}
        root = {"processId": None, "rootUri": ROOT.as_uri(), "capabilities": capabilities}
        self._ask("initialize", **root)
        self._send(method="initialized", params={})

    def findings(self, path: Path) -> list[tuple[int, str]]:
        """Return what the editor underlines in a file: the line from 1, and the message."""
        uri, text = path.as_uri(), path.read_text(encoding="utf-8")
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        while uri not in self._published:
            self._handle(self._receive())
        return sorted(
            (finding["range"]["start"]["line"] + 1, str(finding["message"]))
            for finding in self._published[uri]
        )

    def at_the_end(self, method: str, path: Path, text: str) -> Any:
        """Return what the editor offers or shows at the end of a text."""
        path.write_text(f"{text}\n", encoding="utf-8")
        self.findings(path)
        position = {"line": text.count("\n"), "character": len(text.rpartition("\n")[2])}
        document = {"uri": path.as_uri()}
        return self._ask(f"textDocument/{method}", textDocument=document, position=position)

    def _ask(self, method: str, **params: Any) -> Any:
        self._requests += 1
        self._send(id=self._requests, method=method, params=params)
        while True:
            message = self._receive()
            if message.get("id") == self._requests and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params")
        if method == "textDocument/publishDiagnostics":
            self._published[params["uri"]] = params["diagnostics"]
        elif "id" in message:
            # It knows only the schemas that files name.
            yaml = {"validate": True, "schemaStore": {"enable": False, "url": ""}}
            sections = [item["section"] for item in params.get("items", ())] if params else []
            result = [yaml if section == "yaml" else {} for section in sections]
            self._send(id=message["id"], result=result)

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b"\n"):
            assert line, "the language server ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


@pytest.fixture(scope="module")
def server() -> Iterator[LanguageServer]:
    command, pipe = [str(NODE), str(PROGRAM), "--stdio"], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process, time_limit(process):
        try:
            yield LanguageServer(process)
        finally:
            process.kill()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_examples_have_no_findings_and_refer_to_their_schema(
    server: LanguageServer, tmp_path: Path, path: Path
) -> None:
    assert server.findings(path) == []
    for folder in ("examples", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    wrong = tmp_path / path.relative_to(ROOT)
    wrong.write_text(f"{wrong.read_text(encoding='utf-8')}nonsense: 1\n", encoding="utf-8")
    messages = [message for _, message in server.findings(wrong)]
    assert messages == ["Property nonsense is not allowed."]


@pytest.mark.parametrize("name", EXPECTED)
def test_broken_files_have_findings_at_the_broken_places(
    server: LanguageServer, tmp_path: Path, name: str
) -> None:
    path = Path(__file__).parent / "broken" / name
    if name in TEXTS:
        path = tmp_path / "file.yaml"
        path.write_text(f"{TEXTS[name]}\n", encoding="utf-8")
    assert server.findings(path) == EXPECTED[name]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BIGQUERY, {"project_id", "table_id", "use_json_type", "private_key"}),
        (INHERITED, {"project_id", "table_id"}),
        (f"{LAKE}interval: ", {"hour", "day", "week"}),
        (f"{LAKE}lifecycle:\n      ignore_changes:\n        - ", {"destination.config.prefix"}),
        (f"{LAKE}timezone: ", {"UTC", "Europe/Berlin", "America/Sao_Paulo"}),
        (f"{S3}aws_access_key_id: ", {"${secret:env:NAME}"}),
        (f"{WORKSPACE}prune: ", {"true", "false"}),
        (f"{WORKSPACE}deny:\n    - ", {"history-lost"}),
        (f"{WORKSPACE}attempt:\n    - ", {"not-accepted"}),
    ],
)
def test_configuration_wish_completion(
    server: LanguageServer, tmp_path: Path, text: str, expected: set[str]
) -> None:
    answer = server.at_the_end("completion", tmp_path / "file.yaml", text)
    offered = {item["label"] for item in answer["items"]}
    assert expected <= offered
    assert "bucket_name" not in offered


def test_configuration_wish_hover_repeats_no_examples(
    server: LanguageServer, tmp_path: Path
) -> None:
    shown = server.at_the_end("hover", tmp_path / "a.yaml", f"{LAKE}destination:\n      type: S3")
    assert "Type of the destination" in shown["contents"]["value"]
    assert "Example" not in shown["contents"]["value"]


@pytest.mark.parametrize("name", ["workspace", "resources"])
def test_configuration_wish_schemas_pass_a_strict_validator(name: str) -> None:
    script = """
        const Ajv = require("ajv/dist/2020").default;
        const keywords = ["patternErrorMessage", "errorMessage", "defaultSnippets"];
        const ajv = new Ajv({strict: true, allowUnionTypes: true, keywords});
        ajv.compile(JSON.parse(require("fs").readFileSync(process.argv[1])));
    """
    # npm installs ajv beside the server.
    assert PROGRAM is not None
    packages = PROGRAM.parents[2]
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
