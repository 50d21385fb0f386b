#include "worker/cli/flags.h"

#include "worker/cli/options.h"

#define FIELD(field) .use = FLAG_USED, .at = offsetof(struct options, field)

const struct flag flag_table[] = {
    /* what is run */
    {"--locustfile", "-f", "LOCUST_LOCUSTFILE", "FILE", "Scenario file (JSON) to run.", FLAG_TEXT,
     FIELD(scenario_file), .group = FLAG_GROUP_LOAD},
    {"--host", "-H", "LOCUST_HOST", "URL",
     "Host to load, as https://www.example.com. It wins over the scenario's; the master's wins "
     "over both.",
     FLAG_TEXT, FIELD(host), .group = FLAG_GROUP_LOAD},
    {"--stop-timeout", "-s", "LOCUST_STOP_TIMEOUT", "TIME",
     "How long a user may take to finish its running task when it is stopped, as 10, 10s or 1m. "
     "The master's value wins over it. Default: 0, cut at once.",
     FLAG_TIMESPAN, FIELD(stop_timeout_s), .group = FLAG_GROUP_LOAD},
    {"--reset-stats", NULL, "LOCUST_RESET_STATS", NULL,
     "Forget what was measured when all users are spawned. Give it to the master too.", FLAG_SWITCH,
     FIELD(reset_stats), .group = FLAG_GROUP_LOAD},

    /* the worker */
    {"--worker", NULL, "LOCUST_MODE_WORKER", NULL, "Attach to a Locust master as its worker.",
     FLAG_SWITCH, FIELD(worker), .group = FLAG_GROUP_WORKER},
    {"--master-host", NULL, "LOCUST_MASTER_NODE_HOST", "HOST",
     "Name or address of the master. Default: 127.0.0.1.", FLAG_TEXT, FIELD(master_host),
     .group = FLAG_GROUP_WORKER},
    {"--master-port", NULL, "LOCUST_MASTER_NODE_PORT", "PORT",
     "The master's port for workers. Default: 5557.", FLAG_NUMBER, FIELD(master_port),
     .group = FLAG_GROUP_WORKER, .min = 1, .max = 65535},
    {"--master-timeout", NULL, "CICADA_MASTER_TIMEOUT", "TIME",
     "Give up after so long without a master; 0: never. Default: 5m.", FLAG_TIMESPAN,
     FIELD(master_timeout_s), .group = FLAG_GROUP_WORKER},
    {"--threads", NULL, "CICADA_THREADS", "N",
     "Threads that make load. Default: one for each CPU this process may use.", FLAG_NUMBER,
     FIELD(threads), .group = FLAG_GROUP_WORKER, .min = 1, .max = OPTIONS_MAX_THREADS},
    {"--processes", NULL, "LOCUST_PROCESSES", "N",
     "Locust's way of using several cores: taken as --threads, -1 as all of them. To the master "
     "this process is one worker.",
     FLAG_NUMBER, FIELD(processes), .group = FLAG_GROUP_WORKER, .min = -1,
     .max = OPTIONS_MAX_THREADS},

    {"--engine", NULL, "CICADA_ENGINE", "NAME",
     "Who speaks HTTP: 'fast' is our own HTTP/1.1, 'curl' is libcurl, 'auto' takes fast where it "
     "can. Default: auto.",
     FLAG_TEXT, FIELD(engine), .group = FLAG_GROUP_WORKER},

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
    {"--help", "-h", NULL, NULL, "Print this and exit.", FLAG_SWITCH, FIELD(help),
     .group = FLAG_GROUP_OTHER},
    {"--version", "-V", NULL, NULL, "Print the version and exit.", FLAG_SWITCH, FIELD(version),
     .group = FLAG_GROUP_OTHER},

    /* standalone runs */
    {"--headless", NULL, "LOCUST_HEADLESS", NULL, NULL, FLAG_SWITCH, FIELD(headless),
     .group = FLAG_GROUP_OTHER},
    {"--users", "-u", "LOCUST_USERS", .kind = FLAG_NUMBER, .use = FLAG_IGNORED},
    {"--spawn-rate", "-r", "LOCUST_SPAWN_RATE", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--run-time", "-t", "LOCUST_RUN_TIME", .kind = FLAG_TIMESPAN, .use = FLAG_IGNORED},
    {"--exit-code-on-error", NULL, "LOCUST_EXIT_CODE_ON_ERROR", .kind = FLAG_NUMBER,
     .use = FLAG_IGNORED},

    /* what would make another process of it */
    {"--master", NULL, "LOCUST_MODE_MASTER",
     .text = "cicada is a worker: the master is Locust's own ('locust --master')",
     .kind = FLAG_SWITCH, .use = FLAG_REFUSED},
    {"--slave", .text = "has been renamed --worker", .kind = FLAG_SWITCH, .use = FLAG_REFUSED},
    {"--list", "-l", .text = "a scenario's user classes cannot be listed yet", .kind = FLAG_SWITCH,
     .use = FLAG_REFUSED},
    {"--show-task-ratio", .text = "the task ratio cannot be shown yet", .kind = FLAG_SWITCH,
     .use = FLAG_REFUSED},
    {"--show-task-ratio-json", .text = "the task ratio cannot be shown yet", .kind = FLAG_SWITCH,
     .use = FLAG_REFUSED},
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
    {"--csv", NULL, "LOCUST_CSV", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--csv-full-history", NULL, "LOCUST_CSV_FULL_HISTORY", .kind = FLAG_SWITCH,
     .use = FLAG_IGNORED},
    {"--print-stats", NULL, "LOCUST_PRINT_STATS", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--only-summary", NULL, "LOCUST_ONLY_SUMMARY", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--html", NULL, "LOCUST_HTML", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--json", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--json-file", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--skip-log-setup", NULL, "LOCUST_SKIP_LOG_SETUP", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--profile", .kind = FLAG_TEXT, .use = FLAG_IGNORED},
    {"--otel", NULL, "LOCUST_ENABLE_OPENTELEMETRY", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},
    {"--expect-slaves", .kind = FLAG_SWITCH, .use = FLAG_IGNORED},

    {"--modern-ui", NULL, "LOCUST_MODERN_UI", .kind = FLAG_SWITCH, .use = FLAG_GONE},
    {"--hatch-rate", NULL, "LOCUST_HATCH_RATE", .kind = FLAG_TEXT, .use = FLAG_GONE},
    {"--step-load", .kind = FLAG_SWITCH, .use = FLAG_GONE},
    {"--step-users", .kind = FLAG_NUMBER, .use = FLAG_GONE},
    {"--step-clients", .kind = FLAG_NUMBER, .use = FLAG_GONE},
    {"--step-time", .kind = FLAG_TIMESPAN, .use = FLAG_GONE},
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

/* One of our own, which Locust does not have. */
static bool is_ours(const struct flag *f)
{
    return f->env && str_starts(str_of(f->env), STR("CICADA_"));
}

static size_t find_prefix(struct str prefix, bool ours, const struct flag **ret)
{
    size_t found = 0;
    for (size_t i = 0; i < flag_count; i++) {
        const struct flag *f = &flag_table[i];
        if (f->use == FLAG_GONE || is_ours(f) != ours || !str_starts(str_of(f->name), prefix))
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
