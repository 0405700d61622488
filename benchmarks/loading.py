"""Measure loading: 10,000 batch exports in 200 files, checked for one environment.

Run: python benchmarks/loading.py. Prints the CPU time of the load, its ratio to composing the same
text with PyYAML's C parser and the garbage collector paused, and the share of each stage. Both are
measured alternately in the same run. The aim is a ratio of at most 3.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import DiagnosticCollector
from reconciler.kinds import all_kinds
from reconciler.workspace import FolderSource, Loaded, load
from reconciler.workspace.checks.consistency import check_consistency
from reconciler.workspace.checks.relations import ResolvedWorkspace
from reconciler.workspace.checks.values import check_fields
from reconciler.workspace.declarations import declarations
from reconciler.workspace.declared_names import declared_names
from reconciler.workspace.layers import EnvironmentContext, filled, managed_fields
from reconciler.workspace.origins import variable_places
from reconciler.workspace.references import References
from reconciler.workspace.schema.validation import check
from reconciler.workspace.sources import WORKSPACE_FILE
from reconciler.workspace.workspace_file import read_workspace, variables_of
from reconciler.workspace.yaml.construct import construct
from reconciler.workspace.yaml.nodes import compose

EXPORTS = 10_000
FILES = 200
ROUNDS = 5
AIM = 3.0
ENVIRONMENT = "production"
ENVIRON = {"API_KEY": "benchmark"}

WORKSPACE = """\
version: 1
resources: ["projects.yaml", "exports/*.yaml"]
defaults:
  batch_export: {model: events, interval: hour}
environments:
  production:
    base_url: https://eu.example.com
    organization: 0188461e-55a4-0000-1cb3-0b1d3b6c6ac0
    api_key: ${env:API_KEY}
    vars: {bucket: acme-prod, region: eu-central-1, warehouse: ANALYTICS}
  staging:
    vars: {bucket: acme-staging, region: eu-central-1, warehouse: STAGING}
secrets:
  - AWS_ACCESS_KEY_ID
  - AWS_SECRET_ACCESS_KEY
  - PG_PASSWORD
  - PG_USER
  - SNOWFLAKE_PASSWORD
  - SNOWFLAKE_USER
"""

S3 = """\
  events-{number:05}:
    project: web-{project}
    name: Events {number}
    paused: false
    start_at: 2026-01-01T00:00:00Z
    destination:
      type: S3
      config:
        bucket_name: ${{var:bucket}}
        region: ${{var:region}}
        prefix: web/{number}/
        file_format: Parquet
        compression: zstd
        aws_access_key_id: ${{secret:env:AWS_ACCESS_KEY_ID}}
        aws_secret_access_key: ${{secret:env:AWS_SECRET_ACCESS_KEY}}
        exclude_events: [$pageleave, $autocapture]
    lifecycle: {{protect: true}}
"""
SNOWFLAKE = """\
  # Persons, every night.
  persons-{number:05}:
    project: web-{project}
    name: "Persons {number}"
    model: persons
    interval: day
    timezone: Europe/Berlin
    destination:
      type: Snowflake
      config:
        account: acme-eu
        database: analytics
        warehouse: ${{var:warehouse}}
        schema: public
        table_name: persons_{number}
        user: ${{secret:env:SNOWFLAKE_USER}}
        password: ${{secret:env:SNOWFLAKE_PASSWORD}}
    overrides:
      staging: {{paused: true}}
"""
POSTGRES = """\
  mirror-{number:05}:
    project: web-{project}
    name: Mirror {number}
    interval: week
    destination:
      type: Postgres
      config:
        host: db-{project}.example.com
        port: 5432
        database: mirror
        schema: public
        table_name: events_{number}
        has_self_signed_cert: false
        user: ${{secret:env:PG_USER}}
        password: ${{secret:env:PG_PASSWORD}}
    environments: [staging, production]
"""
SHAPES = (S3, SNOWFLAKE, S3, POSTGRES)


def write_workspace(folder: Path) -> int:
    """Write the workspace; return the number of bytes of YAML."""
    (folder / "exports").mkdir()
    projects = "".join(f"  web-{number}: {{name: Web {number}}}\n" for number in range(20))
    texts = {"reconciler.yaml": WORKSPACE, "projects.yaml": f"projects:\n{projects}"}
    for file in range(FILES):
        numbers = range(file, EXPORTS, FILES)
        blocks = [
            SHAPES[number % len(SHAPES)].format(number=number, project=number % 20)
            for number in numbers
        ]
        texts[f"exports/{file:03}.yaml"] = "batch_exports:\n" + "\n".join(blocks)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sum(len(text) for text in texts.values())


@contextmanager
def collector_off() -> Iterator[None]:
    """Collect garbage, then pause the collector."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds that the work takes, without freeing its result."""
    gc.collect()
    begun = time.process_time()
    made = work()
    spent = time.process_time() - begun
    del made
    return spent


def whole(folder: Path) -> Loaded:
    """Load the workspace as a command does, with the collector running."""
    return load(folder, kinds=all_kinds(), environment=ENVIRONMENT, environ=ENVIRON)


def stages(folder: Path) -> dict[str, float]:
    """Return the CPU seconds of each stage. A stage ends before the next one starts."""
    spent: dict[str, float] = {}
    problems = DiagnosticCollector()
    kinds = {kind.name: kind for kind in all_kinds()}

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        begun = time.process_time()
        made = work()
        spent[stage] = spent.get(stage, 0.0) + time.process_time() - begun
        return made

    source = FolderSource(folder)
    workspace = read_workspace(source, problems)
    names = [name for name in source.names() if name != WORKSPACE_FILE]
    raw = timed("reading files", lambda: {name: source.read(name) or b"" for name in names})
    documents = []
    for name, content in raw.items():
        text = content.decode()
        node = timed("composing", lambda text=text: compose(text))
        build_one = partial(construct, name, text, node, problems)
        documents.append(timed("values and positions", build_one))
    declared = timed("collecting", lambda: declarations(documents, tuple(kinds.values()), problems))
    variables = variables_of(workspace, ENVIRONMENT)
    places = variable_places(workspace, ENVIRONMENT)
    listed = declared_names(workspace.value, allow_exec=False)
    references = References(variables, ENVIRON, source, problems, places, declared=listed)
    context = EnvironmentContext(ENVIRONMENT, workspace, kinds, references, problems)
    pairs = [(kinds[address.kind], entry) for address, entry in declared.items()]
    merged = timed(
        "merging and references",
        lambda: [(kind, filled(kind, entry, context)) for kind, entry in pairs],
    )
    timed(
        "schema check",
        lambda: [
            check(kind.name, {**entry.values, **entry.unfilled}, entry.check)
            for kind, entry in merged
        ],
    )
    specs = timed(
        "other checks",
        lambda: [(kind, entry, managed_fields(kind, entry, context)) for kind, entry in merged],
    )
    timed(
        "other checks",
        lambda: [check_fields(kind, spec, entry.check) for kind, entry, spec in specs],
    )
    loaded = whole(folder)
    desired = loaded.desired
    context.places.update(loaded.places)
    here = ResolvedWorkspace(context, declared, desired)
    timed("consistency", lambda: check_consistency(here))
    assert not problems.diagnostics
    return spent


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write_workspace(folder)
        texts = [file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.yaml"))]
        loader = yaml.CSafeLoader
        rounds = []
        for _ in range(ROUNDS):
            with collector_off():
                composed = cpu(lambda: [yaml.compose(text, Loader=loader) for text in texts])
            rounds.append((composed, cpu(lambda: whole(folder))))
        with collector_off():
            shares = stages(folder)
    ratios = sorted(loaded / composed for composed, loaded in rounds)
    composed, loaded = (min(times) for times in zip(*rounds, strict=True))
    print(f"exports                  {EXPORTS:,} in {FILES} files, {size / 1e6:.1f} MB")
    print(f"compose only, CPU        {composed:.2f} s (best of {ROUNDS})")
    print(f"load and check, CPU      {loaded:.2f} s (best of {ROUNDS})")
    print(
        f"ratio                    {loaded / composed:.2f} (of the best; by round {ratios[0]:.2f} "
        f"to {ratios[-1]:.2f}; aim: at most {AIM:.0f})"
    )
    shares["resources, memory, rest"] = max(0.0, loaded - sum(shares.values()))
    for stage, seconds in shares.items():
        print(f"  {stage:23}{seconds:5.2f} s  {seconds / sum(shares.values()):4.0%}")


if __name__ == "__main__":
    main()
