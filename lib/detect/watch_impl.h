/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_impl.h - what the files of watch share; for them alone.
 *
 *   watch.c        series and jobs by name, findings out
 *   watch_steps.c  steps of ranks, workers and jobs
 *   watch_peers.c  comparison of ranks by steps
 *   watch_probes.c comparison of devices by probes
 *   verdict.c      causes
 *   watch_archive.c, probes_archive.c   all of it in bytes: a field more in a
 *                  struct below is one there
 */
#ifndef EP_DETECT_WATCH_IMPL_H
#define EP_DETECT_WATCH_IMPL_H

#include "base/intern.h"
#include "detect/watch.h"

#define OPEN_STEPS 4      /* steps of a job that wait for more ranks */
#define SHARES 32         /* readings of cpu_share that are kept */
#define RECENT_SLOTS 1024 /* a power of two */

/* What a series' values are. */
enum basis { BASIS_NONE, BASIS_PER_MB, BASIS_BUSY, BASIS_DUR };

struct sample {
    int64_t step;
    double ts, value;
};

/* An episode that was reported, and whether it goes on. Saved by
   watch_archive.c. */
struct episode {
    bool open;
    char *eid;         /* of the latest; NULL before the first */
    const char *cause; /* a constant */
    double since, factor, p;
    double excess; /* factor over that of the other ranks at that time */
    int64_t step;
};

/* Saved by watch_archive.c. */
struct series {
    size_t number; /* its place in w->series */
    enum ep_scope scope;
    struct job *job;
    int64_t rank;
    char *id, *host; /* host may be NULL */
    struct ep_place place;
    enum basis basis;
    int other;   /* samples in a row that are of another basis */
    bool member; /* is in its job's ranks or workers */
    struct ep_changepoint *pace; /* NULL until the first step */
    double last_ts;
    int64_t last_step;
    int unjudged;      /* samples to pass over after a restart */
    unsigned muted;    /* pace episode that all ranks share: not reported */
    struct episode ep; /* of the pace */
    /* the last "window" samples, a ring: kept of them, the next goes to at */
    struct sample *ring;
    int kept, at;
    /* comparison with the peers: those missed since the last sample; verdicts
       in a row, and since when */
    int missed;
    int64_t hits, clean;
    double turn_ts;
    int64_t turn_step;
    struct episode peer;
    /* cpu_share, a ring */
    struct sample *shares;
    int64_t nshares;
    /* loaded: samples that are not later were taken before; not saved */
    bool resumed;
    double old_ts, old_share_ts;
    int64_t old_step;
};

/* Saved by watch_archive.c. */
struct open_step {
    int64_t step, n; /* n ranks have reported; 0: slot is free */
    double ts, dur, end;
};

/* The ranks, or the workers, of a job that have sent a step. Saved by
   watch_archive.c. */
struct members {
    struct series **v;
    size_t n, cap;
    int64_t since; /* steps of the job (samples of workers) since the last
                      comparison */
};

/* Saved by watch_archive.c. */
struct job {
    char *name; /* "" without one */
    size_t len, number;
    struct members ranks, workers;
    struct series *own; /* the job's pace; NULL until needed */
    struct open_step open[OPEN_STEPS];
    bool told;         /* has step records of its own, without rank */
    int64_t closed;    /* highest step passed on; -1: none */
    double restart_ts; /* what is older was before the last restart */
    double lost;       /* device seconds lost in the open episode */
};

/* How far the names of episodes with one prefix are used up. Saved by
   watch_archive.c. */
struct used_name {
    int64_t step, n;
    double since;
};

struct probe_group; /* watch_probes.c */
struct device;      /* watch_probes.c */

/* Saved by watch_archive.c. */
struct ep_watch {
    struct ep_watch_config config;
    void (*fn)(void *ctx, const struct ep_finding *f);
    void *ctx;
    struct ep_intern *job_names, *series_names, *group_names, *device_names;
    struct ep_intern *episode_names;
    struct ep_intern *words; /* causes of episodes that were loaded */
    size_t total;            /* of EP_WATCH_MAX_SERIES */
    struct job **jobs;
    size_t jobs_cap;
    struct series **series;
    size_t series_cap;
    struct probe_group **groups;
    size_t groups_cap;
    struct device **devices;
    size_t devices_cap;
    struct used_name *used;
    size_t used_cap;
    uint64_t known; /* samples passed over since the load; not saved */
    struct job *last_job;
    struct series *recent[RECENT_SLOTS]; /* ranks, by job and number */
    double *work;                        /* room for a value of each member */
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
 * Number of a name in one of the sets, which is new if the set has grown; -1
 * with *err set if all sets together are at EP_WATCH_MAX_SERIES.
 */
long ep_watch_number(struct ep_watch *w, struct ep_intern *names,
                     struct ep_span name, struct ep_error *err);

/*
 * Report. e is the episode that the finding opens, goes on with or ends;
 * NULL for a spike. f->id, host, job, rank and scope are filled in from s,
 * eid from e. what is put into a new eid behind the id, or NULL. A relief
 * leaves e open.
 */
void ep_watch_report(struct ep_watch *w, const struct series *s,
                     struct episode *e, const char *what, struct ep_finding *f);

/* An open episode as a finding, to whom ep_watch_open was told. */
void ep_watch_tell(const struct series *s, const struct episode *e,
                   void (*fn)(void *ctx, const struct ep_finding *), void *ctx);

/* ---- watch_steps.c, watch_peers.c, watch_probes.c --------------------- */

/* The ranks or workers among which s is one. */
struct members *ep_watch_members(const struct series *s);

/*
 * What a series did since the change of another: the median of its values
 * (of a spike: the largest) over its healthy level; NaN if unknown.
 */
double ep_watch_factor_since(const struct series *s, const struct ep_change *c);

void ep_watch_end_steps(struct ep_watch *w, struct job *job);

/* One more step of the members (sample of the workers): time to compare? */
void ep_watch_count_step(struct ep_watch *w, struct members *m, int64_t enough,
                         double now);

void ep_watch_finish_probes(struct ep_watch *w);
void ep_watch_tell_devices(const struct ep_watch *w,
                           void (*fn)(void *ctx, const struct ep_finding *),
                           void *ctx);
void ep_watch_free_groups(struct ep_watch *w);

/* ---- watch_archive.c, probes_archive.c -------------------------------- */

/* At most so many bytes of a name are saved. */
#define EP_WATCH_NAME_BYTES (1 << 20)

/* An episode. w is asked to keep its cause. */
void ep_watch_archive_episode(struct ep_archive *a, struct ep_watch *w,
                              struct episode *e);
void ep_watch_archive_place(struct ep_archive *a, struct ep_place *p);

/* The groups and devices of probes. */
void ep_watch_archive_probes(struct ep_archive *a, struct ep_watch *w);

/* ---- verdict.c -------------------------------------------------------- */

/* Why a rank's pace changed: the word, and the evidence into w->text. */
const char *ep_verdict_rank(struct ep_watch *w, const struct series *s,
                            const struct ep_change *c);

/* Why a rank is slower than its peers since a time; evidence is appended. */
const char *ep_verdict_peer(struct ep_watch *w, const struct series *s,
                            double since);

/* Why the job's pace changed, likewise. */
const char *ep_verdict_job(struct ep_watch *w, const struct job *job,
                           const struct ep_change *c);

#endif
