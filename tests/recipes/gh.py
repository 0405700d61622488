"""A stand-in for the command line of GitHub, on a JSON file: comments, issues, pull requests.

It filters with jq, as the real one does. Every other call is an error, so that a recipe cannot call
something that no test knows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

BOT = "github-actions[bot]"


def _main(words: list[str]) -> int:
    file = Path(os.environ["FORGE"])
    state = json.loads(file.read_text())
    options = _options(words)
    code = _call(words, options, state)
    file.write_text(json.dumps(state))
    return code


def _call(words: list[str], options: dict[str, str], state: dict[str, Any]) -> int:
    match words:
        case ["run", "download", *_]:
            artifact = Path(state["artifacts"], options["name"])
            if not artifact.exists():
                return 1
            shutil.copytree(artifact, options["dir"])
        case ["api", "--paginate", *_]:
            _print(state["comments"], options["jq"])
        case ["api", "--method", "POST", *_]:
            state["comments"].append(
                {"id": len(state["comments"]), "user": {"login": BOT}, "body": _body(options)}
            )
        case ["api", "--method", "PATCH", path, *_]:
            state["comments"][int(path.rpartition("/")[2])]["body"] = _body(options)
        case ["label", "create", *_]:
            pass
        case ["issue" | "pr" as kind, "list", *_]:
            items = [
                {"isCrossRepository": False, **item}
                for item in state[kind]
                if item["state"] == "open"
            ]
            _print(items, options["jq"])
        case ["issue" | "pr" as kind, "create", *_]:
            number = len(state[kind]) + 1
            state[kind].append({"number": number, "state": "open", **options})
        case ["issue" | "pr" as kind, "edit", number, *_]:
            state[kind][int(number) - 1].update(options)
        case ["issue" | "pr" as kind, "close", number, *_]:
            state[kind][int(number) - 1]["state"] = "closed"
        case _:
            sys.stderr.write(f"unknown call: {words}\n")
            return 1
    return 0


def _options(words: list[str]) -> dict[str, str]:
    """Return the options by name; of a file its text."""
    options = {
        word[2:]: value
        for word, value in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("--")
    }
    if "body-file" in options:
        options["body"] = Path(options.pop("body-file")).read_text()
    return options


def _body(options: dict[str, str]) -> str:
    return Path(options["field"].removeprefix("body=@")).read_text()


def _print(items: list[dict[str, Any]], expression: str) -> None:
    subprocess.run(
        ["jq", "--raw-output", expression], input=json.dumps(items), text=True, check=True
    )


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
