/* SPDX-License-Identifier: Apache-2.0 */
/* calls_impl.h - what calls.c and calls_archive.c share; for them alone. */
#ifndef EP_DETECT_CALLS_IMPL_H
#define EP_DETECT_CALLS_IMPL_H

#include "base/intern.h"
#include "detect/calls.h"
#include "detect/period.h"

#define JOBS_MAX 65536
#define MARKS 512     /* iterations of a job whose beginnings are kept */
#define COMMS_MAX 255 /* communicators of a rank that are told apart */

/* A rank. Saved by calls_archive.c: a field more here is one there. */
struct caller {
    struct job *job;
    struct ep_period *period; /* NULL: its job was muted before it came */
    char *host;               /* NULL if not known */
    int64_t rank, pid, step;  /* step: of the last iteration; -1: none */
    bool learned;
    /* hashes of the communicators in the order of their coming */
    uint64_t *comms;
    uint32_t ncomms, cap, last;
    double top;      /* highest ts; NaN: none yet */
    uint64_t behind; /* calls since it came, itself counted */
    /* of those two what they were when the state was loaded, and not saved:
       whether such calls come again, and those behind the top, of which left
       are still to come */
    double old_top;
    uint64_t old_left;
    bool again, old_tail;
};

/* An iteration of the job: when it began. */
struct mark {
    int64_t step;
    double ts;
};

struct held {
    struct caller *who;
    struct ep_iteration it;
};

/* Saved by calls_archive.c. */
struct job {
    struct ep_calls *all;
    char *name;
    size_t len;
    struct caller **rank; /* [cap], NULL where none */
    size_t cap, n, learned;
    bool muted, flowing; /* flowing: nothing is held back any more */
    double first_ts;     /* of its first call; NaN */
    struct mark *marks;  /* a ring by step; [MARKS] */
    int64_t oldest, newest;
    struct held *held;
    size_t nheld, held_cap;
};

/* Saved by calls_archive.c. */
struct ep_calls {
    ep_calls_fn *fn;
    void *ctx;
    struct ep_period_table *table;
    struct ep_intern *names;
    struct job **jobs;
    size_t cap;
    struct job *last;
    uint64_t calls, unranked, iterations, known; /* since the load */
};

#endif
