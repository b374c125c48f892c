/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes_impl.h - what watch_probes.c and probes_archive.c share; for them
 * alone.
 */
#ifndef EP_DETECT_PROBES_IMPL_H
#define EP_DETECT_PROBES_IMPL_H

#include "detect/watch_impl.h"

/* One device in one group. Saved by probes_archive.c. */
struct device {
    size_t number;     /* its place in w->devices */
    struct series *id; /* name, rank, host: it has no steps */
    double ts, value, noise, ref_own;
    bool fresh; /* value is of this round */
    /* loaded: what is not later than old_ts was taken before; not saved */
    bool resumed;
    double old_ts;
    struct episode peer, own;
};

/* The devices that ran the same test. Saved by probes_archive.c. */
struct probe_group {
    size_t number, label_at; /* label_at: place in its name in group_names */
    char *label;             /* "gemm f32 1024" */
    char *what, *what_own;   /* "gemm.f32.1024", for the eid; with "/own" */
    char *unit;
    const char *cause;
    bool high_is_better;
    size_t devices;        /* that ever reported */
    bool compared;         /* a round is over: devices are known */
    struct device **fresh; /* of this round, as they came */
    size_t n, cap;
};

/*
 * A group, the number-th, whose name is in w->key, its label from that place on;
 * w->key is longer afterwards.
 */
struct probe_group *ep_watch_new_group(struct ep_watch *w, size_t number,
                                       size_t label, struct ep_span unit,
                                       bool high_is_better);

#endif
