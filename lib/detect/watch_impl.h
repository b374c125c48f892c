/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_impl.h - what the files of watch share; for them alone.
 *
 *   watch.c        series and jobs by name, findings out
 *   watch_steps.c  steps of ranks and jobs
 *   watch_peers.c  comparison of ranks by steps
 *   watch_probes.c comparison of devices by probes
 *   verdict.c      causes
 */
#ifndef EP_DETECT_WATCH_IMPL_H
#define EP_DETECT_WATCH_IMPL_H

#include "base/intern.h"
#include "detect/watch.h"

#define OPEN_STEPS 4 /* steps of a job that wait for more ranks */
#define SHARES 32    /* readings of cpu_share that are kept */

/* What a series' values are. */
enum basis { BASIS_NONE, BASIS_PER_MB, BASIS_BUSY, BASIS_DUR };

struct sample {
    int64_t step;
    double ts, value;
};

/* An episode that was reported and is not over. */
struct episode {
    bool open;
    char eid[160];
    char cause[24];
    double since;
    int64_t step;
};

struct series {
    enum ep_scope scope;
    struct job *job;
    int64_t rank;
    char *id, *host; /* host may be NULL */
    enum basis basis;
    struct ep_changepoint *pace; /* NULL until the first step */
    double last_ts;
    int64_t last_step;
    int64_t steps;     /* samples so far */
    int64_t unjudged;  /* samples to pass over after a restart */
    unsigned muted;    /* pace episode that all ranks share: not reported */
    struct episode ep; /* of the pace */
    /* ring of the last "window" samples; ring[steps % window] is next */
    struct sample *ring;
    /* comparison with the peers */
    int64_t hits, clean;
    double hit_ts;
    int64_t hit_step;
    struct episode peer;
    /* cpu_share, a ring */
    struct sample *shares;
    int64_t nshares;
};

struct open_step {
    int64_t step, n; /* n ranks have reported; 0: slot is free */
    double ts, dur, end;
};

struct job {
    char *name; /* "" without one */
    struct series **ranks;
    size_t nranks, cap;
    struct series *own; /* the job's pace; NULL until needed */
    struct open_step open[OPEN_STEPS];
    bool told;           /* has step records of its own, without rank */
    int64_t closed;      /* highest step passed on; -1: none */
    int64_t since_peers; /* steps since the last comparison */
    double lost;         /* seconds lost in the open episode */
};

struct probe_group; /* watch_probes.c */

struct ep_watch {
    struct ep_watch_config config;
    void (*fn)(void *ctx, const struct ep_finding *f);
    void *ctx;
    struct ep_intern *job_names, *series_names, *group_names;
    struct job **jobs;
    size_t jobs_cap;
    struct series **series;
    size_t series_cap;
    struct probe_group **groups;
    size_t groups_cap;
    double *work; /* room for a value of each rank */
    size_t work_cap;
    struct ep_buf key, text;
};

/* ---- watch.c ---------------------------------------------------------- */

struct job *ep_watch_job(struct ep_watch *w, struct ep_span name,
                         struct ep_error *err);

/* The series of a rank (name empty), worker or (rank -1, no name) job. */
struct series *ep_watch_series(struct ep_watch *w, struct job *job,
                               int64_t rank, struct ep_span worker,
                               struct ep_error *err);

/*
 * Report. e is the episode that the finding opens, goes on with or ends;
 * NULL for a spike. f->id, host, job, rank and scope are filled in from s,
 * eid from e. what is put into a new eid behind the id, or NULL.
 */
void ep_watch_report(struct ep_watch *w, const struct series *s,
                     struct episode *e, const char *what, struct ep_finding *f);

/* ---- watch_steps.c, watch_peers.c, watch_probes.c --------------------- */

/*
 * What a series did since the change of another: the median of its values
 * (of a spike: the largest) over its healthy level; NaN if unknown.
 */
double ep_watch_factor_since(const struct ep_watch *w, const struct series *s,
                             const struct ep_change *c);

/*
 * Median of ep_watch_factor_since over the ranks of a job other than s; with
 * s NULL over all that tell busy. *n (may be NULL): how many there were.
 */
double ep_watch_common_factor(struct ep_watch *w, const struct job *job,
                              const struct series *s, const struct ep_change *c,
                              size_t *n);

void ep_watch_close_steps(struct ep_watch *w, struct job *job, int64_t below);
void ep_watch_compare_ranks(struct ep_watch *w, struct job *job, double now);
void ep_watch_finish_probes(struct ep_watch *w);
void ep_watch_free_groups(struct ep_watch *w);

/* ---- verdict.c -------------------------------------------------------- */

/* Why a rank's pace changed: the word, and the evidence into w->text. */
const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c);

/* Why the job's pace changed, likewise. */
const char *ep_verdict_job(struct ep_watch *w, const struct job *job,
                           const struct ep_change *c);

#endif
