/* The first byte chooses the kind of list and the size of the chunks. What the scanner takes is
 * compared with jansson. */
#include "base/utf8.h"
#include "facts/facts.h"

#include <jansson.h>
#include <stdlib.h>

static int ignore_event(void *arg, enum json_event event, struct str text, bool cut)
{
    (void)arg;
    (void)event;
    (void)text;
    (void)cut;
    return 0;
}

static int scan(struct str text, size_t step)
{
    static struct json_scan s;
    int rc = 0;
    json_scan_init(&s, ignore_event, NULL);
    for (size_t at = 0; rc == 0 && at < text.len; at += step)
        rc = json_scan_feed(&s, str_sub(text, at, at + step));
    return rc == 0 ? json_scan_end(&s) : rc;
}

static unsigned depth_of(struct str text)
{
    unsigned depth = 0; /* brackets in texts count too: an upper bound */
    for (size_t i = 0; i < text.len; i++)
        depth += text.ptr[i] == '{' || text.ptr[i] == '[';
    return depth;
}

static void compare(struct str text, size_t step)
{
    json_error_t error;
    int ours = scan(text, step);
    if (!utf8_valid(text) || depth_of(text) > JSON_SCAN_DEPTH_MAX ||
        str_find(text, '\0') < text.len) /* jansson steps over a NUL */
        return;                          /* the scanner is laxer, or stricter, by design */
    json_t *root = json_loadb(text.ptr, text.len,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
    bool too_large = !root && json_error_code(&error) == json_error_numeric_overflow;
    if (!too_large && (ours == 0) != (root != NULL))
        abort();
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct list_reader r;
    struct inventory inventory = {0};
    struct cluster_facts facts = {0};
    if (size == 0)
        return 0;
    size_t step = (data[0] >> 1) + 1u;
    struct str text = {(const char *)data + 1, size - 1};
    compare(text, step);
    enum list_kind kind = data[0] & 1 ? LIST_PODS : LIST_NODES;
    list_reader_init(&r, kind, "t", kind == LIST_PODS ? inventory_add_pod : inventory_add_node,
                     &inventory);
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < text.len; at += step)
        rc = list_reader_feed(&r, str_sub(text, at, at + step));
    if (rc == 0)
        rc = list_reader_end(&r);
    if (rc < 0 && r.err.code == 0)
        abort(); /* each refusal has its line */
    if (inventory_facts(&inventory, &facts) < 0)
        abort();
    cluster_facts_done(&facts);
    inventory_done(&inventory);
    return 0;
}
