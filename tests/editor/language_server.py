"""A client of the YAML language server, as an editor: messages over its standard streams."""

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
from tests.support.limits import time_limit

PACKAGE = "yaml-language-server"
HOW_TO_INSTALL = (
    "npm install yaml-language-server@1.25.0, and set YAML_LANGUAGE_SERVER to its folder"
)


def server_command() -> list[str] | None:
    """Return the command that starts the server, or None if it is not installed."""
    node = shutil.which("node")
    folders = [os.environ.get("YAML_LANGUAGE_SERVER"), ROOT / "node_modules" / PACKAGE]
    for folder in folders:
        if node and folder and (program := Path(folder) / "bin" / PACKAGE).is_file():
            return [node, str(program), "--stdio"]
    program = shutil.which(PACKAGE)
    return [program, "--stdio"] if program and node else None


@dataclass
class LanguageServer:
    """A running server. A finding is (line from 1, message), as an editor shows it."""

    process: subprocess.Popen[bytes]
    _requests: int = 0
    _published: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def findings(self, path: Path) -> list[tuple[int, str]]:
        """Return what the editor underlines in a file."""
        uri = path.as_uri()
        document = {
            "uri": uri,
            "languageId": "yaml",
            "version": 1,
            "text": path.read_text(encoding="utf-8"),
        }
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        while uri not in self._published:
            self._handle(self._receive())
        return sorted(
            (finding["range"]["start"]["line"] + 1, str(finding["message"]))
            for finding in self._published[uri]
        )

    def completions(self, path: Path, *, line: int, column: int) -> list[str]:
        """Return what the editor offers at a place, counted from 1."""
        position = {"line": line - 1, "character": column - 1}
        uri = {"uri": path.as_uri()}
        answer = self.ask("textDocument/completion", {"textDocument": uri, "position": position})
        items = answer["items"] if isinstance(answer, dict) else answer
        return sorted(str(item["label"]) for item in items)

    def hover(self, path: Path, *, line: int, column: int) -> str:
        """Return what the editor shows under the pointer at a place, counted from 1."""
        position = {"line": line - 1, "character": column - 1}
        uri = {"uri": path.as_uri()}
        answer = self.ask("textDocument/hover", {"textDocument": uri, "position": position})
        return str(answer["contents"]["value"])

    def ask(self, method: str, params: Any) -> Any:
        """Send a request and return its result."""
        self._requests += 1
        number = self._requests
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            self._handle(message)

    def _handle(self, message: dict[str, Any]) -> None:
        if message.get("method") == "textDocument/publishDiagnostics":
            self._published[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif message.get("method") == "workspace/configuration":
            result = [self._settings(item["section"]) for item in message["params"]["items"]]
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
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


@contextmanager
def language_server(command: list[str]) -> Iterator[LanguageServer]:
    """Run the server. It knows only the schemas that files name."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process, time_limit(process):
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
