"""A real nginx in a folder of its own, which logs each request it answered."""
import collections
import os
import shutil
import subprocess

from .process import Process, free_port, wait_for

CONFIG = """
{modules}
{user}
daemon off;
{processes}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
    log_format row '$request_method $request_uri $status';
    access_log {folder}/access.log row;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {folder}/www;
        location = / {{ return 200 "hello\\n"; }}
        location = /each {{ add_header X-Request-Id $request_id; return 200 "hello\\n"; }}
        location = /10k {{ try_files /10k.txt =500; }}
        location = /accept {{ return 201 "accepted\\n"; }}
        location = /redirect {{ return 302 /landed; }}
        location = /landed {{ return 200 "landed\\n"; }}
        location = /status/404 {{ return 404; }}
        location = /status/503 {{ return 503; }}
        location = /slow {{ echo_sleep 0.5; echo slow; }}
        location = /slower {{ echo_sleep 3; echo slower; }}
    }}
}}
"""


class Nginx(Process):
    def __init__(self, folder, processes=1, connections=1000):
        self.port = free_port()
        folder = os.path.join(folder, "nginx-%d" % self.port)
        os.makedirs(os.path.join(folder, "www"))
        with open(os.path.join(folder, "www", "10k.txt"), "w") as f:
            f.write("0123456789abcdef" * 640)
        self.log = os.path.join(folder, "access.log")
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w") as f:
            f.write(CONFIG.format(
                folder=folder, port=self.port, connections=connections, files=connections + 100,
                processes="worker_processes %d;" % processes if processes > 1 else "master_process off;",
                user="user root;" if os.geteuid() == 0 else "", modules=self.echo_module()))
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        super().__init__("nginx", [program, "-p", folder, "-c", config, "-e", folder + "/error.log"], folder)
        self.url = "http://127.0.0.1:%d" % self.port

    @staticmethod
    def echo_module():
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        said = subprocess.run([program, "-V"], stderr=subprocess.PIPE, text=True, check=True).stderr
        folder = [w.split("=")[1] for w in said.split() if w.startswith("--modules-path=")][0]
        return "load_module %s/ngx_http_echo_module.so;" % folder

    def start(self):
        super().start()
        wait_for(lambda: os.path.exists(self.log) and self.alive(), 10, "nginx to start\n" + self.text())
        return self

    def mark(self):
        """A position in the access log, for rows(since)."""
        return os.path.getsize(self.log)

    def rows(self, since=0):
        """How many requests were answered, by (method, URI)."""
        counts = collections.Counter()
        with open(self.log, "rb") as f:
            f.seek(since)
            for line in f.read().decode().splitlines():
                method, uri, _ = line.split(" ")
                counts[method, uri] += 1
        return counts

    def count(self, since=0):
        with open(self.log, "rb") as f:
            f.seek(since)
            return f.read().count(b"\n")
