"""The worker's own /metrics, scraped by a real Prometheus during a run under a real master."""
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest
import requests
from harness.master import ROOT, wait_quiet
from harness.process import Process, free_port, wait_for
from harness.worker import CICADA

K8S = os.path.join(ROOT, "k8s")


class Prometheus(Process):
    """Scrapes the given ports of 127.0.0.1 every second."""

    def __init__(self, folder, ports):
        config = os.path.join(folder, "prometheus.yml")
        with open(config, "w") as f:
            json.dump({"global": {"scrape_interval": "1s"}, "rule_files": [os.path.join(K8S, "prometheus-rules.yaml")],
                       "scrape_configs": [{"job_name": "cicada",
                                           "static_configs": [{"targets": ["127.0.0.1:%d" % p for p in ports]}]}]}, f)
        self.url = "http://127.0.0.1:%d" % free_port()
        super().__init__("prometheus", ["prometheus", "--config.file=" + config, "--log.level=warn",
                                        "--storage.tsdb.path=" + os.path.join(folder, "tsdb"),
                                        "--web.listen-address=" + self.url[len("http://"):]], folder)

    def value(self, query):
        answer = requests.get(self.url + "/api/v1/query", params={"query": query}, timeout=5).json()
        result = answer["data"]["result"]
        return float(result[0]["value"][1]) if result else None


@pytest.fixture
def start_prometheus(tmp_path, started):
    def start(ports):
        if not shutil.which("prometheus"):
            pytest.skip("prometheus is not installed")
        server = Prometheus(str(tmp_path), ports)
        started.append(server)
        server.start()

        def ready():
            try:
                return requests.get(server.url + "/-/ready", timeout=2).ok
            except requests.RequestException:
                return False
        wait_for(ready, 30, lambda: server.text())
        return server
    return start


def metrics(port, **headers):
    return requests.get("http://127.0.0.1:%d/metrics" % port, headers=headers, timeout=5)


def test_prometheus_counts_what_the_master_counts(nginx, start_master, start_cicada, start_prometheus):
    ports = [free_port(), free_port()]
    prometheus = start_prometheus(ports)
    master = start_master()
    for i, port in enumerate(ports):
        start_cicada(master.port, args=["--metrics-port", port, "--metrics-address", "127.0.0.1"], name="cicada%d" % i)
    master.wait_workers(2, ("ready",))
    master.swarm(20, 100, nginx.url)
    assert master.wait_users(20) == [10, 10]
    wait_for(lambda: prometheus.value("sum(cicada_users)") == 20, 30, lambda: "20 users in Prometheus")
    assert prometheus.value('sum(cicada_state{state="running"})') == 2
    master.wait_requests(300)
    master.stop()
    wait_quiet(nginx)
    total = master.last_stop(1)["total"]
    wait_for(lambda: prometheus.value("sum(cicada_requests_total)") == total[0], 30,
             lambda: "%r in Prometheus, %r at the master" % (prometheus.value("sum(cicada_requests_total)"), total))
    assert prometheus.value("sum(cicada_failures_total)") == total[1]
    assert prometheus.value('sum(cicada_response_time_seconds_bucket{le="+Inf"})') == total[0]
    assert prometheus.value("sum(cicada_users)") == 0
    for rule in ("cicada:requests:rate1m", "cicada:failure_ratio:rate1m", "cicada:response_time_seconds:p95_1m"):
        assert wait_for(lambda: prometheus.value("sum(%s)" % rule) is not None, 30, lambda: rule)
    master.end()


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")
def test_promtool_and_dashboard_agree_with_the_page(nginx, start_master, start_cicada):
    port = free_port()
    master = start_master()
    start_cicada(master.port, args=["--metrics-port", port])
    master.wait_workers(1, ("ready",))
    master.swarm(5, 10, nginx.url)
    master.wait_requests(50)
    page = metrics(port)
    assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    done = subprocess.run(["promtool", "check", "metrics"], input=page.text, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0 and not done.stdout, done.stdout
    openmetrics = metrics(port, Accept="application/openmetrics-text; version=1.0.0")
    assert openmetrics.headers["Content-Type"].startswith("application/openmetrics-text")
    assert openmetrics.text.endswith("# EOF\n")
    # every name that the dashboard and the rules ask for is on the page
    names = set(re.findall(r"^(cicada_\w+)", page.text, re.M))
    for file in ("grafana-dashboard.json", "prometheus-rules.yaml"):
        with open(os.path.join(K8S, file)) as f:
            text = f.read()
        if file.endswith(".json"):
            assert json.loads(text)["panels"]
        asked = set(re.findall(r"\b(cicada_[a-z_]+)\b(?=[\[{,)\"\s])", text))
        assert asked and asked <= names, asked - names
    done = subprocess.run(["promtool", "check", "rules", os.path.join(K8S, "prometheus-rules.yaml")], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    assert done.returncode == 0, done.stdout
    master.end()


def test_probes_follow_the_registration(start_master, start_cicada):
    port, master_port = free_port(), free_port()
    worker = start_cicada(master_port, args=["--metrics-port", port])
    base = "http://127.0.0.1:%d" % port

    def status(path):
        try:
            return requests.get(base + path, timeout=5).status_code
        except requests.RequestException:
            return None
    wait_for(lambda: status("/healthz") == 200, 20, worker.text)
    assert status("/readyz") == 503
    master = start_master(port=master_port)
    wait_for(lambda: status("/readyz") == 200, 30, worker.text)
    master.end()


def test_a_taken_port_is_refused(start_cicada):
    port = free_port()
    master_port = free_port()
    first = start_cicada(master_port, args=["--metrics-port", port, "--metrics-address", "127.0.0.1"], name="first")
    wait_for(lambda: "metrics at port" in first.text(), 20, first.text)
    second = start_cicada(master_port, args=["--metrics-port", port, "--metrics-address", "127.0.0.1"], name="second")
    assert second.popen.wait(timeout=20) == 1
    assert "metrics port %d: Address already in use" % port in second.text()


def test_scrapes_by_the_hundred_do_not_disturb(nginx, start_master, start_cicada):
    port = free_port()
    master = start_master()
    start_cicada(master.port, args=["--metrics-port", port])
    master.wait_workers(1, ("ready",))
    master.swarm(10, 100, nginx.url)
    master.wait_users(10)
    until = time.monotonic() + 5
    pages = 0
    while time.monotonic() < until:
        assert metrics(port).status_code == 200
        pages += 1
    master.stop()
    assert metrics(port).status_code == 200
    wait_quiet(nginx)
    assert pages > 10
    assert master.last_stop(1)["total"][0] == sum(nginx.rows(0).values()) - nginx.rows(0).get(("GET", "/landed"), 0)
    master.end()
    master.assert_clean()


class Gateway(http.server.BaseHTTPRequestHandler):
    """Keeps what is put to it, as a Pushgateway does."""

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.pushed.append((self.path, body.decode()))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def test_the_last_figures_are_pushed(nginx, start_master, start_cicada):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway) as gateway:
        gateway.pushed = []
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        master = start_master(host=nginx.url, users=5, run_time=2)
        url = "http://127.0.0.1:%d/metrics/job/load" % gateway.server_port
        worker = start_cicada(master.port, args=["--metrics-push-url", url])
        assert worker.popen.wait(timeout=60) == 0
        gateway.shutdown()
    (path, page), = gateway.pushed
    assert path == "/metrics/job/load"
    total = sum(int(n) for n in re.findall(r"^cicada_requests_total\{.*\} (\d+)$", page, re.M))
    master.popen.wait(timeout=30)
    assert total == master.final()["total"][0] > 0


@pytest.fixture
def pushgateway(tmp_path, started):
    if not shutil.which("prometheus-pushgateway"):
        pytest.skip("prometheus-pushgateway is not installed")
    url = "http://127.0.0.1:%d" % free_port()
    gateway = Process("pushgateway", ["prometheus-pushgateway", "--web.listen-address=" + url[len("http://"):]], str(tmp_path))
    started.append(gateway)
    gateway.start()

    def ready():
        try:
            return requests.get(url + "/-/ready", timeout=2).ok
        except requests.RequestException:
            return False
    wait_for(ready, 30, gateway.text)
    return url


def test_a_real_pushgateway_takes_the_last_figures(nginx, pushgateway, tmp_path):
    """Of two jobs that end; a second run of one replaces its first."""
    counted = {}
    for job in ("one", "two", "one"):
        out = tmp_path / ("results-%s-%d" % (job, len(counted)))
        done = subprocess.run([CICADA, "--headless", "-u", "4", "-t", "2s", "--only-summary", "--json-file", str(out),
                               "--metrics-push-url", "%s/metrics/job/load/instance/%s" % (pushgateway, job),
                               nginx.url + "/status/404"], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        assert done.returncode == 1 and "pushed" not in done.stdout, done.stdout  # all requests fail
        with open(str(out) + ".json") as f:
            counted[job] = sum(entry["num_requests"] for entry in json.load(f))
    page = requests.get(pushgateway + "/metrics", timeout=5).text
    for job, total in counted.items():
        found = re.findall(r'^cicada_requests_total\{(?=[^}]*instance="%s").*\} (\S+)$' % job, page, re.M)
        assert sum(map(float, found)) == total > 0
        assert re.search(r'^push_failure_time_seconds\{(?=[^}]*instance="%s").*\} 0$' % job, page, re.M)
    assert re.search(r'^cicada_response_time_seconds_bucket\{[^}]*le="\+Inf"', page, re.M)


def test_a_push_that_fails_is_one_warning(nginx, start_master, start_cicada):
    master = start_master(host=nginx.url, users=2, run_time=1)
    worker = start_cicada(master.port, args=["--metrics-push-url",
                                             "http://me:secret@127.0.0.1:%d/metrics/job/load" % free_port()])
    assert worker.popen.wait(timeout=60) == 0
    told = [line for line in worker.errors() if "metrics were not pushed" in line]
    assert len(told) == 1 and "connection refused" in told[0]
    assert "secret" not in worker.text()
