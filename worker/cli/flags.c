#include "worker/cli/flags.h"

#include "worker/cli/options.h"

#define FIELD(field) .use = FLAG_USED, .at = offsetof(struct options, field)
#define OF_WORKER    .group = FLAG_GROUP_WORKER, .run = FLAG_RUN_WORKER
#define OF_HEADLESS  .group = FLAG_GROUP_HEADLESS, .run = FLAG_RUN_HEADLESS
#define OF_RUNS      .group = FLAG_GROUP_LOAD, .run = FLAG_RUN_WORKER | FLAG_RUN_HEADLESS
#define OF_CALIBRATE .group = FLAG_GROUP_CALIBRATE, .run = FLAG_RUN_CALIBRATE
#define OF_OUTPUT    .group = FLAG_GROUP_OUTPUT, .run = FLAG_RUN_HEADLESS

const struct flag flag_table[] = {
    /* what is run */
    {"--locustfile", "-f", "LOCUST_LOCUSTFILE", "FILE",
     "What users do: a scenario in JSON, or in YAML as NAME.yaml; tasks in C, NAME.so; a "
     "locustfile, "
     "NAME.py, that 'cicada locustfile' made. For a worker also -: the locustfile of its master.",
     FLAG_TEXT, FIELD(scenario_file), .group = FLAG_GROUP_LOAD},
    {"--host", "-H", "LOCUST_HOST", "URL",
     "Host to load, as https://www.example.com. It wins over the scenario's; the master's wins "
     "over both.",
     FLAG_TEXT, FIELD(host), .group = FLAG_GROUP_LOAD},
    {"--set", NULL, "CICADA_SET", "NAME=VALUE",
     "The value of a variable that the scenario declares; never shown. May be given many times; "
     "the master's custom arguments win over it.",
     FLAG_REPEATED, FIELD(sets), .group = FLAG_GROUP_LOAD},
    {"--stop-timeout", "-s", "LOCUST_STOP_TIMEOUT", "TIME",
     "How long a user may take to finish its running task when it is stopped, as 10, 10s or 1m. "
     "The master's value wins over it. Default: 0, cut at once.",
     FLAG_TIMESPAN, FIELD(stop_timeout_s), OF_RUNS},
    {"--reset-stats", NULL, "LOCUST_RESET_STATS", NULL,
     "Forget what was measured when all users are spawned. Give it to the master too.", FLAG_SWITCH,
     FIELD(reset_stats), OF_RUNS},

    /* a run of its own */
    {"--headless", NULL, "LOCUST_HEADLESS", NULL, "Make the load from here, without a master.",
     FLAG_SWITCH, FIELD(headless), OF_HEADLESS},
    {"--users", "-u", "LOCUST_USERS", "N",
     "Users at the same time. On a terminal w and W add 1 and 10 users, s and S stop as many. "
     "Default: 1.",
     FLAG_NUMBER, FIELD(users), OF_HEADLESS, .min = 0, .max = OPTIONS_MAX_USERS},
    {"--spawn-rate", "-r", "LOCUST_SPAWN_RATE", "RATE", "Users to start a second. Default: 1.",
     FLAG_RATE, FIELD(spawn_rate), OF_HEADLESS},
    {"--run-time", "-t", "LOCUST_RUN_TIME", "TIME",
     "Stop after so long, as 300s, 20m or 1h30m. Default: run until CTRL-C.", FLAG_TIMESPAN,
     FIELD(run_time_s), OF_HEADLESS},
    {"--iterations", NULL, "CICADA_ITERATIONS", "N",
     "Stop when all users together have done so many tasks.", FLAG_NUMBER, FIELD(iterations),
     OF_HEADLESS, .min = 1, .max = INT64_MAX},
    {"--exit-code-on-error", NULL, "LOCUST_EXIT_CODE_ON_ERROR", "N",
     "Exit status when there was any failure. Default: 1.", FLAG_NUMBER, FIELD(exit_code_on_error),
     OF_HEADLESS, .min = 0, .max = 255},
    {"--threshold", NULL, "CICADA_THRESHOLD", "TEXT",
     "What the run must keep to, or the exit status is 99: 'p95 < 300', 'failure_ratio < 1 %', "
     "'GET /items: avg < 100 steady', 'failures < 50 abort after 10s'. May be given many times.",
     FLAG_REPEATED, FIELD(thresholds), OF_HEADLESS},
    {"--fail-if-saturated", NULL, "CICADA_FAIL_IF_SATURATED", NULL,
     "Exit status 98 when this generator was the bottleneck.", FLAG_SWITCH,
     FIELD(fail_if_saturated), OF_HEADLESS},

    /* what one worker sustains */
    {"--target-users", NULL, "CICADA_TARGET_USERS", "N",
     "The wished load, in users: says how many workers it needs.", FLAG_NUMBER, FIELD(target_users),
     OF_CALIBRATE, .min = 1, .max = INT64_C(1000000000000)},
    {"--target-rps", NULL, "CICADA_TARGET_RPS", "RATE", "The same in requests a second.", FLAG_RATE,
     FIELD(target_rps), OF_CALIBRATE},
    {"--cpu-limit", NULL, "CICADA_CPU_LIMIT", "PERCENT",
     "What the busiest thread may use of a core. Default: 80.", FLAG_RATE, FIELD(cpu_limit_pct),
     OF_CALIBRATE},
    {"--lag-limit", NULL, "CICADA_LAG_LIMIT", "MS",
     "How late its event loop may be, in milliseconds. Default: 5.", FLAG_RATE, FIELD(lag_limit_ms),
     OF_CALIBRATE},
    {"--users-max", NULL, "CICADA_USERS_MAX", "N", "Users at the most. Default: 100000.",
     FLAG_NUMBER, FIELD(users_max), OF_CALIBRATE, .min = 1, .max = OPTIONS_MAX_USERS},
    {"--step-time", NULL, "CICADA_STEP_TIME", "TIME",
     "How long each number of users is tried. Default: 3s, or twice as long as users wait.",
     FLAG_TIMESPAN, FIELD(step_time_s), OF_CALIBRATE},
    {"--max-time", NULL, "CICADA_MAX_TIME", "TIME",
     "End after so long at the most. Default: 20 steps, which is a minute.", FLAG_TIMESPAN,
     FIELD(max_time_s), OF_CALIBRATE},

    /* what it leaves behind */
    {"--csv", NULL, "LOCUST_CSV", "PREFIX",
     "Write PREFIX_stats.csv, PREFIX_stats_history.csv, PREFIX_failures.csv and "
     "PREFIX_exceptions.csv.",
     FLAG_TEXT, FIELD(csv_prefix), OF_OUTPUT},
    {"--csv-full-history", NULL, "LOCUST_CSV_FULL_HISTORY", NULL,
     "A row for each entry in the history, not for all together only.", FLAG_SWITCH,
     FIELD(csv_full_history), OF_OUTPUT},
    {"--html", NULL, "LOCUST_HTML", "FILE",
     "Write a report page. {u}, {r} and {t} in the name stand for users, spawn rate and run time.",
     FLAG_TEXT, FIELD(html_file), OF_OUTPUT},
    {"--json", NULL, NULL, NULL, "Print the final stats as JSON on stdout.", FLAG_SWITCH,
     FIELD(json), .group = FLAG_GROUP_OUTPUT, .run = FLAG_RUN_HEADLESS | FLAG_RUN_CALIBRATE},
    {"--json-file", NULL, NULL, "NAME", "Write them to NAME.json.", FLAG_TEXT, FIELD(json_file),
     OF_OUTPUT},
    {"--results-dir", NULL, "CICADA_RESULTS_DIR", "DIR", "Write everything into this folder.",
     FLAG_TEXT, FIELD(results_dir), .group = FLAG_GROUP_OUTPUT},
    {"--dest", NULL, "CICADA_DEST", "DIR",
     "The same, into DIR/runs/NAME/run_date=DATE/run_ts=TIME/run_tag=TAG. Needs --name and --tag.",
     FLAG_TEXT, FIELD(dest), .group = FLAG_GROUP_OUTPUT},
    {"--name", NULL, "CICADA_NAME", "NAME", "Name of the test in the results.", FLAG_TEXT,
     FIELD(test_name), .group = FLAG_GROUP_OUTPUT},
    {"--test-name", NULL, "CICADA_TEST_NAME", "NAME", "The same as --name.", FLAG_TEXT,
     FIELD(test_name), .group = FLAG_GROUP_OUTPUT},
    {"--tag", NULL, "CICADA_TAG", "TAG",
     "Tag of this run in the results. (Which tasks run is said by --tags.)", FLAG_TEXT, FIELD(tag),
     .group = FLAG_GROUP_OUTPUT},
    {"--print-stats", NULL, "LOCUST_PRINT_STATS", NULL,
     "Print plain tables every two seconds also on a terminal.", FLAG_SWITCH, FIELD(print_stats),
     OF_OUTPUT},
    {"--only-summary", NULL, "LOCUST_ONLY_SUMMARY", NULL, "Print the tables at the end only.",
     FLAG_SWITCH, FIELD(only_summary), OF_OUTPUT},

    /* the worker */
    {"--worker", NULL, "LOCUST_MODE_WORKER", NULL, "Attach to a Locust master as its worker.",
     FLAG_SWITCH, FIELD(worker), .group = FLAG_GROUP_WORKER},
    {"--master-host", NULL, "LOCUST_MASTER_NODE_HOST", "HOST",
     "Name or address of the master. Default: 127.0.0.1.", FLAG_TEXT, FIELD(master_host),
     OF_WORKER},
    {"--master-port", NULL, "LOCUST_MASTER_NODE_PORT", "PORT",
     "The master's port for workers. Default: 5557.", FLAG_NUMBER, FIELD(master_port), OF_WORKER,
     .min = 1, .max = 65535},
    {"--master-timeout", NULL, "CICADA_MASTER_TIMEOUT", "TIME",
     "Give up after so long without a master; 0: never. Default: 5m.", FLAG_TIMESPAN,
     FIELD(master_timeout_s), OF_WORKER},
    {"--threads", NULL, "CICADA_THREADS", "N",
     "Threads that make load. Default: one for each CPU this process may use.", FLAG_NUMBER,
     FIELD(threads), .group = FLAG_GROUP_LOAD, .min = 1, .max = OPTIONS_MAX_THREADS},
    {"--processes", NULL, "LOCUST_PROCESSES", "N",
     "Locust's way of using several cores: taken as --threads, -1 as all of them. To the master "
     "this process is one worker.",
     FLAG_NUMBER, FIELD(processes), .group = FLAG_GROUP_LOAD, .min = -1,
     .max = OPTIONS_MAX_THREADS},

    {"--engine", NULL, "CICADA_ENGINE", "NAME",
     "Who speaks HTTP: 'fast' is our own HTTP/1.1, 'curl' is libcurl, 'auto' takes fast where it "
     "can. Default: auto.",
     FLAG_TEXT, FIELD(engine), .group = FLAG_GROUP_LOAD},
    {"--http2", NULL, "CICADA_HTTP2", NULL,
     "Speak HTTP/2, with TLS and without, by the engine 'curl'.", FLAG_SWITCH, FIELD(http2),
     .group = FLAG_GROUP_LOAD},
    {"--proxy", NULL, "CICADA_PROXY", "URL",
     "Send all requests through an HTTP or SOCKS proxy, as http://user:password@host:3128 or "
     "socks5://host:1080, by the engine 'curl'.",
     FLAG_TEXT, FIELD(proxy), .group = FLAG_GROUP_LOAD},

    {"--source-address", NULL, "CICADA_SOURCE_ADDRESS", "ADDRESS",
     "Local IPv4 or IPv6 address to connect from. Given several times, they take turns.",
     FLAG_REPEATED, FIELD(source_addresses), .group = FLAG_GROUP_LOAD},
    {"--phases", NULL, "CICADA_PHASES", NULL,
     "Measure the parts of each request: name look-up, connect, TLS, first byte, body.",
     FLAG_SWITCH, FIELD(phases), OF_RUNS},
    {"--trace-ratio", NULL, "CICADA_TRACE_RATIO", "RATIO",
     "Send so many of the requests (0 to 1) with a W3C traceparent header, and list them in "
     "traces.txt of the results folder. Default: 0.",
     FLAG_RATIO, FIELD(trace_ratio), .group = FLAG_GROUP_OUTPUT,
     .run = FLAG_RUN_WORKER | FLAG_RUN_HEADLESS},

    {"--metrics-port", NULL, "CICADA_METRICS_PORT", "PORT",
     "Serve /metrics for Prometheus, /healthz and /readyz there; 0: any free port.", FLAG_NUMBER,
     FIELD(metrics_port), .group = FLAG_GROUP_METRICS, .min = 0, .max = 65535},
    {"--metrics-address", NULL, "CICADA_METRICS_ADDRESS", "ADDRESS",
     "IPv4 or IPv6 address to serve them at. Default: all.", FLAG_TEXT, FIELD(metrics_address),
     .group = FLAG_GROUP_METRICS},
    {"--metrics-push-url", NULL, "CICADA_METRICS_PUSH_URL", "URL",
     "Put the last figures there at the end: a Pushgateway, as "
     "http://HOST:9091/metrics/job/load/instance/NAME.",
     FLAG_TEXT, FIELD(metrics_push_url), .group = FLAG_GROUP_METRICS},

    /* the report */
    {"--report", NULL, "CICADA_REPORT", "WHO",
     "Which worker reads cluster and servers and reports for the test: 'auto' is the one that the "
     "master gave number 0, 'always' is this one, 'never' is not. Default: auto.",
     FLAG_TEXT, FIELD(report), .group = FLAG_GROUP_REPORT},
    {"--actors-per-user", NULL, "CICADA_ACTORS_PER_USER", "N",
     "Actors on the servers for each user. Default: 1.", FLAG_RATE, FIELD(actors_per_user),
     .group = FLAG_GROUP_REPORT},
    {"--cluster-facts", NULL, "CICADA_CLUSTER_FACTS", NULL,
     "Read nodes and worker pods from Kubernetes. Default: where a service account or a "
     "kubeconfig is at hand.",
     FLAG_SWITCH, FIELD(cluster_facts), .group = FLAG_GROUP_REPORT},
    {"--no-cluster-facts", NULL, "CICADA_NO_CLUSTER_FACTS", NULL, "Do not.", FLAG_SWITCH,
     FIELD(no_cluster_facts), .group = FLAG_GROUP_REPORT},
    {"--worker-pod-namespace", NULL, "CICADA_WORKER_POD_NAMESPACE", "NAME",
     "Namespace of the servers' worker pods. Default: benchmark-workloads; all, when none is "
     "there.",
     FLAG_TEXT, FIELD(worker_pod_namespace), .group = FLAG_GROUP_REPORT},
    {"--worker-pod-selector", NULL, "CICADA_WORKER_POD_SELECTOR", "LABELS",
     "Label selector of these pods. Default: ate.dev/worker-pool.", FLAG_TEXT,
     FIELD(worker_pod_selector), .group = FLAG_GROUP_REPORT},
    {"--machine-type-label", NULL, "CICADA_MACHINE_TYPE_LABEL", "LABEL",
     "Label of nodes that names their machine type. Default: node.kubernetes.io/instance-type.",
     FLAG_TEXT, FIELD(machine_type_label), .group = FLAG_GROUP_REPORT},
    {"--actors-metrics-url", NULL, "CICADA_ACTORS_METRICS_URL", "URL",
     "Page whose gauge locust_actors is sampled each second.", FLAG_TEXT, FIELD(actors_metrics_url),
     .group = FLAG_GROUP_REPORT},
    {"--master-web-url", NULL, "CICADA_MASTER_WEB_URL", "URL",
     "The master's web UI, to know how many users all workers have.", FLAG_TEXT,
     FIELD(master_web_url), .group = FLAG_GROUP_REPORT},
    {"--master-web-auth", NULL, "CICADA_MASTER_WEB_AUTH", "USER:PASSWORD", "Its basic auth.",
     FLAG_TEXT, FIELD(master_web_auth), .group = FLAG_GROUP_REPORT},
    {"--prometheus-url", NULL, "CICADA_PROMETHEUS_URL", "URL",
     "Prometheus to ask, after the run, what the servers went through.", FLAG_TEXT,
     FIELD(prometheus_url), .group = FLAG_GROUP_REPORT},
    {"--prometheus-header", NULL, "CICADA_PROMETHEUS_HEADER", "HEADER",
     "Header for it, as 'X-Scope-OrgID: load'. May be given many times.", FLAG_REPEATED,
     FIELD(prometheus_headers), .group = FLAG_GROUP_REPORT},
    {"--prometheus-bearer-token-file", NULL, "CICADA_PROMETHEUS_BEARER_TOKEN_FILE", "FILE",
     "File with its bearer token.", FLAG_TEXT, FIELD(prometheus_token_file),
     .group = FLAG_GROUP_REPORT},
    {"--prometheus-auth", NULL, "CICADA_PROMETHEUS_AUTH", "USER:PASSWORD", "Its basic auth.",
     FLAG_TEXT, FIELD(prometheus_auth), .group = FLAG_GROUP_REPORT},
    {"--prometheus-ca", NULL, "CICADA_PROMETHEUS_CA", "FILE",
     "Authorities (PEM) to trust for it. Default: the system's.", FLAG_TEXT, FIELD(prometheus_ca),
     .group = FLAG_GROUP_REPORT},
    {"--prometheus-users-query", NULL, "CICADA_PROMETHEUS_USERS_QUERY", "PROMQL",
     "Query for the users of all workers, as 'sum(cicada_users)'.", FLAG_TEXT,
     FIELD(prometheus_users_query), .group = FLAG_GROUP_REPORT},
    {"--telemetry-profile", NULL, "CICADA_TELEMETRY_PROFILE", "NAME",
     "What to ask: 'substrate', 'kubernetes', 'node', or a file of your own. Default: substrate.",
     FLAG_TEXT, FIELD(telemetry_profile), .group = FLAG_GROUP_REPORT},
    {"--telemetry-var", NULL, "CICADA_TELEMETRY_VAR", "NAME=VALUE",
     "Another value for a variable of the profile. May be given many times.", FLAG_REPEATED,
     FIELD(telemetry_vars), .group = FLAG_GROUP_REPORT},
    {"--telemetry-lag", NULL, "CICADA_TELEMETRY_LAG", "TIME",
     "How long after the run to wait, for servers that export on an interval. Default: the "
     "profile's.",
     FLAG_TIMESPAN, FIELD(telemetry_lag_s), .group = FLAG_GROUP_REPORT},
    {"--strict", NULL, "CICADA_STRICT", NULL,
     "Of 'cicada facts': exit with 1 when something is unknown.", FLAG_SWITCH, FIELD(strict),
     .group = FLAG_GROUP_REPORT},

    {"--tags", "-T", "LOCUST_TAGS", "TAG ...", "Run only tasks with one of these tags.", FLAG_LIST,
     FIELD(tags), .group = FLAG_GROUP_TAGS},
    {"--exclude-tags", "-E", "LOCUST_EXCLUDE_TAGS", "TAG ...",
     "Run no task with one of these tags.", FLAG_LIST, FIELD(exclude_tags),
     .group = FLAG_GROUP_TAGS},

    {"--loglevel", "-L", "LOCUST_LOGLEVEL", "LEVEL",
     "DEBUG, INFO, WARNING, ERROR or CRITICAL. Default: INFO.", FLAG_LEVEL, FIELD(log_level),
     .group = FLAG_GROUP_LOG},
    {"--logfile", NULL, "LOCUST_LOGFILE", "FILE", "Where the log goes. Default: stderr.", FLAG_TEXT,
     FIELD(log_file), .group = FLAG_GROUP_LOG},

    {"--config", NULL, NULL, "FILE",
     "Configuration file to read besides ~/.locust.conf, locust.conf and pyproject.toml.",
     FLAG_TEXT, FIELD(config_file), .group = FLAG_GROUP_OTHER},
    {"--list", "-l", NULL, NULL, "Print the names of the user classes and exit.", FLAG_SWITCH,
     FIELD(list), .group = FLAG_GROUP_OTHER},
    {"--show-task-ratio", NULL, NULL, NULL, "Print the shares of user classes and tasks and exit.",
     FLAG_SWITCH, FIELD(show_task_ratio), .group = FLAG_GROUP_OTHER},
    {"--show-task-ratio-json", NULL, NULL, NULL, "The same as JSON.", FLAG_SWITCH,
     FIELD(show_task_ratio_json), .group = FLAG_GROUP_OTHER},
    {"--help", "-h", NULL, NULL, "Print this and exit.", FLAG_SWITCH, FIELD(help),
     .group = FLAG_GROUP_OTHER},
    {"--version", "-V", NULL, NULL, "Print the version and exit.", FLAG_SWITCH, FIELD(version),
     .group = FLAG_GROUP_OTHER},

    /* what would make another process of it */
    {"--master", NULL, "LOCUST_MODE_MASTER",
     .text = "cicada is a worker: the master is Locust's own ('locust --master')",
     .kind = FLAG_SWITCH, .use = FLAG_REFUSED},
    {"--slave", .text = "has been renamed --worker", .kind = FLAG_SWITCH, .use = FLAG_REFUSED},
    {"--config-users", NULL, "LOCUST_CONFIG_USERS",
     .text = "user classes cannot be configured here yet: write it into the scenario",
     .kind = FLAG_LIST, .use = FLAG_REFUSED},
    {"--equal-weights",
     .text = "weights cannot be overridden here yet: write them into the scenario",
     .kind = FLAG_SWITCH, .use = FLAG_REFUSED},

    /* the master's and the web UI's */
    {"--master-bind-host", NULL, "LOCUST_MASTER_BIND_HOST", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--master-bind-port", NULL, "LOCUST_MASTER_BIND_PORT", .kind = FLAG_NUMBER,
     .use = FLAG_IGNORED},
    {"--expect-workers", NULL, "LOCUST_EXPECT_WORKERS", .kind = FLAG_NUMBER, .use = FLAG_IGNORED},
    {"--expect-workers-max-wait", NULL, "LOCUST_EXPECT_WORKERS_MAX_WAIT", .kind = FLAG_NUMBER,
     .use = FLAG_IGNORED},
    {"--enable-rebalancing", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--web-host", NULL, "LOCUST_WEB_HOST", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--web-host-display-name", NULL, "LOCUST_WEB_HOST_DISPLAY_NAME", .kind = FLAG_TEXT,
     .use = FLAG_IGNORED},
    {"--web-port", "-P", "LOCUST_WEB_PORT", .kind = FLAG_NUMBER, .use = FLAG_IGNORED},
    {"--web-base-path", NULL, "LOCUST_WEB_BASE_PATH", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--web-login", NULL, "LOCUST_WEB_LOGIN", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--web-auth", NULL, "LOCUST_WEB_AUTH", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--tls-cert", NULL, "LOCUST_TLS_CERT", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--tls-key", NULL, "LOCUST_TLS_KEY", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--class-picker", NULL, "LOCUST_USERCLASS_PICKER", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--build-path", NULL, "LOCUST_BUILD_PATH", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--legacy-ui", NULL, "LOCUST_LEGACY_UI", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--headful", NULL, "LOCUST_HEADFUL", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--autostart", NULL, "LOCUST_AUTOSTART", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--autoquit", NULL, "LOCUST_AUTOQUIT", .kind = FLAG_NUMBER, .use = FLAG_IGNORED},
    {"--skip-log-setup", NULL, "LOCUST_SKIP_LOG_SETUP", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--profile", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--otel", NULL, "LOCUST_ENABLE_OPENTELEMETRY", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--expect-slaves", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},

    {"--modern-ui", NULL, "LOCUST_MODERN_UI", .kind = FLAG_SWITCH, .use = FLAG_GONE},
    {"--hatch-rate", NULL, "LOCUST_HATCH_RATE", .kind = FLAG_TEXT, .use = FLAG_GONE},
    {"--step-load", .kind = FLAG_SWITCH, .use = FLAG_GONE},
    {"--step-users", .kind = FLAG_NUMBER, .use = FLAG_GONE},
    {"--step-clients", .kind = FLAG_NUMBER, .use = FLAG_GONE},
};

const size_t flag_count = sizeof flag_table / sizeof *flag_table;

_Static_assert(sizeof flag_table / sizeof *flag_table <= FLAG_MAX_COUNT,
               "one bit of state a flag is kept in arrays of FLAG_MAX_COUNT");

const struct flag *flag_find(struct str name)
{
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        if (str_eq(name, str_of(f->name)) || (f->letter && str_eq(name, str_of(f->letter))))
            return f;
    }
    return NULL;
}

const struct flag *flag_find_key(struct str key)
{
    if (str_starts(key, STR("--")))
        key = str_sub(key, 2, key.len);
    for (size_t i = 0; i < flag_count; i++) {
        if (str_eq(key, str_of(flag_table[i].name + 2)))
            return &flag_table[i];
    }
    return NULL;
}

bool flag_is_own(const struct flag *f)
{
    return f->env && str_starts(str_of(f->env), STR("CICADA_"));
}

static size_t find_prefix(struct str prefix, bool own, const struct flag **ret)
{
    size_t found = 0;
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        if (f->use == FLAG_GONE || flag_is_own(f) != own || !str_starts(str_of(f->name), prefix))
            continue;
        if (found++ == 0)
            *ret = f;
    }
    return found;
}

size_t flag_find_prefix(struct str prefix, const struct flag **ret)
{
    size_t found = find_prefix(prefix, false, ret);
    return found > 0 ? found : find_prefix(prefix, true, ret);
}

#define NEAREST_BYTES 40 /* of a mistyped flag; longer ones resemble none */

/* Edits (insert, delete, replace a byte) that make a into b; both at most NEAREST_BYTES long. */
static size_t edits(struct str a, struct str b)
{
    size_t row[NEAREST_BYTES + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t replace = corner + (a.ptr[i - 1] != b.ptr[j - 1]);
            size_t insert = row[j - 1] + 1, delete = row[j] + 1;
            corner = row[j];
            row[j] = replace < insert ? replace : insert;
            row[j] = row[j] < delete ? row[j] : delete;
        }
    }
    return row[b.len];
}

const struct flag *flag_nearest(struct str text)
{
    while (text.len > 0 && text.ptr[0] == '-')
        text = str_sub(text, 1, text.len);
    if (text.len < 2 || text.len > NEAREST_BYTES)
        return NULL;
    const struct flag *nearest = NULL;
    size_t least = text.len / 3 + 1; /* a third of it wrong, or more, is another word */
    for (size_t i = 0; i < flag_count; i++) {
        struct str name = str_of(flag_table[i].name + 2);
        if (flag_table[i].use == FLAG_GONE || name.len > NEAREST_BYTES)
            continue;
        size_t n = edits(text, name);
        if (n < least || (n == least && !nearest)) {
            least = n;
            nearest = &flag_table[i];
        }
    }
    return nearest;
}
