"""The resources of the recipe for Kubernetes: their fields, and the rights of the pod."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from tests.recipes.scripts import FOLDER, documents, parses
from tests.support.limits import TIMEOUT

RECIPE = FOLDER / "kubernetes"
SCHEMAS = Path(__file__).parent / "kubernetes_schemas"
POD = "/spec/jobTemplate/spec/template/spec"
OVERLAYS = ["base", "apply"]


def resources(overlay: str) -> list[Any]:
    """Return the resources of an overlay: with kubectl all, otherwise the patched CronJob."""
    if shutil.which("kubectl"):
        return list(yaml.safe_load_all(run("kubectl", "kustomize", str(RECIPE / overlay))))
    (job,) = documents(RECIPE / "base/cronjob.yaml")
    (settings,) = documents(RECIPE / overlay / "kustomization.yaml")
    for patch in settings.get("patches", ()):
        for operation in yaml.safe_load(patch["patch"]):
            assert operation["op"] == "replace"
            replace(job, operation["path"], operation["value"])
    return [job]


def replace(document: Any, path: str, value: Any) -> None:
    """Replace an existing value at a JSON pointer."""
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")[1:]]
    for part in parents:
        document = document[part]
    assert document[last] is not None
    document[last] = value


def problems(resource: Any) -> list[str]:
    """Return what the schema of a resource does not allow."""
    group = resource["apiVersion"].replace("/", "-")
    file = SCHEMAS / f"{resource['kind'].lower()}-{group}.json"
    validator = Draft7Validator(json.loads(file.read_text(encoding="utf-8")))
    return [error.message for error in validator.iter_errors(resource)]


def run(*words: str, stdin: str = "") -> str:
    """Run a program, and return what it prints."""
    ended = subprocess.run(
        words, input=stdin, capture_output=True, text=True, check=False, timeout=TIMEOUT
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_resources_have_known_fields_and_few_rights(overlay: str) -> None:
    built = resources(overlay)
    for resource in built:
        assert problems(resource) == []
    job = built[-1]
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert parses(container["args"])
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/spec/concurrencyPolicy", "Allow"),
        (f"{POD}/automountServiceAccountToken", True),
        (f"{POD}/securityContext/runAsNonRoot", False),
        (f"{POD}/securityContext/runAsUser", 0),
        (f"{POD}/containers/0/image", "registry.example.com/acme/reconciler:latest"),
        (f"{POD}/containers/0/env/0/valueFrom", {"value": "phx_1"}),
        (f"{POD}/containers/0/resources/limits", {"cpu": "1"}),
        (f"{POD}/containers/0/securityContext/readOnlyRootFilesystem", False),
        (f"{POD}/containers/0/securityContext/capabilities", {"add": ["SYS_ADMIN"]}),
        (f"{POD}/volumes/0", {"name": "config", "hostPath": {"path": "/"}}),
    ],
)
def test_the_schema_refuses_more_rights(path: str, value: Any) -> None:
    (job,) = documents(RECIPE / "base/cronjob.yaml")
    assert problems(job) == []
    replace(job, path, value)
    assert problems(job) != []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomize_builds_the_resources(overlay: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    kinds = [resource["kind"] for resource in resources(overlay)]
    assert kinds == ["ConfigMap", "ConfigMap", "CronJob"]
