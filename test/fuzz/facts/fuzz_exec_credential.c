#include "base/base64.h"
#include "facts/exec_plugin.h"
#include "facts/lists.h"

#include <stdint.h>
#include <stdlib.h>

/* What a plugin prints, and beside it the two other small texts that come from outside: base64 and
 * a Status. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct buf token, cert, key;
    struct err err = {0};
    char message[100];
    buf_init(&token, 1000);
    buf_init(&cert, 1000);
    buf_init(&key, 1000);
    int rc = exec_plugin_parse(text, "client.authentication.k8s.io/v1", &token, &cert, &key, &err);
    if (rc < 0 && err.code == 0)
        abort();
    buf_clear(&token);
    if (base64_decode(&token, text) == 0) {
        buf_clear(&cert);
        if (base64_encode(&cert, buf_str(&token)) == 0 && str_find(text, '\n') == text.len &&
            str_find(text, '\r') == text.len && cert.len != text.len)
            abort();
    }
    (void)list_status_message(text, message, sizeof message); /* any outcome is fine */
    buf_done(&token);
    buf_done(&cert);
    buf_done(&key);
    return 0;
}
