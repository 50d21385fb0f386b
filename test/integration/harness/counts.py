"""The master's counts beside nginx's own."""
import collections

# Request lines of scenario.json -> the names of their stats entries. /landed is the second hop of /redirect, which
# Locust counts as one request.
NAMES = {
    ("GET", "/10k?kind=page"): "GET /10k",
    ("GET", "/status/404"): "GET missing",
    ("POST", "/accept"): "POST buy",
    ("GET", "/landed"): None,
}
FAILING = ("GET missing",)


def answered(nginx, since=0):
    """Requests that nginx answered, by the name of the stats entry."""
    rows = collections.Counter()
    for (method, uri), count in nginx.rows(since).items():
        name = NAMES.get((method, uri), method + " " + uri)
        if name is not None:
            rows[name] += count
    return dict(rows)


def assert_counts(record, nginx, since=0, cut=0):
    """The record (see locustfile.py) has exactly the requests that nginx answered: none lost, none twice. With `cut`,
    up to so many requests may have been answered by nginx that were not counted, as they were cut on the way."""
    rows = {name: row[0] for name, row in record["rows"].items()}
    served = answered(nginx, since)
    missing = {name: count - rows.get(name, 0) for name, count in served.items()}
    assert set(rows) <= set(served), (rows, served)
    if cut == 0:
        assert rows == served
    assert all(lost >= 0 for lost in missing.values()) and sum(missing.values()) <= cut, (rows, served)
    assert record["total"][0] == sum(rows.values())
    for name, (requests, failures) in record["rows"].items():
        assert failures == (requests if name in FAILING else 0), (name, requests, failures)
    assert record["total"][0] > 0
