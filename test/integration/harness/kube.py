"""A real Kubernetes API server (etcd behind it, RBAC on, no nodes or controllers running), one for all processes of a
test session: test/real/kube says how, and what objects are there from the start."""
import contextlib
import fcntl
import json
import os
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request

from .master import ROOT

SCRIPTS = os.path.join(ROOT, "test", "real", "kube")
CACHE = os.path.join(ROOT, ".cache", "real-kube")
NAMESPACE = "benchmark-workloads"
LIMIT_S = 1200  # building the server from its source takes minutes, once


def missing():
    """What keeps the server from being started here, or None."""
    if shutil.which("etcd") is None:
        return "etcd is not installed"
    if not os.environ.get("KUBE_APISERVER") and shutil.which("go") is None:
        return "neither KUBE_APISERVER nor go"
    return None


def script(name, *args):
    env = dict(os.environ, KUBE_CACHE=CACHE)
    done = subprocess.run([os.path.join(SCRIPTS, name), *map(str, args)], env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, "%s: %s" % (name, done.stderr[-4000:])
    return done.stdout.strip()


def read_env(path):
    """NAME='VALUE' lines."""
    with open(path) as f:
        return {name: value[1:-1] for name, value in (line.rstrip("\n").split("=", 1) for line in f)}


class Kube:
    def __init__(self, folder):
        self.folder = folder
        self.env = read_env(os.path.join(folder, "env"))
        self.env.update(read_env(os.path.join(folder, "seed.env")))

    def api(self, method, path, body=None, content_type="application/json"):
        """As an administrator. What exists already is left as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.env["KUBE_URL"] + path, data, method=method, headers={
            "Authorization": "Bearer " + self.env["KUBE_ADMIN_TOKEN"], "Content-Type": content_type})
        context = ssl.create_default_context(cafile=self.env["KUBE_CA"])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        try:
            with opener.open(request, timeout=20) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if (method, e.code) == ("POST", 409):
                return None
            raise AssertionError("%s %s: %d %s" % (method, path, e.code, e.read()[:1000])) from e

    def namespace(self, name):
        self.api("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        self.api("POST", "/api/v1/namespaces/%s/serviceaccounts" % name, {"metadata": {"name": "default"}})

    def pod(self, namespace, name, node, phase, pool):
        spec = {"containers": [{"name": "worker", "image": "example.invalid/worker:1"}]}
        if node:
            spec["nodeName"] = node
        path = "/api/v1/namespaces/%s/pods" % namespace
        self.api("POST", path, {"metadata": {"name": name, "labels": {"ate.dev/worker-pool": pool}}, "spec": spec})
        self.api("PATCH", "%s/%s/status" % (path, name), {"status": {"phase": phase}}, "application/merge-patch+json")

    def token(self, namespace, account):
        answer = self.api("POST", "/api/v1/namespaces/%s/serviceaccounts/%s/token" % (namespace, account), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}})
        return answer["status"]["token"]


@contextlib.contextmanager
def locked(path):
    with open(path, "a") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def shared_kube(folder):
    """The session's server: the first process starts it, the last one that leaves stops it. folder is one that all
    processes of the session share."""
    lock = os.path.join(folder, "kube.lock")
    users = os.path.join(folder, "kube.users")
    home = os.path.join(folder, "kube")
    count = lambda: int(open(users).read()) if os.path.exists(users) else 0

    def write(n):
        with open(users, "w") as f:
            f.write(str(n))

    with locked(lock):
        if count() == 0:
            script("kube-up.sh", home)
            try:
                script("kube-seed.sh", home, 1200)
            except BaseException:
                script("kube-down.sh", home)
                raise
        write(count() + 1)
    try:
        yield Kube(home)
    finally:
        with locked(lock):
            write(count() - 1)
            if count() == 0:
                script("kube-down.sh", home)
