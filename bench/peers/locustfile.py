"""The bench's load for Locust: one GET a task, by either of its clients (name the class on the command line)."""
import os

from locust import FastHttpUser, HttpUser, constant, constant_throughput, task

path = os.environ.get("BENCH_PATH", "/")
wait_s, rate = (float(os.environ.get(name, "0")) for name in ("BENCH_WAIT_S", "BENCH_RATE"))


def wait_time():
    return constant_throughput(rate) if rate else constant(wait_s)


class Fast(FastHttpUser):
    insecure = True
    wait_time = wait_time()

    @task
    def get(self):
        self.client.get(path)


class Http(HttpUser):
    wait_time = wait_time()

    def on_start(self):
        self.client.verify = False

    @task
    def get(self):
        self.client.get(path)
