#include "worker/cli/options.h"

#include "test/unit/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* Each test gives one command line, split at blanks,
 * one environment, split alike, and one file. */
#define WORDS_MAX 64

static void split_words(char *text, char *words[WORDS_MAX])
{
    size_t n = 0;
    for (char *at = text, *word; (word = strsep(&at, " ")) && n + 1 < WORDS_MAX;) {
        if (*word == '\0' && !at)
            break;
        words[n++] = word;
    }
    words[n] = NULL;
}

static int parse(const char *line, const char *env, const char *file, struct options *o,
                 struct err *err)
{
    char line_copy[1024], env_copy[1024], *argv[WORDS_MAX], *envp[WORDS_MAX];
    assert_true(snprintf(line_copy, sizeof line_copy, "cicada %s", line) < 1024);
    assert_true(snprintf(env_copy, sizeof env_copy, "%s", env) < 1024);
    split_words(line_copy, argv);
    split_words(env_copy, envp);
    struct options_file files[] = {{"locust.conf", str_of(file)}};
    *err = (struct err){0};
    return options_parse(argv, envp, files, 1, o, err);
}

static void check_list(const struct options_list *list, const char *want)
{
    char text[1024] = "";
    for (size_t i = 0; i < list->count; i++) {
        assert_int_equal(strlen(list->items[i].ptr), list->items[i].len);
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "<%s>", list->items[i].ptr);
    }
    assert_string_equal(text, want);
}

static void test_defaults(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker -f x.json", "", "", &o, &err), 0);
    assert_true(o.worker);
    assert_false(o.headless);
    assert_string_equal(o.master_host, "127.0.0.1");
    assert_int_equal(o.master_port, 5557);
    assert_int_equal(o.master_timeout_s, 300);
    assert_string_equal(o.scenario_file, "x.json");
    assert_null(o.url);
    assert_null(o.host);
    assert_null(o.log_file);
    assert_int_equal(o.log_level, LOG_INFO);
    assert_int_equal(o.stop_timeout_s, 0);
    assert_int_equal(o.threads, 0);
    assert_int_equal(o.notices.count, 0);
    options_done(&o);
    options_done(&o);
}

/* All the ways to write one value: as argparse takes them. */
static void test_spellings(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--worker -f x --host http://h", "--worker -f x --host=http://h",
        "--worker -f x -H http://h",     "--worker -f x -Hhttp://h",
        "--worker -f x -H=http://h",     "--worker -f x --hos http://h",
        "--worker -f x --ho=http://h",   "--worker -fx -H http://h",
        "--wor --locustf=x -H http://h", "--worker -f x -H http://a -H http://h",
        "-H http://h --worker -f x --",  "-f y --worker --locustfile=x --host http://h",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options o;
        struct err err;
        print_message("%s\n", lines[i]);
        assert_int_equal(parse(lines[i], "", "", &o, &err), 0);
        assert_string_equal(o.scenario_file, "x");
        assert_string_equal(o.host, "http://h");
        options_done(&o);
    }
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *line, *env, *file, *tags, *exclude;
    } cases[] = {
        {"--tags a b -E c", "", "", "<a><b>", "<c>"},
        {"-T a b -- X", "", "", "<a><b>", ""},
        {"-Ta --exclude-tags=c", "", "", "<a>", "<c>"},
        {"--tags a b --tags c", "", "", "<c>", ""},
        {"--tags", "", "tags = [a]", "", ""},
        {"--tags -1 -", "", "", "<-1><->", ""},
        {"", "LOCUST_TAGS=a", "tags = b", "<a>", ""},
        {"", "LOCUST_TAGS=[a,b]", "", "<a><b>", ""},
        {"", "LOCUST_TAGS=[\"a\",\"b,c\",3,true,1.5]", "", "<a><b,c><3><True><1.5>", ""},
        {"", "LOCUST_TAGS=[]", "tags = [b]", "", ""},
        {"", "LOCUST_TAGS=", "tags = [b, c]", "<b><c>", ""},
        {"", "", "exclude-tags=[\"a b\"]\n--tags: x", "<x>", "<a b>"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err;
        char line[256];
        print_message("%s %s %s\n", cases[i].line, cases[i].env, cases[i].file);
        (void)snprintf(line, sizeof line, "--worker -f x %s", cases[i].line);
        assert_int_equal(parse(line, cases[i].env, cases[i].file, &o, &err), 0);
        check_list(&o.tags, cases[i].tags);
        check_list(&o.exclude_tags, cases[i].exclude);
        options_done(&o);
    }
}

static void test_precedence(void **state)
{
    (void)state;
    static const struct {
        const char *line, *env, *file;
        int port;
    } cases[] = {
        {"--master-port 1", "LOCUST_MASTER_NODE_PORT=2", "master-port = 3", 1},
        {"", "LOCUST_MASTER_NODE_PORT=2", "master-port = 3", 2},
        {"", "", "master-port = 3", 3},
        {"", "", "master-port = 3\nmaster-port: 4", 4},
        {"", "", "", 5557},
        /* what is overruled is not looked at */
        {"--master-port 1", "LOCUST_MASTER_NODE_PORT=x", "master-port = y", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err;
        char line[256];
        (void)snprintf(line, sizeof line, "--worker -f x %s", cases[i].line);
        assert_int_equal(parse(line, cases[i].env, cases[i].file, &o, &err), 0);
        assert_int_equal(o.master_port, cases[i].port);
        options_done(&o);
    }
}

static void test_switch_off_overrules(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("-f x", "LOCUST_MODE_WORKER=TRUE", "", &o, &err), 0);
    assert_true(o.worker);
    options_done(&o);
    assert_int_equal(parse("-f x", "LOCUST_MODE_WORKER=no", "worker", &o, &err), -EINVAL);
    assert_int_equal(parse("-f x", "", "worker\nreset-stats = on", &o, &err), 0);
    assert_true(o.reset_stats);
    options_done(&o);
    assert_int_equal(parse("-f x", "LOCUST_MODE_MASTER=false", "worker", &o, &err), 0);
    options_done(&o);
}

static void test_later_file_is_weightier(void **state)
{
    (void)state;
    char *const argv[] = {(char[]){"cicada"}, (char[]){"--worker"}, NULL}, *const envp[] = {NULL};
    const struct options_file files[] = {
        {".locust.conf", STR("host = http://a\nlocustfile = a\nmaster-port = 1")},
        {"locust.conf", STR("host = http://b\nlocustfile = b")},
        {"pyproject.toml", STR("[x]\nhost = 1\n[tool.locust]\nhost = \"http://c\" # c\n[y]\nz")},
    };
    struct options o;
    struct err err = {0};
    assert_int_equal(options_parse(argv, envp, files, 3, &o, &err), 0);
    assert_string_equal(o.host, "http://c");
    assert_string_equal(o.scenario_file, "b");
    assert_int_equal(o.master_port, 1);
    options_done(&o);
}

static void test_url_and_user_classes(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker http://h/a?b=1 A B", "LOCUST_LOCUSTFILE=x", "", &o, &err), 0);
    assert_string_equal(o.url, "http://h/a?b=1");
    assert_null(o.scenario_file);
    check_list(&o.user_classes, "<A><B>");
    options_done(&o);
    char *const argv[] = {(char[]){"cicada"}, (char[]){"--worker"}, (char[]){"-fx"}, NULL};
    char *const envp[] = {(char[]){"LOCUST_USER_CLASSES= A\tB\nC\f "}, NULL};
    err = (struct err){0};
    assert_int_equal(options_parse(argv, envp, NULL, 0, &o, &err), 0);
    check_list(&o.user_classes, "<A><B><C>");
    options_done(&o);
}

static void test_scenario_of_the_master(void **state)
{
    struct options o;
    struct err err;
    (void)state;
    assert_int_equal(parse("--worker -f -", "", "", &o, &err), 0);
    assert_true(o.from_master);
    options_done(&o);
    assert_int_equal(parse("--worker", "LOCUST_LOCUSTFILE=-", "", &o, &err), 0);
    assert_true(o.from_master);
    options_done(&o);
    assert_int_equal(parse("--worker http://h", "LOCUST_LOCUSTFILE=-", "", &o, &err), 0);
    assert_false(o.from_master);
    options_done(&o);
    assert_int_equal(parse("--worker -f x.py", "LOCUST_LOCUSTFILE=-", "", &o, &err), 0);
    assert_false(o.from_master);
    options_done(&o);
}

static void test_wait_between_runs(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker -f x",
                           "LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP=7", "", &o, &err),
                     0);
    assert_int_equal(o.ready_wait_s, 7);
    options_done(&o);
}

static void test_processes_are_threads(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int threads;
    } cases[] = {
        {"--processes 4", 4},
        {"--processes -1", 0},
        {"--processes=0", 0},
        {"--threads 3", 3},
        {"--threads 3 --processes 4", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err;
        char line[256];
        (void)snprintf(line, sizeof line, "--worker -f x %s", cases[i].line);
        assert_int_equal(parse(line, "", "", &o, &err), 0);
        assert_int_equal(o.threads, cases[i].threads);
        options_done(&o);
    }
}

static void test_ignored_flags_are_told_once(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker --web-port x -u 5 -u 6 -f x --headless --csv=out",
                           "LOCUST_WEB_HOST=h LOCUST_USERS=9 LOCUST_HEADFUL=false",
                           "html = r.html\nconfig = other", &o, &err),
                     0);
    check_list(&o.notices, "<--web-port has no meaning for a worker, ignoring>"
                           "<--users has no meaning for a worker, ignoring>"
                           "<--headless has no meaning for a worker, ignoring>"
                           "<--csv has no meaning for a worker, ignoring>"
                           "<LOCUST_WEB_HOST has no meaning for a worker, ignoring>"
                           "<locust.conf:1: html has no meaning for a worker, ignoring>"
                           "<locust.conf:2: config has no meaning inside a configuration file, "
                           "ignoring>");
    options_done(&o);
    assert_int_equal(parse("--master-host h --autostart --expect-workers 3 http://h -u 5",
                           "LOCUST_HEADLESS=1 LOCUST_MASTER_NODE_PORT=1", "", &o, &err),
                     0);
    check_list(&o.notices, "<--master-host has no meaning in a headless run, ignoring>"
                           "<--autostart has no meaning in a headless run, ignoring>"
                           "<--expect-workers has no meaning in a headless run, ignoring>"
                           "<LOCUST_MASTER_NODE_PORT has no meaning in a headless run, ignoring>");
    options_done(&o);
}

static void test_questions_need_no_kind_of_run(void **state)
{
    (void)state;
    static const char *const lines[] = {"-l -f a.json", "--worker --show-task-ratio -f a.json",
                                        "--show-task-ratio-json -f a.json A"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct options o;
        struct err err;
        assert_int_equal(parse(lines[i], "", "", &o, &err), 0);
        assert_true(options_ask(&o) && !o.worker);
        assert_true(o.list == (i == 0) && o.show_task_ratio == (i == 1));
        options_done(&o);
    }
}

static void test_the_last_scenario_counts(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker -f a.json --locustfile=b.json", "LOCUST_LOCUSTFILE=c.json",
                           "locustfile = d.json", &o, &err),
                     0);
    assert_string_equal(o.scenario_file, "b.json");
    check_list(&o.notices, "<-f 'a.json' is followed by another -f, ignoring>");
    options_done(&o);
}

static void test_a_headless_run(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--headless http://h -u 7 -r 2.5 -t 1m --threshold a --threshold=b "
                           "--source-address 127.0.0.1 --tag t --name n --ph --trace-ratio .25 "
                           "--http2 --proxy socks5://a:b@p:1",
                           "LOCUST_EXIT_CODE_ON_ERROR=3 CICADA_TEST_NAME=other CICADA_THRESHOLD=c",
                           "csv = out\nonly-summary\ndest = d", &o, &err),
                     0);
    assert_true(o.headless);
    assert_int_equal(o.users, 7);
    assert_true(o.spawn_rate == 2.5);
    assert_int_equal(o.run_time_s, 60);
    assert_int_equal(o.exit_code_on_error, 3);
    check_list(&o.thresholds, "<a><b>");
    check_list(&o.source_addresses, "<127.0.0.1>");
    assert_string_equal(o.tag, "t");
    assert_string_equal(o.test_name,
                        "n"); /* by its other name, a lesser layer does not change it */
    assert_true(o.phases);
    assert_true(o.trace_ratio == 0.25);
    assert_true(o.http2);
    assert_string_equal(o.proxy, "socks5://a:b@p:1");
    assert_string_equal(o.csv_prefix, "out");
    assert_true(o.only_summary);
    assert_string_equal(o.dest, "d");
    assert_int_equal(o.notices.count, 0);
    options_done(&o);
    assert_int_equal(parse("--headless http://h", "CICADA_THRESHOLD=[a,b]", "", &o, &err), 0);
    assert_int_equal(o.users, -1);
    assert_true(o.spawn_rate == 0);
    assert_int_equal(o.exit_code_on_error, 1);
    check_list(&o.thresholds, "<a><b>");
    options_done(&o);
}

static void test_help_and_version_come_first(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("-h --nonsense", "LOCUST_MASTER_NODE_PORT=x", "?", &o, &err), 0);
    assert_true(o.help);
    options_done(&o);
    assert_int_equal(parse("--worker --version", "LOCUST_MASTER_NODE_PORT=x", "?", &o, &err), 0);
    assert_true(o.version);
    options_done(&o);
}

static void test_mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *line, *env, *file, *text;
    } cases[] = {
        {"", "", "",
         "give --headless to make the load from here, or --worker (and --master-host) to attach to "
         "a "
         "Locust master; --help tells more"},
        {"--headless -u 1", "", "", "nothing to run: give a scenario file (-f FILE) or a URL"},
        {"--headless -u -1 http://h", "", "",
         "--users: must be a whole number from 0 to 10000000, not '-1'"},
        {"--headless -r 0 http://h", "", "", "--spawn-rate: must be a number above 0, not '0'"},
        {"--headless -r inf http://h", "", "", "--spawn-rate: must be a number above 0, not 'inf'"},
        {"--headless --autoquit 3 http://h", "", "",
         "--autoquit is only meaningful in combination with --autostart"},
        {"--list", "", "", "nothing to run: give a scenario file (-f FILE) or a URL"},
        {"--headless --csv-full-history http://h", "", "",
         "'--csv-full-history' requires '--csv'."},
        {"--master", "", "",
         "--master: cicada is a worker: the master is Locust's own ('locust --master')"},
        {"--worker", "LOCUST_MODE_MASTER=1", "",
         "LOCUST_MODE_MASTER: cicada is a worker: the master is Locust's own ('locust --master')"},
        {"--slave", "", "", "--slave: has been renamed --worker"},
        {"--worker", "", "", "nothing to run: give a scenario file (-f FILE) or a URL"},
        {"--worker -f x.json http://h", "", "", "give a scenario file (-f) or a URL, not both"},
        {"--worker http://h http://i", "", "", "one URL at a time, not 'http://i' too"},
        {"--worker -f a.json,b.json", "", "",
         "-f: must be one file, not 'a.json,b.json': put all user classes into one scenario"},
        {"--headless -f -", "", "",
         "-f -: takes the scenario from a master, and a headless run has none: name a file"},
        {"--headless", "LOCUST_LOCUSTFILE=-", "",
         "-f -: takes the scenario from a master, and a headless run has none: name a file"},
        {"--worker -f http://h", "", "",
         "-f: must be a file, not 'http://h': a URL to load is given without -f"},
        {"--wroker", "", "", "unknown flag '--wroker': did you mean '--worker'?"},
        {"--master_host=h", "", "", "unknown flag '--master_host': did you mean '--master-host'?"},
        {"--master-prot 1", "", "", "unknown flag '--master-prot': did you mean '--master-port'?"},
        {"--entirely-different", "", "", "unknown flag '--entirely-different'"},
        {"-x", "", "", "unknown flag '-x'"},
        {"-xyz", "", "", "unknown flag '-xyz'"},
        {"--master-h", "", "", "--master-host: needs a value"},
        {"--master-p x", "", "", "--master-port: must be a whole number from 1 to 65535, not 'x'"},
        {"--tag", "", "", "--tag: needs a value"},
        {"--res", "", "",
         "give --headless to make the load from here, or --worker (and --master-host) to attach to "
         "a "
         "Locust master; --help tells more"},
        {"--lo x", "", "", "'--lo' could be --locustfile, --loglevel, --logfile"},
        {"--host", "", "", "--host: needs a value"},
        {"--host --worker", "", "", "--host: needs a value"},
        {"--host -- x", "", "", "--host: needs a value"},
        {"--worker=yes", "", "", "--worker: takes no value, not 'yes'"},
        {"--master-port 0", "", "",
         "--master-port: must be a whole number from 1 to 65535, not '0'"},
        {"--master-port=", "", "", "--master-port: must be a whole number from 1 to 65535, not ''"},
        {"--master-port 65536", "", "",
         "--master-port: must be a whole number from 1 to 65535, not '65536'"},
        {"--master-port 1e3", "", "",
         "--master-port: must be a whole number from 1 to 65535, not '1e3'"},
        {"", "LOCUST_MASTER_NODE_PORT=tcp://10.0.0.1:5557", "",
         "LOCUST_MASTER_NODE_PORT: must be a whole number from 1 to 65535, not "
         "'tcp://10.0.0.1:5557'"},
        {"--processes -2", "", "", "--processes: must be a whole number from -1 to 1024, not '-2'"},
        {"-s 1x", "", "", "--stop-timeout: must be a time as 20, 20s, 3m or 1h20m, not '1x'"},
        {"-L loud", "", "",
         "--loglevel: must be DEBUG, INFO, WARNING, ERROR or CRITICAL, not 'loud'"},
        {"--worker -f x --master-host=", "", "", "--master-host: must not be empty"},
        {"", "LOCUST_MODE_WORKER=ja", "",
         "LOCUST_MODE_WORKER: must be true, false, yes, no, on, off, 1 or 0, not 'ja'"},
        {"", "LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP=1s", "",
         "LOCUST_WORKER_ADDITIONAL_WAIT_BEFORE_READY_AFTER_STOP: must be a number of seconds, not "
         "'1s'"},
        {"", "LOCUST_TAGS=[[1]]", "", "LOCUST_TAGS: a list may hold texts and numbers only"},
        {"", "", "#\nmaster_port = 1",
         "locust.conf:2: unknown key 'master_port': did you mean 'master-port'?"},
        {"", "", "\r\n\r\nmaster-port = 0",
         "locust.conf:3: master-port: must be a whole number from 1 to 65535, not '0'"},
        {"", "", "host = [a, b]", "locust.conf:1: host: must be one value, not '[a, b]'"},
        {"", "", "host#x", "locust.conf:1: neither 'key = value' nor a comment: 'host#x'"},
        {"--worker -f x \x1b[2J", "", "tags", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct options o;
        struct err err;
        print_message("%s %s %s\n", cases[i].line, cases[i].env, cases[i].file);
        int rc = parse(cases[i].line, cases[i].env, cases[i].file, &o, &err);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(rc, cases[i].text[0] ? -EINVAL : 0);
        options_done(&o);
    }
}

static void test_file_with_nul_is_refused(void **state)
{
    (void)state;
    char *const argv[] = {(char[]){"cicada"}, (char[]){"--worker"}, NULL}, *const envp[] = {NULL};
    const struct options_file file = {"locust.conf", STR("host = a\0b")};
    struct options o;
    struct err err = {0};
    assert_int_equal(options_parse(argv, envp, &file, 1, &o, &err), -EINVAL);
    assert_string_equal(err.text, "locust.conf: is not a text file");
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void test_files_are_found(void **state)
{
    (void)state;
    char folder[] = "/tmp/cicada-options-XXXXXX", before[4096], home[64];
    assert_non_null(mkdtemp(folder));
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    (void)snprintf(home, sizeof home, "HOME=%s", folder);
    write_file(".locust.conf", "host = http://home\nlocustfile = home\nloglevel = debug");
    write_file("locust.conf", "host = http://here\nlocustfile = here");
    write_file("more.conf", "host = http://more");
    char *const argv[] = {(char[]){"cicada"}, (char[]){"--worker"}, (char[]){"--config"},
                          (char[]){"~/more.conf"}, NULL};
    char *const envp[] = {home, NULL};
    struct options o;
    struct err err = {0};
    assert_int_equal(options_read(argv, envp, &o, &err), 0);
    assert_string_equal(o.host, "http://more");
    assert_string_equal(o.scenario_file, "here");
    assert_int_equal(o.log_level, LOG_DEBUG);
    options_done(&o);
    assert_int_equal(unlink("more.conf"), 0);
    assert_int_equal(options_read(argv, envp, &o, &err), -ENOENT);
    assert_non_null(strstr(err.text, "more.conf: No such file"));
    assert_int_equal(unlink(".locust.conf") + unlink("locust.conf"), 0);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(rmdir(folder), 0);
}

static void test_out_of_memory_travels_up(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    int rc = -ENOMEM;
    for (unsigned long n = 1; rc != 0; n++) {
        alloc_fail_at(n);
        rc = parse("--worker -f x --tags a b --web-port 1 http", "LOCUST_EXCLUDE_TAGS=[c,d]",
                   "host = http://h", &o, &err);
        bool failed = alloc_failed();
        alloc_fail_at(0);
        assert_true(rc == 0 ? !failed : rc == -ENOMEM && failed);
    }
    check_list(&o.exclude_tags, "<c><d>");
    options_done(&o);
}

static void test_flags_of_the_report(void **state)
{
    (void)state;
    struct options o;
    struct err err;
    assert_int_equal(parse("--worker -f x.json --report=", "", "", &o, &err), 0);
    assert_string_equal(o.report, "auto");
    assert_string_equal(o.telemetry_profile, "substrate");
    assert_true(o.actors_per_user == 1 && o.telemetry_lag_s == OPTIONS_OWN_LAG);
    assert_false(o.cluster_facts || o.no_cluster_facts);
    options_done(&o);
    assert_int_equal(parse("--worker -f x.json --prometheus-header A:1 --actors-per-user 2.5 "
                           "--telemetry-lag 1m10s --prometheus-header B:2",
                           "CICADA_TELEMETRY_VAR=[pools=a,pods=b] CICADA_REPORT=never",
                           "prometheus-url = http://h/p\nreport = always", &o, &err),
                     0);
    check_list(&o.prometheus_headers, "<A:1><B:2>");
    check_list(&o.telemetry_vars, "<pools=a><pods=b>");
    assert_true(o.actors_per_user == 2.5 && o.telemetry_lag_s == 70);
    assert_string_equal(o.prometheus_url, "http://h/p");
    assert_string_equal(o.report, "never");
    options_done(&o);
}

/* Of the flag and its opposite the weightier layer's counts. */
static void test_cluster_facts_on_and_off(void **state)
{
    static const struct {
        const char *line, *env, *file;
        bool on, off, fails;
    } cases[] = {
        {"--cluster-facts", "CICADA_NO_CLUSTER_FACTS=1", "", true, false, false},
        {"--no-cluster-facts", "CICADA_CLUSTER_FACTS=1", "", false, true, false},
        {"--no-cluster-facts", "", "cluster-facts = true", false, true, false},
        {"", "CICADA_CLUSTER_FACTS=true", "no-cluster-facts = true", true, false, false},
        {"", "CICADA_CLUSTER_FACTS=false", "", false, false, false},
        {"--cluster-facts --no-cluster-facts", "", "", false, false, true},
        {"", "CICADA_CLUSTER_FACTS=1 CICADA_NO_CLUSTER_FACTS=1", "", false, false, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        struct options o;
        struct err err;
        (void)snprintf(line, sizeof line, "--worker -f x.json%s%s", cases[i].line[0] ? " " : "",
                       cases[i].line); /* fits */
        print_message("%s %s %s\n", cases[i].line, cases[i].env, cases[i].file);
        int rc = parse(line, cases[i].env, cases[i].file, &o, &err);
        assert_int_equal(rc, cases[i].fails ? -EINVAL : 0);
        assert_int_equal(o.cluster_facts, cases[i].on);
        assert_int_equal(o.no_cluster_facts, cases[i].off);
        options_done(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_of_the_report),
        cmocka_unit_test(test_cluster_facts_on_and_off),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_switch_off_overrules),
        cmocka_unit_test(test_later_file_is_weightier),
        cmocka_unit_test(test_url_and_user_classes),
        cmocka_unit_test(test_scenario_of_the_master),
        cmocka_unit_test(test_wait_between_runs),
        cmocka_unit_test(test_processes_are_threads),
        cmocka_unit_test(test_ignored_flags_are_told_once),
        cmocka_unit_test(test_questions_need_no_kind_of_run),
        cmocka_unit_test(test_the_last_scenario_counts),
        cmocka_unit_test(test_a_headless_run),
        cmocka_unit_test(test_help_and_version_come_first),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_file_with_nul_is_refused),
        cmocka_unit_test(test_files_are_found),
        cmocka_unit_test(test_out_of_memory_travels_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
