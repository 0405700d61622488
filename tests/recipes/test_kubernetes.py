"""The resources of the recipe for Kubernetes: their fields, and the rights of the pod."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from tests.recipes.scripts import FOLDER, cron_job, parses
from tests.support.limits import TIMEOUT

POD = {
    "restartPolicy": "Never",
    "automountServiceAccountToken": False,
    "securityContext": {
        "runAsNonRoot": True,
        **dict.fromkeys(("runAsUser", "runAsGroup", "fsGroup"), 65532),
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}
RIGHTS = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@pytest.mark.parametrize(("overlay", "role"), [("base", "read"), ("apply", "write")])
def test_a_pod_runs_once_with_few_rights_and_the_key_of_its_role(overlay: str, role: str) -> None:
    spec = cron_job(overlay)["spec"]
    assert re.fullmatch(r"\S+( \S+){4}", spec["schedule"])
    assert (spec["concurrencyPolicy"], spec["jobTemplate"]["spec"]["backoffLimit"]) == ("Forbid", 0)
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {name: pod[name] for name in POD} == POD
    assert container["securityContext"] == RIGHTS
    (variable,) = container["env"]
    key = {"secretKeyRef": {"name": f"reconciler-{role}", "key": "api-key"}}
    assert variable == {"name": "RECONCILER_API_KEY", "valueFrom": key}
    assert parses(container["args"])
    assert container["command"][:2] == ["sh", "-ec"]
    assert re.search("@sha256:[0-9a-f]{64}$", container["image"])


@pytest.mark.parametrize("overlay", ["base", "apply"])
def test_kustomize_builds_the_resources(overlay: str) -> None:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    ended = subprocess.run(
        ["kubectl", "kustomize", FOLDER / "kubernetes" / overlay],
        capture_output=True,
        check=True,
        timeout=TIMEOUT,
    )
    *maps, job = yaml.safe_load_all(ended.stdout)
    assert [resource["kind"] for resource in maps] == ["ConfigMap", "ConfigMap"]
    assert job["spec"]["schedule"] == cron_job(overlay)["spec"]["schedule"]
