"""The pages that show how to work run as printed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, StartService
from tests.support.tours import Tour

_LAKE = {
    "bucket_name": "acme",
    "region": "eu-central-1",
    "aws_access_key_id": "AKIA1",
    "aws_secret_access_key": "s3cr3t-of-the-lake",
}


def _export(name: str, interval: str, prefix: str) -> dict[str, object]:
    destination = {"type": "S3", "config": {**_LAKE, "prefix": prefix}}
    return {"name": name, "interval": interval, "destination": destination}


_MANUAL = [
    {
        "name": "Web shop",
        "timezone": "Europe/Berlin",
        "batch_exports": [
            _export("Orders to the lake", "hour", "orders/"),
            _export("Carts to the lake", "day", "carts/"),
        ],
    },
    {
        "name": "Back office",
        "batch_exports": [
            {"name": "Tickets", "interval": "day", "destination": {"type": "NoOp", "config": {}}}
        ],
    },
]
_ADOPTED = {
    "organizations": [{"name": "Acme", "projects": _MANUAL}],
    "keys": [{"value": "phx_tours", "scopes": ["project:read", "batch_export:read"]}],
}


@pytest.mark.parametrize(
    ("page", "seed", "options"),
    [
        ("quickstart", None, ()),
        ("quickstart", None, ("--dialect", "2025")),
        ("quickstart", None, ("--dialect", "2026")),
        ("read-a-plan", None, ()),
        ("output", None, ()),
        ("adopt", _ADOPTED, ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_issue_32_every_block_of_the_page_runs(
    page: str,
    seed: dict[str, object] | None,
    options: tuple[str, ...],
    service_of: StartService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    service = service_of(seed, *options)
    tour = Tour(tmp_path, service.environ(), "http://127.0.0.1:8010")
    tour.follow((ROOT / f"docs/{page}.md").read_text(encoding="utf-8"))


def test_apply_p2_the_practice_of_operations_runs_as_printed(
    service_of: StartService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/on-call.md").read_text(encoding="utf-8")
    section = page.partition("\n## Practise operations\n")[2].partition("\n## ")[0]
    seed = yaml.safe_load(section.partition("```yaml\n")[2].partition("```")[0])
    service = service_of(seed, "--dialect", "2026")
    tour = Tour(tmp_path, service.environ(), "http://127.0.0.1:8010")
    tour.follow(section)
    assert tour.code == 0
