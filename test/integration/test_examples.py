"""The scenarios of examples/ against a small real application: what the run counted is what the application was asked,
and the values that went from one request to the next are right. Both HTTP engines."""
import pytest

from scenario_run import ENGINES, ROOT, example


@pytest.mark.parametrize("engine", ENGINES)
def test_login(engine):
    run = example("login.yaml", engine, users=5).has_all()
    assert run.status == 0 and not run.failures
    assert run.counts["POST /login 200"] == run.counts["POST /logout 200"] == 5
    assert run.seen["logouts"] == ["foo"] * 5  # the token went along
    assert run.requests["GET", "/items/:item"] == run.counts["GET /items/:id 200"]
    assert run.counts["GET /items/:id 200"] % 3 == 0
    assert run.counts["GET /items/:id 200"] // 3 + run.counts["GET / 200"] == 40
    assert run.counts["GET /items/:id 200"] // 3 > run.counts["GET / 200"]  # 3 to 1
    assert run.counts["GET /me 200"] == run.counts["GET / 200"]


def test_login_with_another_password():
    run = example("login.yaml", "fast", "--set", "password=open sesame", users=3, iterations=0, time="1s")
    assert run.status == 1
    assert run.counts == {"POST /login 403": 3}
    assert run.failures == {("POST", "/login"): 3, ("POST", "/logout"): 3}
    assert "POST /logout: variable has no value: token" in run.log  # not sent
    assert "sesame" not in run.log


@pytest.mark.parametrize("engine", ENGINES)
def test_sequential(engine):
    run = example("sequential.json", engine, users=3, iterations=30).has_all()
    assert run.status == 0 and not run.failures
    looked, added = run.counts["GET /items 200"], run.counts["POST /items 201"]
    seen = run.counts["GET /items/:id 200"]
    assert looked + added + seen == 30 and looked >= added >= seen >= looked - 3
    assert sorted(run.seen["items"]) == sorted(set(run.seen["items"]))  # each one its own, by the Location header
    assert {type(item["number"]) for item in run.seen["added"]} == {int}
    assert len({item["number"] for item in run.seen["added"]}) == added  # ${counter} over two threads
    assert {item["name"] for item in run.seen["added"]} == {"item of user %d" % n for n in (1, 2, 3)}


def test_tags():
    assert set(example("tags.yaml", "fast").has_all().counts) == {"GET / 200", "GET /items 200", "POST /items 201"}
    assert example("tags.yaml", "fast", "--tags", "read", "--exclude-tags", "slow").has_all().counts == {"GET / 200": 40}
    assert example("tags.yaml", "fast", "--tags", "write").has_all().counts == {"POST /items 201": 40}


@pytest.mark.parametrize("engine", ENGINES)
def test_feed(engine):
    run = example("feed.yaml", engine, users=4).has_all()
    assert run.status == 0 and not run.failures, run.log
    assert sorted(run.seen["logins"]) == ["ann", "bob", "carol, the third", "dave"]
    assert run.counts["GET /items 200"] + run.counts["GET /me 200"] == 40


def test_feed_with_more_users_than_rows():
    run = example("feed.yaml", "fast", users=7).has_all()
    assert run.status == 0 and not run.failures
    assert sorted(run.seen["logins"]) == ["ann", "bob", "carol, the third", "dave"]
    assert run.log.count("has no more rows") == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_json_check(engine):
    run = example("json_check.json", engine).has_all()
    assert run.status == 1
    vain = run.requests["GET", "wrong id"]
    assert 0 < vain < 40 and run.requests["GET", "/items?page=2"] == 40 - vain
    assert run.failures == {("GET", n): vain for n in ("down", "wrong id", "no JSON", "wrong text")}
    for error in ("GET down: HTTP status 503", "GET wrong id: check failed: json /id == 6", "GET no JSON: check failed: json /ok exists",
                  'GET wrong text: check failed: body matches "<title>(Sale|Deals)"'):
        assert error in run.log


@pytest.mark.parametrize("engine", ENGINES)
def test_follow(engine):
    run = example("follow.yaml", engine, iterations=60).has_all()
    assert run.status == 0 and not run.failures, run.log
    assert run.requests["GET", "/items/:id"] == run.counts["GET / 200"]  # named when it is known
    assert run.requests["GET", "/items/:item"] == run.counts["GET /items 200"]
    assert run.counts["GET /me 200"] == 2 * run.counts["POST /login 200"] > 0
    assert run.seen["items"].count(17) == run.counts["GET / 200"]
    assert {n - 10 * (n // 10) for n in run.seen["items"] if n != 17} == {2}


def test_pacing():
    run = example("pacing.json", "fast", users=5, iterations=0, time="2s").has_all()
    assert run.status == 0 and not run.failures
    steady, rate = run.requests["GET", "/items/1"], run.requests["GET", "/items/2"]
    assert 3 * 10 <= steady <= 3 * 21  # three users, ten a second each, two seconds; a busy machine makes fewer
    assert 10 <= rate <= 41
    assert run.counts["OPTIONS /items 404"] == run.requests["OPTIONS", "/items"] > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_agent_session(engine):
    run = example("agent_session.yaml", engine, users=5, iterations=25).has_all()
    assert run.status == 0 and not run.failures, run.log
    assert run.counts["POST /sessions 201"] == run.counts["DELETE /sessions/:id 204"] == 25
    assert run.counts["POST /sessions/:id/suspend 202"] == run.counts["POST /sessions/:id/wake 202"] == 25
    assert run.counts["POST /sessions/:id/steps 200"] == 4 * 25
    assert run.counts["GET /sessions/:id 200"] == 2 * 3 * 25  # asked until they were ready
    assert run.seen["ended sessions"] == [4] * 25
    assert run.requests["GROUP", "start"] == run.requests["GROUP", "suspend and wake"] == 25
    assert len(set(run.seen["steps"])) == 3 * 25 + 1


def test_agent_session_of_another_length():
    run = example("agent_session.yaml", "fast", "--set", "prompts=1", "--set", "think=0", iterations=8).has_all()
    assert run.seen["ended sessions"] == [2] * 8


@pytest.mark.parametrize("engine", ENGINES)
def test_upload(engine):
    run = example("upload.yaml", engine, users=1, iterations=1).has_all()
    assert run.status == 0 and not run.failures, run.log
    with open(ROOT + "/examples/words.csv", "rb") as f:
        words = f.read().decode("latin-1")
    multipart, file, form, text = run.seen["uploads"]
    boundary = multipart[0].removeprefix("multipart/form-data; boundary=")
    assert multipart[1] == (
        "--{0}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nMy words of user 1\r\n"
        "--{0}\r\nContent-Disposition: form-data; name=\"words\"; filename=\"words.csv\"\r\nContent-Type: text/csv\r\n\r\n{1}\r\n"
        "--{0}--\r\n").format(boundary, words)
    assert file == ["text/csv", words]
    assert form == ["application/x-www-form-urlencoded", "title=My+words&tag=a&tag=b+c"]
    assert text == ["", "plain ${not a variable} My words"]


@pytest.mark.parametrize("engine", ENGINES)
def test_give_up(engine):
    run = example("give_up.yaml", engine, users=3, iterations=20).has_all()
    assert run.status == 1
    assert run.counts["POST /login 403"] == 2
    assert not any("/never" in what for what in run.counts)
    assert run.counts["GET /status/:id 500"] == run.counts["GET /items/:id 200"] > 0  # went on
    assert run.counts["GET /status/:id 500"] + run.counts["GET /status/:id 502"] == 20
