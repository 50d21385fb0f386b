/* The shell around the inventory: three questions to the API server at most. Nodes and pods are
 * asked at once, each on its own connection, and read as streams. resourceVersion=0 lets the server
 * answer from its cache, in one piece. */
#include "facts/facts.h"

#include <stdio.h>
#include <stdlib.h>

#define URL_BYTES (16u * 1024)

/* One list on its way. */
struct question {
    struct buf url;
    struct list_reader reader;
    struct http_answer answer;
};

static int list_sink(void *arg, struct str bytes)
{
    return list_reader_feed(arg, bytes);
}

static const char *or_default(const char *text, const char *instead)
{
    return text && *text ? text : instead;
}

static int nodes_url(const struct credentials *c, struct buf *url)
{
    return buf_printf(url, "%s/api/v1/nodes?resourceVersion=0", c->server);
}

/* pod_namespace NULL: of all namespaces. */
static int pods_url(const struct credentials *c, const char *pod_namespace, const char *selector,
                    struct buf *url)
{
    int rc = buf_printf(url, "%s/api/v1/", c->server);
    if (rc == 0 && pod_namespace) {
        rc = buf_add(url, STR("namespaces/"));
        if (rc == 0)
            rc = http_escape(url, str_of(pod_namespace));
        if (rc == 0)
            rc = buf_add_byte(url, '/');
    }
    if (rc == 0)
        rc = buf_add(url, STR("pods?resourceVersion=0&labelSelector="));
    if (rc == 0)
        rc = http_escape(url, str_of(selector));
    return rc;
}

static void prepare(const struct facts_options *o, const struct credentials *c, struct question *q,
                    struct http_query *ret)
{
    static const char *const headers[] = {"Accept: application/json"};
    *ret = (struct http_query){
        .url = buf_c(&q->url),
        .headers = headers,
        .header_count = 1,
        .timeout_ms = o->timeout_ms ? o->timeout_ms : FACTS_TIMEOUT_MS,
        .max_bytes = FACTS_ANSWER_BYTES,
        .sink = list_sink,
        .sink_arg = &q->reader,
    };
    credentials_apply(c, ret);
}

/* Is the list whole and read? If not, one line why. */
static bool judge(struct question *q, char why[static FACTS_WHY_BYTES])
{
    struct http_answer *a = &q->answer;
    char message[FACTS_WHY_BYTES - 64];
    if (http_answer_ok(a) && list_reader_end(&q->reader) == 0)
        return true;
    if (q->reader.err.code)
        (void)snprintf(why, FACTS_WHY_BYTES, "%.300s", q->reader.err.text); /* cut is fine */
    else if (list_status_message(buf_str(&a->body), message, sizeof message))
        (void)snprintf(why, FACTS_WHY_BYTES, "%.60s: %s", a->error, message); /* cut is fine */
    else
        (void)snprintf(why, FACTS_WHY_BYTES, "%s", a->error); /* fits */
    return false;
}

static struct question *question_new(enum list_kind kind, const struct facts_options *o,
                                     struct inventory *i)
{
    struct question *q = calloc(1, sizeof *q);
    if (!q)
        return NULL;
    buf_init(&q->url, URL_BYTES);
    list_reader_init(&q->reader, kind, or_default(o->machine_type_label, FACTS_MACHINE_TYPE_LABEL),
                     kind == LIST_NODES ? inventory_add_node : inventory_add_pod, i);
    return q;
}

static void question_free(struct question *q)
{
    if (!q)
        return;
    http_answer_done(&q->answer);
    buf_done(&q->url);
    free(q);
}

/* Nodes, and the pods of the one namespace. */
static int ask_both(const struct facts_options *o, const struct credentials *c, struct inventory *i,
                    struct cluster_facts *ret)
{
    struct question *nodes = question_new(LIST_NODES, o, i), *pods = question_new(LIST_PODS, o, i);
    int rc = nodes && pods ? nodes_url(c, &nodes->url) : -ENOMEM;
    if (rc == 0)
        rc = pods_url(c, or_default(o->pod_namespace, FACTS_POD_NAMESPACE),
                      or_default(o->pod_selector, FACTS_POD_SELECTOR), &pods->url);
    if (rc == 0) {
        struct http_query requests[2];
        struct http_answer answers[2];
        prepare(o, c, nodes, &requests[0]);
        prepare(o, c, pods, &requests[1]);
        rc = http_fetch(requests, 2, o->abort_fd, answers);
        nodes->answer = answers[0];
        pods->answer = answers[1];
        if (!judge(nodes, ret->why[FACTS_NODES]))
            inventory_clear_nodes(i);
        if (!judge(pods, ret->why[FACTS_PODS]))
            inventory_clear_pods(i);
    }
    question_free(nodes);
    question_free(pods);
    return rc;
}

static int ask_all_namespaces(const struct facts_options *o, const struct credentials *c,
                              struct inventory *i, struct cluster_facts *ret)
{
    struct question *pods = question_new(LIST_PODS, o, i);
    int rc = pods ? pods_url(c, NULL, or_default(o->pod_selector, FACTS_POD_SELECTOR), &pods->url)
                  : -ENOMEM;
    if (rc == 0) {
        struct http_query request;
        char why[FACTS_WHY_BYTES] = "";
        inventory_clear_pods(i);
        prepare(o, c, pods, &request);
        rc = http_fetch(&request, 1, o->abort_fd, &pods->answer);
        if (!judge(pods, why)) {
            inventory_clear_pods(i);
            (void)snprintf(ret->why[FACTS_PODS], FACTS_WHY_BYTES,
                           "none in namespace %.63s; in all namespaces: %.200s",
                           or_default(o->pod_namespace, FACTS_POD_NAMESPACE),
                           why); /* cut is fine */
        }
    }
    question_free(pods);
    return rc;
}

int facts_read(const struct facts_options *options, struct cluster_facts *ret)
{
    struct credentials c;
    struct inventory i = {0};
    struct err err = {0};
    *ret = (struct cluster_facts){0};
    int rc = credentials_load(&options->credentials, options->abort_fd, &c, &err);
    if (rc < 0) {
        (void)snprintf(ret->why[FACTS_ACCESS], FACTS_WHY_BYTES, "%.300s", err.text);
        return rc == -ENOMEM ? rc : 0;
    }
    rc = ask_both(options, &c, &i, ret);
    if (rc == 0 && i.live_pods == 0 && !ret->why[FACTS_PODS][0])
        rc = ask_all_namespaces(options, &c, &i, ret);
    if (rc == 0)
        rc = inventory_facts(&i, ret);
    inventory_done(&i);
    credentials_done(&c);
    if (rc < 0) {
        cluster_facts_done(ret);
        *ret = (struct cluster_facts){0};
        (void)snprintf(ret->why[FACTS_ACCESS], FACTS_WHY_BYTES, "%s", strerror(-rc));
    }
    return rc == -ENOMEM ? rc : 0;
}
