"""Cluster facts from a real Kubernetes API server. The values follow from the objects of test/real/kube/kube-seed.sh:
three nodes of 3920m and 13591700Ki, node-1 and node-2 of type n2-standard-4, node-3 of type c3-standard-4."""
import json
import os
import socket
import stat
import subprocess

import pytest

from harness.fake_http import answer
from harness.kube import missing, script
from harness.master import ROOT
from harness.worker import CICADA

pytestmark = [pytest.mark.timeout(1500), pytest.mark.skipif(missing() is not None, reason=str(missing()))]

TOOL = os.path.join(os.path.dirname(CICADA) or os.path.join(ROOT, "build"), "test", "tools", "cluster_facts")
KEYS = ("machine_type", "node_count", "allocatable_cores", "allocatable_ram_gb", "worker_pod_count", "capacity_scope")
NOTHING = (None, None, None, None, None, None)
SEEDED = ("n2-standard-4", 2, 7.84, 25.92, 4, "worker_nodes")  # two nodes host the four live pods
UNAUTHORIZED = "HTTP 401: 'Unauthorized'"


def facts(*args, cwd=None, **env):
    """(the six values, {part: why})"""
    clean = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
        if name in os.environ:
            clean[name] = os.environ[name]
    done = subprocess.run([TOOL, *args], env=dict(clean, **env), cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr
    out = json.loads(done.stdout)
    return tuple(out["facts"][key] for key in KEYS), out["why"]


def in_pod(kube, account, *args):
    """As a pod of that service account sees it."""
    folder = account if os.path.isabs(account) else kube.env["KUBE_SA_%s_DIR" % account]
    return facts("dir=" + folder, *args, KUBERNETES_SERVICE_HOST=kube.env["KUBE_SERVICE_HOST"],
                 KUBERNETES_SERVICE_PORT=kube.env["KUBE_SERVICE_PORT"])


def write_kubeconfig(path, server, cluster="", user="{}"):
    path.write_text("current-context: x\n"
                    "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                    "clusters: [{name: c, cluster: {server: '%s'%s}}]\n"
                    "users: [{name: u, user: %s}]\n" % (server, cluster, user))
    return str(path)


def kubeconfig_to(kube, path, cluster="", user=None):
    return write_kubeconfig(path, kube.env["KUBE_URL"], ", certificate-authority: '%s'%s" % (kube.env["KUBE_CA"], cluster),
                            user or "{token: %s}" % kube.env["KUBE_ADMIN_TOKEN"])


# --- rights and tokens

def test_minimal_rights_are_enough(kube):
    assert in_pod(kube, "READER") == (SEEDED, {})


def test_no_rights_leave_nulls(kube):
    values, why = in_pod(kube, "DENIED")
    assert values == NOTHING
    assert sorted(why) == ["nodes", "pods"]
    assert why["nodes"].startswith("HTTP 403: 'nodes is forbidden: ")
    assert why["pods"].startswith("HTTP 403: 'pods is forbidden: ")


def test_rights_to_pods_of_one_namespace_only(kube):
    values, why = in_pod(kube, "NS_READER")
    assert values == (None, None, None, None, 4, None)
    assert list(why) == ["nodes"]


def test_an_expired_token_and_its_renewal(kube, tmp_path):
    (tmp_path / "ca.crt").write_bytes(open(kube.env["KUBE_CA"], "rb").read())
    (tmp_path / "token").write_text(script("kube-token.sh", kube.folder, "reader", 0) + "\n")
    assert in_pod(kube, str(tmp_path)) == (NOTHING, {"nodes": UNAUTHORIZED, "pods": UNAUTHORIZED})
    (tmp_path / "token").write_text(kube.env["KUBE_SA_READER_TOKEN"] + "\n")
    assert in_pod(kube, str(tmp_path)) == (SEEDED, {})


def test_the_shipped_role_is_enough(kube, tmp_path):
    paths = {"ServiceAccount": "/api/v1/namespaces/default/serviceaccounts",
             "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
             "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"}
    with open(os.path.join(ROOT, "k8s", "rbac.yaml")) as f:
        documents = f.read().split("\n---\n")
    for document in documents:
        kind = next(line.split()[1] for line in document.splitlines() if line.startswith("kind:"))
        kube.api("POST", paths.pop(kind), document.encode(), "application/yaml")
    assert not paths
    (tmp_path / "ca.crt").write_bytes(open(kube.env["KUBE_CA"], "rb").read())
    (tmp_path / "token").write_text(kube.token("default", "cicada-worker"))
    assert in_pod(kube, str(tmp_path)) == (SEEDED, {})


# --- nodes and pods

def test_two_machine_types(kube):
    kube.namespace("mixed")
    kube.pod("mixed", "a", "node-3", "Running", "mixed")
    kube.pod("mixed", "b", "node-1", "Running", "mixed")
    assert in_pod(kube, "READER", "namespace=mixed") == (
        ("c3-standard-4,n2-standard-4", 2, 7.84, 25.92, 2, "worker_nodes"), {})


def test_phases(kube):
    kube.namespace("phases")
    kube.pod("phases", "pending", None, "Pending", "phases")
    kube.pod("phases", "running", "node-2", "Running", "phases")
    kube.pod("phases", "succeeded", "node-3", "Succeeded", "phases")
    kube.pod("phases", "failed", "node-3", "Failed", "phases")
    assert in_pod(kube, "READER", "namespace=phases") == (("n2-standard-4", 1, 3.92, 12.96, 2, "worker_nodes"), {})


def test_pods_that_no_node_runs_yet(kube):
    kube.namespace("waiting")
    kube.pod("waiting", "a", None, "Pending", "waiting")
    assert in_pod(kube, "READER", "namespace=waiting") == (
        ("c3-standard-4,n2-standard-4", 3, 11.76, 38.89, 1, "all_nodes"), {})


def test_pods_in_another_namespace(kube):
    assert in_pod(kube, "READER", "namespace=empty-workloads", "selector=ate.dev/worker-pool=pool") == (SEEDED, {})
    assert in_pod(kube, "READER", "namespace=no-such-one", "selector=ate.dev/worker-pool in (pool, none)") == (SEEDED, {})


def test_no_pod_anywhere(kube):
    values, why = in_pod(kube, "READER", "selector=ate.dev/worker-pool=nobody")
    assert values == ("c3-standard-4,n2-standard-4", 3, 11.76, 38.89, None, "all_nodes")
    assert why == {"pods": "no pod of the selector is Running or Pending"}


def test_1200_pods(kube):
    assert in_pod(kube, "READER", "namespace=bulk-workloads") == (
        ("n2-standard-4", 1, 3.92, 12.96, 1200, "worker_nodes"), {})


def test_another_label_for_the_machine_type(kube):
    values, why = in_pod(kube, "READER", "label=kubernetes.io/hostname")
    assert values[0] == "node-1,node-2"
    values, why = in_pod(kube, "READER", "label=no/such")
    assert values == (None,) + SEEDED[1:]
    assert why == {"machine_type": "no node has the label"}


def test_a_selector_that_is_none(kube):
    values, why = in_pod(kube, "READER", "selector=a b")
    assert values == ("c3-standard-4,n2-standard-4", 3, 11.76, 38.89, None, "all_nodes")
    assert why["pods"].startswith("HTTP 400: ")


# --- kubeconfig

@pytest.mark.parametrize("name", ["KUBE_CONFIG", "KUBE_CONFIG_INLINE", "KUBE_CONFIG_RELATIVE", "KUBE_CONFIG_READER"])
def test_kubeconfig_forms(kube, name):
    assert facts(KUBECONFIG=kube.env[name]) == (SEEDED, {})


def test_kubeconfig_in_the_working_folder(kube):
    assert facts(KUBECONFIG="kubeconfig.relative", cwd=kube.folder) == (SEEDED, {})


def test_kubeconfig_at_home(kube, tmp_path):
    (tmp_path / ".kube").mkdir()
    kubeconfig_to(kube, tmp_path / ".kube" / "config")
    assert facts(HOME=str(tmp_path)) == (SEEDED, {})


def test_several_kubeconfigs(kube, tmp_path):
    first = tmp_path / "first"
    first.write_text("users: [{name: u, user: {token: wrong}}]\n")
    second = kubeconfig_to(kube, tmp_path / "second")
    assert facts(KUBECONFIG="%s:%s:%s" % (tmp_path / "missing", second, first)) == (SEEDED, {})
    values, why = facts(KUBECONFIG="%s:%s" % (first, second))
    assert values == NOTHING and why["nodes"] == UNAUTHORIZED


PLUGIN = """#!/bin/sh
cat <<END
{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/%s", "status": %s}
END
"""


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize("kind", ["token", "certificate"])
def test_exec_plugin(kube, tmp_path, kind, version):
    status = {"token": kube.env["KUBE_ADMIN_TOKEN"]}
    if kind == "certificate":
        status = {"clientCertificateData": open(kube.env["KUBE_ADMIN_CERT"]).read(),
                  "clientKeyData": open(kube.env["KUBE_ADMIN_KEY"]).read()}
    plugin = tmp_path / "plugin"
    # the shell would take the backslash of \n in a here-document as it is
    plugin.write_text(PLUGIN % (version, json.dumps(status)))
    plugin.chmod(stat.S_IRWXU)
    config = kubeconfig_to(kube, tmp_path / "config", user="{exec: {apiVersion: client.authentication.k8s.io/%s, "
                           "command: ./plugin, interactiveMode: Never}}" % version)
    assert facts(KUBECONFIG=config) == (SEEDED, {})


def test_a_failing_exec_plugin(kube, tmp_path):
    config = kubeconfig_to(kube, tmp_path / "config", user="{exec: {apiVersion: client.authentication.k8s.io/v1, "
                           "command: sh, args: [-c, 'echo s3cret; exit 7']}}")
    assert facts(KUBECONFIG=config) == (NOTHING, {"credentials": config + ": user 'u': exec sh: exited with 7"})


# --- TLS

def test_the_wrong_authority(kube):
    values, why = facts(KUBECONFIG=kube.env["KUBE_CONFIG_WRONG_CA"])
    assert values == NOTHING
    assert why == dict.fromkeys(("nodes", "pods"), "TLS: certificate is not signed by a trusted authority")


def test_no_authority_is_the_systems(kube, tmp_path):
    config = write_kubeconfig(tmp_path / "config", kube.env["KUBE_URL"])
    assert facts(KUBECONFIG=config)[1]["nodes"] == "TLS: certificate is not signed by a trusted authority"


def test_tls_server_name(kube, tmp_path):
    config = kubeconfig_to(kube, tmp_path / "config", ", tls-server-name: kubernetes.default.svc")
    assert facts(KUBECONFIG=config) == (SEEDED, {})
    config = kubeconfig_to(kube, tmp_path / "config", ", tls-server-name: another.example")
    assert facts(KUBECONFIG=config)[1]["nodes"] == "TLS: certificate is for another name"


def test_insecure(kube, tmp_path):
    config = write_kubeconfig(tmp_path / "config", kube.env["KUBE_URL"], ", insecure-skip-tls-verify: true",
                              "{token: %s}" % kube.env["KUBE_ADMIN_TOKEN"])
    assert facts(KUBECONFIG=config) == (SEEDED, {})


def test_a_client_key_that_is_none(kube, tmp_path):
    config = kubeconfig_to(kube, tmp_path / "config", user="{client-certificate-data: YWJj, client-key-data: YWJj}")
    assert facts(KUBECONFIG=config)[1]["nodes"] == "TLS: the client certificate or its key cannot be used"


def test_a_proxy(kube, tmp_path, serve):
    proxy = serve(answer("502 Bad Gateway"))
    config = kubeconfig_to(kube, tmp_path / "config", ", proxy-url: '%s'" % proxy.url)
    values, why = facts(KUBECONFIG=config)
    assert values == NOTHING and sorted(why) == ["nodes", "pods"]
    assert all(request.startswith(b"CONNECT " + kube.env["KUBE_URL"][len("https://"):].encode()) for request in proxy.requests)


# --- servers that are none

FAULTS = {
    "hanging": (None, "timed out after 1 s"),
    "closing": (b"", "connection closed without an answer"),
    "garbage": (b"\x00\xff\x7fgarbage\r\n\r\n", "not an HTTP answer"),
    "page": (answer("200 OK", b"<html>Sign in</html>"), "not a list of %s: bad JSON at byte 0"),
    "cut": (answer("200 OK", b'{"kind":"List","items":[{"metadata":{"na'), "not a list of %s: the JSON ends too early"),
    "short": (answer("200 OK", b'{"items":[]}')[:-5], "answer cut short"),
    "overloaded": (answer("503 Service Unavailable"), "HTTP 503"),
    "limited": (answer("429 Too Many Requests", b'{"kind":"Status","message":"slow down"}'), "HTTP 429: 'slow down'"),
    "login": (answer("302 Found", headers="Location: https://u:p@login.example/?next=1\r\n"),
              "HTTP 302, redirect to https://login.example/"),
    "other": (answer("200 OK", b'{"kind":"ServiceList","items":[]}'), "not a list of %s: it is of another kind"),
    "status": (answer("200 OK", b'{"kind":"Status","message":"x"}'), "not a list of %s: it is a Status"),
    "paged": (answer("200 OK", b'{"metadata":{"continue":"abc"},"items":[]}'), "the list of %s is not complete"),
    "deep": (answer("200 OK", b'{"items":[' + b"[" * 10000), None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_servers(tmp_path, serve, fault):
    what, why = FAULTS[fault]
    config = write_kubeconfig(tmp_path / "config", serve(what).url)
    values, reasons = facts("timeout_ms=1000" if fault == "hanging" else "timeout_ms=30000", KUBECONFIG=config)
    assert values == NOTHING
    assert sorted(reasons) == ["nodes", "pods"]
    if why:
        assert reasons == {part: why % part if "%s" in why else why for part in ("nodes", "pods")}


def test_no_server(tmp_path):
    with socket.socket() as held:  # bound, so that nobody else takes the port, but not listening
        held.bind(("127.0.0.1", 0))
        config = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:%d" % held.getsockname()[1])
        found = facts(KUBECONFIG=config)
    assert found == (NOTHING, dict.fromkeys(("nodes", "pods"), "connection refused"))


def test_what_is_asked(tmp_path, serve):
    server = serve(answer("200 OK", b'{"items":[]}'))
    config = write_kubeconfig(tmp_path / "config", server.url + "/base/", user="{username: u, password: p}")
    facts("namespace=a/b", "selector=x in (y,z)", KUBECONFIG=config)
    paths = sorted(request.split(b" ")[1] for request in server.requests)
    selector = b"labelSelector=x%20in%20%28y%2Cz%29"
    assert paths == [b"/base/api/v1/namespaces/a%2Fb/pods?resourceVersion=0&" + selector,
                     b"/base/api/v1/nodes?resourceVersion=0", b"/base/api/v1/pods?resourceVersion=0&" + selector]
    assert all(b"Authorization: Basic dTpw\r\n" in request for request in server.requests)


def test_no_credentials(tmp_path):
    values, why = facts(HOME=str(tmp_path))
    assert values == NOTHING
    assert why == {"credentials": "no service account, and no kubeconfig file"}
