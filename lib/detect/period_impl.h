/* SPDX-License-Identifier: Apache-2.0 */
/*
 * period_impl.h - what the files of period share; for them alone.
 *
 *   period.c         the machine: following, being lost, finding back
 *   period_learn.c   the least period of what was heard
 *   period_table.c   patterns, shared
 *   period_archive.c all of it in bytes
 */
#ifndef EP_DETECT_PERIOD_IMPL_H
#define EP_DETECT_PERIOD_IMPL_H

#include "detect/period.h"

#define REPEATS 3 /* whole periods that confirm one */

/* Calls that a machine has room for while it learns: doubled from the first. */
#define FIRST_CAP 32
#define LEND_CAP 4096 /* calls that a rank is lent room for at first */
#define MAX_CAP 65536 /* at least REPEATS x EP_PERIOD_MAX */

/* The calls of an iteration, as the least of their rotations. Saved by
   period_archive.c, which lets the rest be made of w. */
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

/* A pattern, and how many of its calls the last ones were. */
struct lane {
    struct pattern *x; /* NULL: none */
    uint32_t q;
    double split; /* s: gaps above are large */
};

/* What the pattern in the other lane is. */
enum other {
    OTHER_TRIED,   /* another rank's */
    OTHER_NEW,     /* learned, on probation */
    OTHER_TRUSTED, /* was followed */
};

/* Saved by period_archive.c: a field more here is one there. */
struct ep_period {
    struct ep_period_table *table;
    struct lane home, other;
    double last_ts; /* of the call before */
    /* the occurrence of home that is under way */
    double start;         /* NaN: not known */
    double comm, covered; /* time in calls since start; until when */
    int64_t first_seq, last_seq;
    bool clean;  /* all of it was seen */
    bool timed;  /* all of it told its times */
    bool linked; /* the iteration before it is (going to be) reported */
    bool pending;
    struct ep_iteration held; /* if pending: over, unless a hole shows */
    int64_t seq_step, odd_step;
    uint64_t home_calls; /* in whole occurrences */
    uint32_t strays;     /* calls since the last whole occurrence */
    /* other */
    enum other kind;
    bool other_clean;   /* all of the occurrence under way was seen */
    uint32_t age;       /* calls since its last whole occurrence */
    uint64_t row, best; /* whole occurrences in a row; most since lost */
    double row_since;   /* s */
    uint64_t interlude; /* calls that it lasted at most before home came back */
    uint32_t cursor, changes, rest; /* in the table */
    /* calls heard since no pattern is followed */
    struct ep_period_call *buf;
    uint32_t n, cap, next_try;
    size_t reserved; /* bytes of EP_PERIOD_LEND */
};

/* Of calls w[0..n), in whatever rotation; one reference more. */
struct pattern *ep_pattern_get(struct ep_period_table *t, uint64_t *w,
                               uint32_t n, bool gaps);
struct pattern *ep_pattern_ref(struct pattern *x);
void ep_pattern_unref(struct ep_period_table *t, struct pattern *x);

/*
 * A new pattern of a number, without a reference, of what was saved; NULL unless
 * w is the least of its rotations.
 */
struct pattern *ep_pattern_restore(struct ep_period_table *t, const uint64_t *w,
                                   uint32_t n, bool gaps, uint32_t number);

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
