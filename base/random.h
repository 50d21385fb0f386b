/* Pseudo-random numbers (xoshiro256**): one generator per shard or user, never shared. Not for
 * secrets. Source: Blackman and Vigna, "Scrambled linear pseudorandom number generators". */
#ifndef CICADA_BASE_RANDOM_H
#define CICADA_BASE_RANDOM_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* The same seed gives the same numbers. */
void rng_init(struct rng *r, uint64_t seed);

/* A seed from the kernel; falls back to the clock. */
uint64_t rng_seed_from_system(void);

uint64_t rng_u64(struct rng *r);

/* 0 <= v < 1, in steps of 2^-53. */
double rng_unit(struct rng *r);

/* 0 <= v < limit without bias; limit > 0. */
uint64_t rng_below(struct rng *r, uint64_t limit);

#endif
