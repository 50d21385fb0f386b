"""report.html in a real browser: not collected by default, for a browser is a large thing to install.

    apt-get install chromium
    .venv/locust-2.47.0/bin/python -m pytest -c test/integration/pytest.ini test/integration/browser_report.py

It must open without a message on the console, in light and dark, fit a phone's width without scrolling sideways, and
print. The pictures are left in the test's folder (--basetemp) to be looked at.
"""
import os
import re
import shutil
import subprocess

import pytest

from harness.inside import hexed
from test_output import ERRORS, NAMES, Run, run_tool

BROWSER = os.environ.get("CICADA_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome") or "chromium"


def browse(tmp_path, *arguments):
    done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
                           "--virtual-time-budget=2000", "--allow-file-access-from-files",
                           "--user-data-dir=%s/profile" % tmp_path, *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", timeout=120, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    return done


@pytest.fixture
def report(rng, clock, tmp_path):  # noqa: F811
    run = Run(rng, clock, NAMES, ERRORS)
    for second in range(60):
        run.step()
        run.lines.append("point %r %d %d %d %d %d" % (clock.s, second, second * 7 % 50, second % 9 + 3, second % 7 + 20, 60 + second % 31))
    run.lines += ["times 0 700 300", "threshold %s 12.5 1" % hexed(b"p95 < 300"), "exception 1 %s %s %s" % ((hexed(b"x"),) * 3),
                  "facts"]
    assert run_tool(run.close(), "dir=%s/r" % tmp_path, "name=demo", "tag=t", "console=none").returncode == 0
    return "file://%s/r/report.html" % tmp_path


@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_screen(report, tmp_path, scheme):
    picture = tmp_path / "screen.png"
    browse(tmp_path, "--window-size=1200,3000", "--blink-settings=preferredColorScheme=%d" % scheme, "--screenshot=%s" % picture, report)
    assert picture.stat().st_size > 50000


def test_phone(report, tmp_path):
    """In a frame of a phone's width: a window of a headless browser is never so narrow."""
    frame = tmp_path / "frame.html"
    frame.write_text("""<body style="margin:0"><iframe id="f" src="%s" style="width:375px;height:3000px;border:0"></iframe><script>
        onload = () => { const page = document.getElementById("f").contentDocument.documentElement;
                         document.title = "width " + page.scrollWidth; }</script></body>""" % report)
    browse(tmp_path, "--window-size=500,3000", "--screenshot=%s/phone.png" % tmp_path, "file://%s" % frame)
    # the second look asks the page itself; its own policy allows no script, the frame's document does
    content = browse(tmp_path, "--disable-web-security", "--dump-dom", "file://%s" % frame).stdout
    assert re.search("<title>width 375</title>", content), content[:500]


def test_print(report, tmp_path):
    browse(tmp_path, "--no-pdf-header-footer", "--print-to-pdf=%s/report.pdf" % tmp_path, report)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
