#include "worker/output/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(struct err *err, const char *path, int error)
{
    return err_set(err, -error, "%s: %s", path, strerror(error));
}

/* Make one folder that may be there. */
static int make_one(const char *path, struct err *err)
{
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    if (error == EEXIST)
        return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : failed(err, path, ENOTDIR);
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : failed(err, path, error);
}

int files_make_folder(const char *path, struct err *err)
{
    char *copy = strdup(path);
    if (!copy)
        return err_set(err, -ENOMEM, "out of memory");
    int rc = 0;
    for (char *p = copy; rc == 0 && *p; p++) {
        if (*p != '/' || p == copy)
            continue;
        *p = '\0';
        rc = make_one(copy, err);
        *p = '/';
    }
    if (rc == 0)
        rc = make_one(copy, err);
    free(copy);
    return rc;
}

int files_make_parents(const char *path, struct err *err)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return 0;
    char *folder = strndup(path, (size_t)(slash - path));
    int rc = folder ? files_make_folder(folder, err) : err_set(err, -ENOMEM, "out of memory");
    free(folder);
    return rc;
}

/* May it be replaced by a rename? */
static bool is_replaceable(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0 || S_ISREG(st.st_mode);
}

/* A file in a folder that takes no new ones, or mounted by itself, cannot be replaced; if it can be
 * written to, that is what its owner meant. */
static bool is_to_be_kept(const char *path, int rc)
{
    return (rc == -EACCES || rc == -EPERM || rc == -EROFS || rc == -EBUSY) &&
           access(path, W_OK) == 0;
}

/* Of this process: another one may write the same file just now. */
static char *part_of(const char *path)
{
    char *part;
    return asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0 ? NULL : part;
}

int files_put(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.ptr, bytes.len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            bytes = str_sub(bytes, (size_t)n, bytes.len);
    }
    return 0;
}

static int open_to_write(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return fd < 0 ? -errno : fd;
}

/* Open, write, close: some file systems tell only at the close that there is no room. */
static int write_to(const char *path, struct str bytes)
{
    int fd = open_to_write(path);
    if (fd < 0)
        return fd;
    int rc = files_put(fd, bytes);
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

int files_try(const char *path, struct err *err)
{
    static const char blank[FILES_PROBE_BYTES];
    struct stat st;
    int rc = files_make_parents(path, err);
    if (rc < 0)
        return rc;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return failed(err, path, EISDIR);
    if (exists && access(path, W_OK) < 0)
        return failed(err, path, errno);
    if (!is_replaceable(path))
        return 0; /* opening a pipe would wait for its reader */
    char *part = part_of(path);
    if (!part)
        return err_set(err, -ENOMEM, "out of memory");
    rc = write_to(part, (struct str){blank, sizeof blank});
    (void)unlink(part); /* when it could not be made, it is not there */
    free(part);
    return rc < 0 && !is_to_be_kept(path, rc) ? failed(err, path, -rc) : 0;
}

int files_write(const char *path, struct str bytes, struct err *err)
{
    int rc;
    if (!is_replaceable(path)) {
        rc = write_to(path, bytes);
        return rc < 0 ? failed(err, path, -rc) : 0;
    }
    char *part = part_of(path);
    if (!part)
        return err_set(err, -ENOMEM, "out of memory");
    rc = write_to(part, bytes);
    if (rc == 0 && rename(part, path) < 0)
        rc = -errno;
    if (rc < 0)
        (void)unlink(part); /* half a file is of no use to anybody */
    free(part);
    if (is_to_be_kept(path, rc))
        rc = write_to(path, bytes);
    return rc < 0 ? failed(err, path, -rc) : 0;
}

int files_open_growing(const char *path, struct err *err)
{
    int rc = files_make_parents(path, err);
    if (rc < 0)
        return rc;
    int fd = open_to_write(path);
    return fd < 0 ? failed(err, path, -fd) : fd;
}
