"""A client of the YAML language server, as an editor is one: messages over its standard streams."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

PACKAGE = "yaml-language-server"
TOLD = "npm install yaml-language-server@1.25.0, and name its folder in YAML_LANGUAGE_SERVER"


def server_command() -> list[str] | None:
    """How to start it, None where it is not there."""
    node = shutil.which("node")
    folders = [os.environ.get("YAML_LANGUAGE_SERVER"), ROOT / "node_modules" / PACKAGE]
    for folder in folders:
        if node and folder and (program := Path(folder) / "bin" / PACKAGE).is_file():
            return [node, str(program), "--stdio"]
    program = shutil.which(PACKAGE)
    return [program, "--stdio"] if program and node else None


@dataclass
class LanguageServer:
    """A running server. Findings are (line from 1, message), as an editor shows them."""

    process: subprocess.Popen[bytes]
    _asked: int = 0
    _found: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def findings(self, path: Path) -> list[tuple[int, str]]:
        """What the editor would underline in a file."""
        uri = path.as_uri()
        document = {
            "uri": uri,
            "languageId": "yaml",
            "version": 1,
            "text": path.read_text(encoding="utf-8"),
        }
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        while uri not in self._found:
            self._handle(self._receive())
        return sorted(
            (each["range"]["start"]["line"] + 1, str(each["message"])) for each in self._found[uri]
        )

    def completions(self, path: Path, *, line: int, column: int) -> list[str]:
        """What the editor would offer at a place, counted from 1."""
        position = {"line": line - 1, "character": column - 1}
        uri = {"uri": path.as_uri()}
        answer = self.ask("textDocument/completion", {"textDocument": uri, "position": position})
        items = answer["items"] if isinstance(answer, dict) else answer
        return sorted(str(each["label"]) for each in items)

    def ask(self, method: str, params: Any) -> Any:
        """A request and its result."""
        self._asked += 1
        asked = self._asked
        self._send({"id": asked, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == asked and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            self._found[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            result = [self._settings(each["section"]) for each in message["params"]["items"]]
            self._send({"id": message["id"], "result": result})
        elif "id" in message and "method" in message:
            self._send({"id": message["id"], "result": None})

    def _settings(self, section: str) -> Any:
        store = {"enable": False, "url": ""}
        return {"validate": True, "schemaStore": store} if section == "yaml" else {}

    def notify(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        stream = self.process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()) not in (b"\r\n", b"\n"):
            assert line, "the language server ended"
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        found: dict[str, Any] = json.loads(stream.read(length))
        return found


@contextmanager
def language_server(command: list[str]) -> Iterator[LanguageServer]:
    """Start it, and end it. It knows no schema but those that files name."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            server = LanguageServer(process)
            capabilities = {"workspace": {"configuration": True}}
            root = {"processId": None, "rootUri": ROOT.as_uri(), "capabilities": capabilities}
            server.ask("initialize", root)
            server.notify("initialized", {})
            server.notify("workspace/didChangeConfiguration", {"settings": None})
            yield server
        finally:
            process.kill()
