/* gzip in memory. Pure. */
#ifndef CICADA_WORKER_OUTPUT_GZIP_H
#define CICADA_WORKER_OUTPUT_GZIP_H

#include "base/buf.h"

/* Append the compressed bytes. 0, -ERANGE (b's maximum), -ENOMEM. */
MUST_USE int gzip_pack(struct buf *b, struct str bytes);

/* Append what one gzip file holds, its checksum compared. 0; -EPROTO (no gzip, damaged, cut off,
 * bytes behind it), -ERANGE, -ENOMEM. */
MUST_USE int gzip_unpack(struct buf *b, struct str bytes);

#endif
