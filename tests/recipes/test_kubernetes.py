"""The resources of the recipe for Kubernetes: their fields, and the rights of the pod."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from tests.recipes.scripts import FOLDER, cron_job, parses
from tests.support.limits import TIMEOUT

EXPECTED = """\
apiVersion: batch/v1
kind: CronJob
metadata: {name: reconciler, labels: {app.kubernetes.io/name: reconciler}}
spec:
  timeZone: Etc/UTC
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: 3600
  successfulJobsHistoryLimit: 3
  failedJobsHistoryLimit: 3
  jobTemplate:
    spec:
      backoffLimit: 0
      activeDeadlineSeconds: 7200
      template:
        metadata: {labels: {app.kubernetes.io/name: reconciler}}
        spec:
          restartPolicy: Never
          automountServiceAccountToken: false
          terminationGracePeriodSeconds: 30
          securityContext:
            {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532,
             seccompProfile: {type: RuntimeDefault}}
          containers:
            - name: reconciler
              envFrom: [{configMapRef: {name: reconciler-connection}}]
              env:
                - name: RECONCILER_API_KEY
                  valueFrom: {secretKeyRef: {name: reconciler-ROLE, key: api-key}}
              resources:
                requests: {cpu: 100m, memory: 128Mi}
                limits: {cpu: "1", memory: 512Mi}
              securityContext:
                {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true,
                 capabilities: {drop: [ALL]}}
              volumeMounts:
                - {name: config, mountPath: /config, readOnly: true}
                - {name: workspace, mountPath: /workspace}
                - {name: tmp, mountPath: /tmp}
          volumes:
            - {name: config, configMap: {name: reconciler-workspace}}
            - {name: workspace, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
            - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
"""


@pytest.mark.parametrize(("overlay", "role"), [("base", "read"), ("apply", "write")])
def test_resources_have_known_fields_and_few_rights(overlay: str, role: str) -> None:
    job = cron_job(overlay)
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert parses(container.pop("args"))
    assert container.pop("command")[:2] == ["sh", "-ec"]
    assert re.search("@sha256:[0-9a-f]{64}$", container.pop("image"))
    assert re.fullmatch(r"\S+( \S+){4}", job["spec"].pop("schedule"))
    assert job == yaml.safe_load(EXPECTED.replace("ROLE", role))


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
