#include "base/base64.h"

#include <stdint.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Four letters, of which the last two may be padding, to one to three bytes. */
static int add_group(struct buf *b, const char group[static 4])
{
    uint32_t bits = 0;
    size_t bytes = 3;
    for (size_t i = 0; i < 4; i++) {
        const char *found = group[i] ? strchr(letters, group[i]) : NULL;
        bool padding = group[i] == '=' && i >= 2 && (i == 3 || group[3] == '=');
        if (!found && !padding)
            return -EINVAL;
        bits = bits << 6 | (found ? (uint32_t)(found - letters) : 0);
        bytes -= padding;
    }
    char out[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
    return buf_add(b, (struct str){out, bytes});
}

int base64_decode(struct buf *b, struct str text)
{
    char group[4];
    size_t n = 0;
    bool ended = false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\n' || text.ptr[i] == '\r')
            continue;
        if (ended)
            return -EINVAL;
        group[n++] = text.ptr[i];
        if (n < 4)
            continue;
        int rc = add_group(b, group);
        if (rc < 0)
            return rc;
        ended = group[3] == '=';
        n = 0;
    }
    return n == 0 ? 0 : -EINVAL;
}

int base64_encode(struct buf *b, struct str bytes)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)bytes.ptr[i + k] : 0u);
        char out[4] = {letters[bits >> 18], letters[bits >> 12 & 63], letters[bits >> 6 & 63],
                       letters[bits & 63]};
        memset(out + n + 1, '=', 3 - n);
        rc = buf_add(b, (struct str){out, 4});
    }
    return rc;
}
