"""cicada beside Locust's own workers of the same user classes."""
from harness.counts import FAILING, answered, assert_counts
from harness.master import wait_quiet


def test_rows_of_both_kinds_are_one(version, nginx, start_master, start_cicada, start_python_worker):
    master = start_master(version)
    start_cicada(master.port)
    start_python_worker(master.port, version)
    master.wait_workers(2, ("ready",), timeout=40)
    master.swarm(20, 100, nginx.url)
    assert master.wait_users(20) == [10, 10]
    master.wait_requests(300)
    master.stop()
    wait_quiet(nginx)
    # Locust's own worker sends its last samples after it has said that it stopped.
    master.wait_requests(sum(answered(nginx).values()))
    assert master.end() == 1
    final = master.final()
    assert_counts(final, nginx)
    # Of the failures' texts each kind has its own; docs/worker.md says why.
    texts = {error.rsplit(" ", 1)[0] for error in final["errors"]}
    python = "HTTPError('404 Client Error: Not Found for url: missing')"
    assert texts == {name + " " + text for name in FAILING for text in ("HTTP status 404", python)}
    master.assert_clean()
