/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_links_impl.h - what the files of links share; for them alone.
 *
 *   watch_links.c        ends and links by name, records in
 *   watch_links_judge.c  rounds, and what is told of them
 *   links_archive.c      all of it in bytes: a field more below is one there
 */
#ifndef EP_DETECT_WATCH_LINKS_IMPL_H
#define EP_DETECT_WATCH_LINKS_IMPL_H

#include "detect/pairs.h"
#include "detect/watch_impl.h"

#define EP_LINK_PAST 8 /* healthy values that are kept of a link */

/* One end: a host, or a device. */
struct end {
    char *name, *id, *host; /* host may be NULL */
    enum ep_scope scope;
};

struct link {
    uint32_t src, dst, cls;
    int reps;     /* of this round; 0: not measured yet */
    double y, ts; /* of this round: mean of -log of B/s; of the last one */
    double past[EP_LINK_PAST];
    int npast, at;
    /* loaded: what is not later was taken before; not saved */
    bool resumed;
    double old_ts;
};

struct link_class {
    double unlike, scatter;
    /* sum of squares, degrees of freedom of the pasts of its links */
    double sum;
    int free;
};

/* Something that is, or was, slow. */
struct link_case {
    struct ep_pairs_fault fault;
    struct series as; /* how it is reported */
    struct episode ep;
    bool seen; /* in the round that is judged */
};

/* Of one job. */
struct link_job {
    struct job *job;
    struct ep_intern *end_names, *link_names, *class_names;
    struct end *ends;
    struct link *links;
    struct link_class *classes;
    size_t ends_cap, links_cap, classes_cap;
    uint32_t *fresh; /* links of this round */
    size_t n, cap;
    long last; /* the link that reported last; -1: none */
    struct link_case **cases;
    size_t ncases, cases_cap;
};

struct links {
    struct link_job **v; /* by number of the job; NULL: it has none */
    size_t n, cap;
};

/* Of a job; new if it has had no links. */
struct link_job *ep_watch_link_job(struct ep_watch *w, struct job *job);

/* A host, a device, or HOST/DEVICE. */
struct end ep_watch_make_end(const char *name);

/* The round is over. */
void ep_watch_judge_links(struct ep_watch *w, struct link_job *lj);

#endif
