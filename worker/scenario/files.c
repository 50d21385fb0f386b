#include "worker/scenario/files.h"

#include <sys/stat.h>

#define MAX_PATH_BYTES 8192 /* of the folder and the name */

/* The folder of the scenario with its slash, before the name. */
static int make_path(struct str scenario, struct str name, struct buf *ret)
{
    size_t end = str_starts(name, STR("/")) ? 0 : scenario.len;
    while (end > 0 && scenario.ptr[end - 1] != '/')
        end--;
    int rc = buf_add(ret, str_sub(scenario, 0, end));
    return rc ? rc : buf_add(ret, name);
}

/* A device or a pipe would never end, or wait for ever. */
static int check_regular(const char *path, struct err *err)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return err_set(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return err_set(err, -EINVAL, "%s: is not a file", path);
    return 0;
}

int files_read_beside(const char *scenario, struct str name, struct buf *ret, struct err *err)
{
    struct buf path;
    buf_init(&path, MAX_PATH_BYTES);
    int rc = make_path(str_of(scenario), name, &path);
    if (rc == -ERANGE)
        rc = err_set(err, rc, "the path is too long");
    if (rc == 0)
        rc = check_regular(buf_c(&path), err);
    if (rc == 0)
        rc = buf_read_file(ret, buf_c(&path), err);
    buf_done(&path);
    return rc;
}
