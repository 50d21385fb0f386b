#include "facts/kubeconfig.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kubeconfig k = {0};
    struct kube_login l;
    struct err err = {0};
    /* a NUL parts two files */
    struct str rest = {(const char *)data, size}, part;
    while (rest.ptr && str_next(&rest, '\0', &part)) {
        if (kubeconfig_add(&k, part, "folder/config", &err) < 0)
            break;
    }
    if (kubeconfig_login(&k, NULL, &l, &err) == 0)
        kube_login_done(&l);
    kubeconfig_done(&k);
    return 0;
}
