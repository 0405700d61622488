"""The output of `show NAME`, which is a valid file with the same values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from reconciler.commands.show import resolved
from reconciler.commands.workspace import Runtime, Workspace
from reconciler.files.loading import load
from reconciler.model.values import Address
from tests.support.cli import write
from tests.support.reports import written
from tests.support.worlds import NOW

HERE = Path(__file__).parent / "resolved"
ADDRESS = "batch_export.web-events-s3"
FORMATS = {
    "json": partial(written, "resolved", "json"),
    "txt": partial(written, "resolved", "text"),
}


def _rendered(environment: str, address: str = ADDRESS, *, output_format: str = "txt") -> str:
    workspace = Workspace(
        HERE / "workspace",
        environment,
        trust_workspace=True,
        runtime=Runtime(environ={}, now=lambda: NOW),
    )
    resource, _ = resolved(workspace, address)
    return FORMATS[output_format](resource)


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        ("production.txt", "production", ADDRESS),
        ("staging.txt", "staging", ADDRESS),
        ("project.json", "production", "project.web"),
    ],
)
def test_a_resolved_resource_reads_as_expected(
    name: str, environment: str, address: str, golden: Callable[[Path, str], None]
) -> None:
    output_format = name.rpartition(".")[2]
    golden(HERE / "expected" / name, _rendered(environment, address, output_format=output_format))


@pytest.mark.parametrize("environment", ["staging", "production"])
@pytest.mark.parametrize("address", [ADDRESS, "project.web"])
def test_the_text_is_a_file_with_the_same_values(
    environment: str, address: str, tmp_path: Path
) -> None:
    files = {
        "reconciler.yaml": "version: 1\nsecrets: [AWS_KEY, STAGING_AWS]\n",
        "a.yaml": _rendered(environment, address),
    }
    if address == ADDRESS:
        files["b.yaml"] = _rendered(environment, "project.web")
    again = load(write(tmp_path, files), environment=None, environ={})
    before = load(HERE / "workspace", environment=environment, environ={}).desired.resources[
        Address.parse(address)
    ]
    after = again.desired.resources[Address.parse(address)]
    assert (after.spec, after.parent, after.state) == (before.spec, before.parent, before.state)
    assert (after.lifecycle, after.secret_version) == (before.lifecycle, before.secret_version)
