#include "base/random.h"

#include "base/clock.h"

#include <sys/random.h>

static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

/* splitmix64 spreads any seed, 0 too, over the state */
void rng_init(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        r->s[i] = z ^ z >> 31;
    }
}

uint64_t rng_seed_from_system(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = clock_mono_us();
    return seed;
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s, result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double rng_unit(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1.0p-53;
}

uint64_t rng_below(struct rng *r, uint64_t limit)
{
    /* Lemire: the high half of a product, with the few values that would bias it drawn again */
    unsigned __int128 product = (unsigned __int128)rng_u64(r) * limit;
    if ((uint64_t)product < limit) {
        uint64_t least = (0 - limit) % limit;
        while ((uint64_t)product < least)
            product = (unsigned __int128)rng_u64(r) * limit;
    }
    return (uint64_t)(product >> 64);
}
