#include "telemetry/profile_checks.h"

#include <ctype.h>
#include <stdlib.h>

bool profile_path_valid(struct str path)
{
    struct str rest = path, part;
    bool first = true;
    if (path.len > PROFILE_NAME_BYTES)
        return false;
    while (str_next(&rest, '.', &part)) {
        if (part.len == 0 || (first && str_eq(part, STR("metadata"))))
            return false;
        for (size_t i = 0; i < part.len; i++) {
            if (!isalnum((unsigned char)part.ptr[i]) && part.ptr[i] != '_')
                return false;
        }
        first = false;
    }
    return true;
}

/* A set of names as one JSON object: its keys are the names, jansson does the hashing. */
struct names {
    json_t *taken;
    bool paths; /* a path may not lie within another either */
};

static int taken(const char *name, struct err *err)
{
    return err_set(err, -EINVAL, "the name '%s' is taken already", name);
}

/* Mark the folders above the path, so that no result becomes one of them. */
static int add_folders(struct names *n, const char *name, struct err *err)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        size_t length = (size_t)(dot - name);
        const json_t *old = json_object_getn(n->taken, name, length);
        if (json_is_true(old))
            return err_set(err, -EINVAL, "'%s' lies within the result '%.*s'", name, (int)length,
                           name);
        if (!old && json_object_setn_new(n->taken, name, length, json_false()) < 0)
            return err_set(err, -ENOMEM, "out of memory");
    }
    return 0;
}

static int add_name(struct names *n, const char *name, struct err *err)
{
    if (json_object_get(n->taken, name))
        return taken(name, err);
    int rc = n->paths ? add_folders(n, name, err) : 0;
    if (rc == 0 && json_object_set_new(n->taken, name, json_true()) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    return rc;
}

static int add_pattern(struct names *n, const char *pattern, struct err *err)
{
    struct braced b;
    struct str item = {NULL, 0};
    if (!braced_parse(str_of(pattern), &b)) /* checked before; a second check costs nothing */
        return err_set(err, -EINVAL, "unmatched braces");
    size_t count = b.has_items ? braced_count(&b) : 1;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        struct buf name;
        buf_init(&name, 2 * PROFILE_NAME_BYTES);
        (void)braced_item(&b, i, &item); /* stays empty without braces */
        if (braced_add(&name, &b, item) < 0)
            rc = err_set(err, -ENOMEM, "out of memory");
        else
            rc = add_name(n, buf_c(&name), err);
        buf_done(&name);
    }
    return rc;
}

int profile_check_names(const struct profile *p, struct err *err)
{
    struct names paths = {json_object(), true}, flats = {json_object(), false};
    int rc = paths.taken && flats.taken ? 0 : err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < p->count; i++) {
        const struct profile_measurement *m = &p->measurements[i];
        rc = add_pattern(&paths, m->name, err);
        if (rc == 0 && m->count_as)
            rc = add_name(&paths, m->count_as, err);
        if (rc == 0 && m->flat)
            rc = add_pattern(&flats, m->flat, err);
        if (rc < 0)
            (void)err_prefix(err, "measurements[%zu]", i); /* rc is returned below */
    }
    json_decref(paths.taken);
    json_decref(flats.taken);
    return rc;
}
