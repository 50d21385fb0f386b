"""The manifests in k8s/ against a real API server, which knows each field and refuses what it does not know."""
import os

import pytest

from harness.kube import missing
from harness.master import ROOT

pytestmark = [pytest.mark.timeout(1500), pytest.mark.skipif(missing() is not None, reason=str(missing()))]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
# kubectl patch sends JSON; the server itself merges YAML by the same keys when it is applied.
PATCH_HEAD = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cicada-worker}\n"


def manifest(name):
    with open(os.path.join(ROOT, "k8s", name), "rb") as f:
        return f.read()


def test_worker_deployment(kube):
    """Without configuration; then, patched, with a scenario of its own."""
    made = kube.api("POST", DEPLOYMENTS + "?fieldValidation=Strict", manifest("worker-deployment.yaml"), "application/yaml")
    pod = made["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["--worker", "-f", "-"]
    assert "volumes" not in pod and "volumeMounts" not in pod["containers"][0]

    patched = kube.api(
        "PATCH", DEPLOYMENTS + "/cicada-worker?fieldManager=test&force=true&fieldValidation=Strict",
        PATCH_HEAD + manifest("worker-scenario.yaml"), "application/apply-patch+yaml")["spec"]["template"]["spec"]
    assert len(patched["containers"]) == 1
    worker = patched["containers"][0]
    assert worker["args"] == ["--worker", "-f", "/etc/cicada/scenario.json"]
    assert [mount["mountPath"] for mount in worker["volumeMounts"]] == ["/etc/cicada"]
    assert [volume["configMap"]["name"] for volume in patched["volumes"]] == ["cicada-scenario"]
    for kept in ("image", "env", "livenessProbe", "readinessProbe", "resources"):
        assert worker[kept] == pod["containers"][0][kept]
