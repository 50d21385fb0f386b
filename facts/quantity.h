/* Kubernetes quantities ("3920m", "13591700Ki", "1e3"), held exactly as a whole number of
 * nano-units so that sums do not round. Pure functions, any thread.
 *
 * What is accepted, and its value, is what Kubernetes' own parser says, oddities included: a finer
 * value than a nano-unit is rounded away from zero, a binary one is capped at 2^63-1, and a text
 * without digits may be zero ("m", ".").
 * Source: k8s.io/apimachinery pkg/api/resource ParseQuantity, v0.34. */
#ifndef CICADA_FACTS_QUANTITY_H
#define CICADA_FACTS_QUANTITY_H

#include "base/err.h"
#include "base/str.h"

struct quantity {
    __int128 nano;
};

/* The whole text as a quantity.
 * 0; -EINVAL (Kubernetes refuses it); -ERANGE (Kubernetes takes it, but it is 1.7e29 or more). */
MUST_USE int quantity_parse(struct str text, struct quantity *ret);

/* 0, or -ERANGE with the sum unchanged. */
MUST_USE int quantity_add(struct quantity *sum, struct quantity more);

/* The double nearest to the value in units (cores), and in units of 2^30 (GiB): rounded once. */
double quantity_units(struct quantity q);
double quantity_gib(struct quantity q);

#endif
