/* Files as an output needs them: tried before the load, and written whole. Blocking; any thread,
 * one at a time for each path.
 *
 * What is there as a regular file, or not at all, is written under PATH.PID.part and renamed. All
 * else (a symbolic link, a device, a pipe) is opened and written to: a rename would replace it. So
 * is a file that cannot be replaced: in a folder that takes no new ones, or mounted by itself. */
#ifndef CICADA_WORKER_OUTPUT_FILES_H
#define CICADA_WORKER_OUTPUT_FILES_H

#include "base/buf.h"

#define FILES_PROBE_BYTES 4096 /* written on trial: a full disk takes none */

/* Make the folder and those above it. 0, or the errno of what could not be made; err names it. */
MUST_USE int files_make_folder(const char *path, struct err *err);
/* The same for the folder of a file. */
MUST_USE int files_make_parents(const char *path, struct err *err);

/* Could the file be written now? Its folder is made; the file itself is not touched.
 * 0, or the errno that a write would meet: -EACCES, -ENOSPC, -EISDIR, … */
MUST_USE int files_try(const char *path, struct err *err);

/* 0, or the errno of writing; the file is as it was then, unless it was written directly. */
MUST_USE int files_write(const char *path, struct str bytes, struct err *err);

/* A file that grows: emptied now, its folder made. A descriptor, or the errno. */
MUST_USE int files_open_growing(const char *path, struct err *err);
/* All bytes, however many writes it takes. 0, or the errno. */
MUST_USE int files_put(int fd, struct str bytes);

#endif
