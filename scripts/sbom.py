"""Print the software bill of materials of the installed reconciler: CycloneDX 1.6 as JSON.

It lists what reconciler needs at runtime, as it is installed in this environment. What is needed
only for development is left out. The same environment gives the same bytes.
"""

from __future__ import annotations

import json
import sys
from email.message import Message
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.installed import NAME, closure  # noqa: E402 - found beside this folder


def bill() -> dict[str, Any]:
    """Return the bill of materials."""
    entries = closure("")
    refs = {
        name: f"pkg:pypi/{name}@{entry.distribution.version}" for name, entry in entries.items()
    }
    components = {
        name: _component(name, refs[name], entry.distribution.metadata, entry.distribution.version)
        for name, entry in entries.items()
    }
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**components.pop(NAME), "type": "application"}},
        "components": list(components.values()),
        "dependencies": [
            {"ref": refs[name], "dependsOn": sorted(refs[needed] for needed in entry.needs)}
            for name, entry in entries.items()
        ],
    }


def _component(name: str, ref: str, metadata: Any, version: str) -> dict[str, Any]:
    component = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    return {**component, **_licences(metadata)}


def _licences(metadata: Message) -> dict[str, Any]:
    """Return the licence of a distribution: an SPDX expression, else names from classifiers."""
    if expression := metadata.get("License-Expression"):
        return {"licenses": [{"expression": expression}]}
    names = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License :: ")
    ]
    return {"licenses": [{"license": {"name": name}} for name in names]} if names else {}


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=2)
    sys.stdout.write("\n")
