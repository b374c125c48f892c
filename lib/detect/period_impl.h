/* SPDX-License-Identifier: Apache-2.0 */
/*
 * period_impl.h - what the files of period share; for them alone.
 *
 *   period.c         the machine: following, being lost, finding back
 *   period_learn.c   the least period of what was heard
 *   period_table.c   patterns, shared
 */
#ifndef EP_DETECT_PERIOD_IMPL_H
#define EP_DETECT_PERIOD_IMPL_H

#include "detect/period.h"

#define REPEATS 3 /* whole periods that confirm one */

/* The calls of an iteration, as the least of their rotations. */
struct pattern {
    struct pattern *next; /* of the same slot of the table */
    uint64_t hash;
    uint64_t bloom;  /* bit symbol % 64 of each call */
    uint32_t n;      /* calls */
    uint32_t unique; /* so many calls of its beginning are nowhere else in it */
    uint32_t refs, number, at; /* at: its place in the table's list */
    bool gaps;                 /* of classes of gaps, see ep_pattern_symbol */
    uint64_t *w;               /* [n] */
    uint32_t *fail; /* [n] longest border of the first k calls; 0 for k = 0 */
};

struct ep_period_table {
    struct pattern **slot;
    size_t slots; /* a power of two */
    struct pattern **list;
    size_t n, cap;
    uint32_t numbers; /* given away */
    uint32_t changes; /* patterns that came */
    size_t lent;      /* bytes of buffers beyond the first size */
};

/* Of calls w[0..n), in whatever rotation; one reference more. */
struct pattern *ep_pattern_get(struct ep_period_table *t, uint64_t *w,
                               uint32_t n, bool gaps);
struct pattern *ep_pattern_ref(struct pattern *x);
void ep_pattern_unref(struct ep_period_table *t, struct pattern *x);

/* A symbol with the class of the gap before it. Large is the lesser, so that
   a pattern begins behind a large gap. */
static inline uint64_t ep_gap_symbol(uint64_t symbol, bool large)
{
    return large ? symbol >> 1 : symbol | UINT64_C(1) << 63;
}

static inline uint64_t ep_bloom_bit(uint64_t symbol)
{
    return UINT64_C(1) << (symbol >> 58 ^ (symbol & 63));
}

/* One more symbol behind a prefix of q < n calls that matched. */
static inline uint32_t ep_pattern_step(const struct pattern *x, uint32_t q,
                                       uint64_t symbol)
{
    while (q && x->w[q] != symbol)
        q = x->fail[q];
    return q + (x->w[q] == symbol);
}

/* What learning found. */
struct learned {
    uint32_t calls; /* 0: nothing */
    bool gaps;
    double split; /* gaps above are large; NaN */
    size_t run;   /* calls at the end of the buffer that repeat */
};

/*
 * The period of the last of v[0..n). sure: three repetitions are enough, how
 * long they took does not matter. May be called with any n.
 */
struct learned ep_period_learn(const struct ep_period_call *v, size_t n,
                               bool sure);

#endif
