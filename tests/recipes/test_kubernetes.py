"""The resources of the recipe for Kubernetes: their fields, and the rights of the pod."""

from __future__ import annotations

import re

import pytest

from tests.recipes.scripts import cron_job, parses

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
