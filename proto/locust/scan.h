/* Is it one whole msgpack value, and one that may be unpacked? Pure; reads the bytes once,
 * allocates nothing. msgpack-c allocates a container by the count it claims and takes trailing
 * bytes for success, so a frame goes through here first. */
#ifndef CICADA_PROTO_LOCUST_SCAN_H
#define CICADA_PROTO_LOCUST_SCAN_H

#include "base/err.h"
#include "base/str.h"

/* 0: exactly one value, no byte behind it, every claimed length and count met by bytes that are
 * there. -EPROTO: not so. -ERANGE: over MESSAGE_MAX_BYTES, _DEPTH or _VALUES. err says which. */
MUST_USE int scan_frame(struct str frame, struct err *err);

#endif
