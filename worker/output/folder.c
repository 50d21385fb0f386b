#include "worker/output/folder.h"

#include "base/log.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int check(const char *flag, const char *value, struct err *err)
{
    char quoted[LOG_QUOTED_BYTES];
    struct str s = str_of(value);
    if (s.len == 0)
        return err_set(err, -EINVAL, "--dest needs %s too: it names a folder", flag);
    bool bad =
        s.len > FOLDER_NAME_BYTES || !utf8_valid(s) || str_eq(s, STR(".")) || str_eq(s, STR(".."));
    for (size_t i = 0; i < s.len; i++)
        bad |= s.ptr[i] == '/' || (unsigned char)s.ptr[i] < 0x20 || s.ptr[i] == 0x7F;
    if (bad)
        return err_set(err, -EINVAL, "%s: must be the name of a folder, at most %d bytes, not %s",
                       flag, FOLDER_NAME_BYTES, log_quote(s, quoted));
    return 0;
}

int folder_path(const char *dest, const char *name, const char *tag, double now_s, char **ret,
                struct err *err)
{
    int rc = check("--name", name, err);
    if (rc == 0)
        rc = check("--tag", tag, err);
    if (rc < 0)
        return rc;
    time_t seconds = (time_t)now_s;
    struct tm t;
    char *path;
    if (!gmtime_r(&seconds, &t))
        return err_set(err, -ERANGE, "the clock shows no year of ours");
    if (asprintf(&path, "%s/runs/%s/run_date=%04d-%02d-%02d/run_ts=%" PRId64 "/run_tag=%s", dest,
                 name, t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, (int64_t)seconds, tag) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    *ret = path;
    return 0;
}
