#include "worker/scenario/task_file.h"

#include "worker/scenario/plan_native.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

bool task_file_is_one(const char *path)
{
    return str_ends(str_of(path), STR(".so"));
}

int task_file_load(const char *path, const struct plan_tags *tags, struct plan **ret,
                   struct err *err)
{
    char whole[PATH_MAX];
    if (!realpath(path, whole)) { /* a bare name would be looked for in the library path */
        int rc = -errno;
        return err_set(err, rc, "%s: %s", path, strerror(-rc));
    }
    void *object = dlopen(whole, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return err_set(err, -EINVAL, "%s: cannot be loaded: %s", path, dlerror());
    const struct cicada_test *test = dlsym(object, "cicada_test");
    if (!test)
        return err_set(err, -EINVAL,
                       "%s: has no symbol 'cicada_test': tasks in C are given by CICADA_TEST, see "
                       "cicada.h",
                       path);
    return plan_load_native(test, path, tags, ret, err);
}
