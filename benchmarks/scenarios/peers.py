"""Tools with the same idea for other services, on as many of their objects without changes.

octoDNS compares 10,000 records in 200 zones of YAML with another folder of YAML, without a network.
dbt-jobs-as-code compares 1,000 jobs with a service on loopback that answers after 20 ms.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measuring import (
    CHILDREN,
    Settings,
    Task,
    alternating,
    connected,
    cpu,
    peak,
    plan_words,
    wall,
)
from benchmarks.processes import Usage
from benchmarks.results import Result, ratio_of
from benchmarks.service import running
from benchmarks.workspaces import Workload, environ, write

LATENCY = 0.02
_RECORD = """\
host-{number:05}:
  type: A
  ttl: 300
  values: [10.0.0.1, 10.0.0.2]
"""
_JOB = {
    "account_id": 1,
    "project_id": 1,
    "environment_id": 1,
    "settings": {"threads": 4, "target_name": "production"},
    "run_generate_sources": False,
    "execute_steps": ["dbt build"],
    "generate_docs": False,
    "schedule": {"cron": "0 */2 * * *"},
    "triggers": {"github_webhook": False, "git_provider_webhook": False, "schedule": True},
}


def peers(settings: Settings) -> Result:
    """Measure each tool beside a plan of as many exports."""
    result = Result("other tools, without changes")
    if settings.peers is None:
        result.lines.append("octoDNS and dbt-jobs-as-code were not measured: see --peers.")
        return result
    programs = settings.peers.resolve() / "bin"
    exports = 1_000 if settings.quick else 10_000
    with tempfile.TemporaryDirectory() as name:
        task = _octodns(programs / "octodns-sync", exports, Path(name))
        _measure(result, "octoDNS", task, Workload(exports, exports // 50), settings)
    jobs = 100 if settings.quick else 1_000
    with _dbt(programs / "dbt-jobs-as-code", jobs) as task:
        _measure(result, "dbt-jobs-as-code", task, Workload(jobs, 20), settings, LATENCY)
    return result


def _measure(
    result: Result,
    tool: str,
    task: Task,
    workload: Workload,
    settings: Settings,
    latency: float = 0,
) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = write(workload, Path(name))
        with running(place.seed) as service:
            service.delay(latency)
            ours = connected(service, *plan_words(place, "--detailed-exitcode"))
            usages = alternating({"theirs": task, "ours": ours}, settings)
    theirs = usages["theirs"]
    what = f"{tool} ÷ reconciler, {workload.exports:,}"
    result.ratios[f"{what}, CPU"] = ratio_of(cpu(theirs), cpu(usages["ours"]))
    result.ratios[f"{what}, wall"] = ratio_of(wall(theirs), wall(usages["ours"]))
    for name, rounds in ((tool, theirs), (f"reconciler, {workload.exports:,}", usages["ours"])):
        result.values |= _values(name, rounds)


def _values(name: str, rounds: list[Usage]) -> dict[str, float]:
    return {
        f"{name}, CPU s": min(cpu(rounds)),
        f"{name}, wall s": min(wall(rounds)),
        f"{name}, peak MB": peak(rounds),
    }


def _octodns(program: Path, records: int, folder: Path) -> Task:
    """Write the same zones twice, and return the task that compares them."""
    provider = {"class": "octodns.provider.yaml.YamlProvider", "enforce_order": False}
    config: dict[str, dict[str, object]] = {"providers": {}, "zones": {}}
    for side in ("config", "live"):
        (folder / side).mkdir()
        config["providers"][side] = {**provider, "directory": str(folder / side)}
    for zone in range(records // 50):
        name = f"zone-{zone:04}.com."
        text = "---\n" + "".join(_RECORD.format(number=number) for number in range(50))
        for side in ("config", "live"):
            (folder / side / f"{name}yaml").write_text(text, encoding="utf-8")
        config["zones"][name] = {"sources": ["config"], "targets": ["live"]}
    (folder / "octodns.yaml").write_text(json.dumps(config), encoding="utf-8")
    return Task([str(program), "--quiet", "--config-file", str(folder / "octodns.yaml")])


@contextmanager
def _dbt(program: Path, count: int) -> Iterator[Task]:
    """Write jobs, serve the same jobs, and yield the task that compares them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers = range(1, count + 1)
        jobs = {f"job-{number}": {**_JOB, "name": f"Job {number}"} for number in numbers}
        live = [
            {**_JOB, "id": number, "name": f"Job {number} [[job-{number}]]"} for number in numbers
        ]
        (folder / "jobs.yml").write_text(json.dumps({"jobs": jobs}, indent=1), encoding="utf-8")
        (folder / "live.json").write_text(json.dumps(live), encoding="utf-8")
        command = [sys.executable, str(CHILDREN / "dbt_service.py"), str(folder / "live.json")]
        with subprocess.Popen([*command, str(LATENCY)], stdout=subprocess.PIPE) as service:
            assert service.stdout is not None
            try:
                address = f"http://127.0.0.1:{int(service.stdout.readline())}"
                variables = environ(DBT_BASE_URL=address, DBT_API_KEY="benchmark")
                yield Task([str(program), "plan", str(folder / "jobs.yml")], variables)
            finally:
                service.terminate()
