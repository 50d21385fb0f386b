#include "worker/stats/error_key.h"

#include "worker/stats/pyrepr.h"

#include <openssl/evp.h>
#include <stdio.h>

#define TARGET STR("object at 0x")
#define FOLDED STR("0x....")

/* The address in the text, from its "0x" to before the ">"; empty when there is none. */
static struct str address_in(struct str text)
{
    size_t at = str_find_str(text, TARGET);
    if (at == text.len)
        return (struct str){NULL, 0};
    struct str rest = str_sub(text, at + TARGET.len - 2, text.len);
    size_t end = str_find(rest, '>');
    return end == rest.len ? (struct str){NULL, 0} : str_sub(rest, 0, end);
}

int error_text_add(struct buf *b, struct str text)
{
    struct str address = address_in(text);
    size_t before = b->len;
    int rc = 0;
    while (rc == 0 && address.len > 0) {
        size_t at = str_find_str(text, address);
        if (at == text.len)
            break;
        rc = buf_add(b, str_sub(text, 0, at));
        if (rc == 0)
            rc = buf_add(b, FOLDED);
        text = str_sub(text, at + address.len, text.len);
    }
    if (rc == 0)
        rc = buf_add(b, text);
    if (rc < 0 && b->ptr) {
        b->len = before;
        b->ptr[before] = '\0';
    }
    return rc;
}

static int add_key_text(struct buf *b, struct str method, struct str name, struct str text)
{
    int rc = buf_add(b, method);
    if (rc == 0)
        rc = buf_add_byte(b, '.');
    if (rc == 0)
        rc = buf_add(b, name);
    if (rc == 0)
        rc = buf_add_byte(b, '.');
    if (rc < 0)
        return rc;
    struct buf folded;
    buf_init(&folded, SIZE_MAX - 1);
    rc = error_text_add(&folded, text);
    if (rc == 0)
        rc = pyrepr_add(b, buf_str(&folded));
    buf_done(&folded);
    return rc;
}

int error_key(struct str method, struct str name, struct str text, char ret[static ERROR_KEY_BYTES])
{
    struct buf b;
    buf_init(&b, SIZE_MAX - 1);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n = 0;
    int rc = add_key_text(&b, method, name, text);
    if (rc == 0 && EVP_Digest(b.ptr, b.len, digest, &n, EVP_sha256(), NULL) != 1)
        rc = -ENOMEM;
    for (unsigned int i = 0; rc == 0 && i < n && 2 * i + 2 < ERROR_KEY_BYTES; i++)
        (void)snprintf(ret + 2 * (size_t)i, 3, "%02x", digest[i]); /* two digits always fit */
    buf_done(&b);
    return rc;
}
